"""Child process: what debug mode and recorded tracebacks cost, strict and watched in turn. Prints one JSON object."""

import argparse
import contextlib
import json
from collections.abc import Callable

from benchmarks import operators
from benchmarks.operators import Body, torch


def gather(device: str) -> tuple[Body, int]:
    x = torch.ones(64, 64, device=device)
    i = torch.zeros(64, 64, dtype=torch.int64, device=device)

    def body() -> None:
        for _ in range(300):
            x.gather(1, i)

    return body, 300


def debug() -> contextlib.AbstractContextManager[None]:
    return torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG)


ROWS: dict[str, tuple[Callable[[str], tuple[Body, int]], Callable[[], contextlib.AbstractContextManager[None]]]] = {
    "tracebacks": (operators.chain, torch.tpu.debug.record_tracebacks),
    "debug": (operators.chain, debug),
    "debug gather": (gather, debug),
    "anomalies": (operators.chain, torch.tpu.debug.detect_anomalies),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    result = {}
    for name, (make, watched) in ROWS.items():
        body, calls = make("tpu")
        samples: dict[str, list[list[float]]] = {"strict": [], "watched": []}
        for kept in (False, False, *[True] * arguments.repeats):  # two rounds compile, and warm the caches
            for way, context in (("strict", contextlib.nullcontext), ("watched", watched)):
                with context():
                    cost = operators.cost_per_call(body, calls, "tpu")
                if kept:
                    samples[way].append(cost)
        result[name] = samples
    print(json.dumps(result))


if __name__ == "__main__":
    main()
