"""Child process: cached small operators on the CPU and on `tpu` in turn. Prints one JSON object.

Each row gives, per call, microseconds of the issuing thread (the loop alone), of all threads (up to the end of the
work), and by the wall. The device may be the null plugin, whose values mean nothing: nothing here reads them.
"""

import argparse
import json
from collections.abc import Callable

from benchmarks import clock

clock.pin_to_one_core()

import torch  # noqa: E402

Body = Callable[[], object]


def chain(device: str) -> tuple[Body, int]:
    x, y = torch.ones(8, 8, device=device), torch.full((8, 8), 1e-3, device=device)

    def body() -> None:
        z = x
        for _ in range(1000):
            z = z + y

    return body, 1000


def add_in_place(device: str) -> tuple[Body, int]:
    x, y = torch.ones(8, 8, device=device), torch.full((8, 8), 1e-3, device=device)

    def body() -> None:
        for _ in range(1000):
            x.add_(y)

    return body, 1000


def select(device: str) -> tuple[Body, int]:
    x = torch.ones(8, 8, device=device)

    def body() -> None:
        for i in range(1000):
            x[i & 7]

    return body, 1000


def view(device: str) -> tuple[Body, int]:
    x = torch.ones(8, 8, device=device)

    def body() -> None:
        for _ in range(1000):
            x.view(64)

    return body, 1000


def empty(device: str) -> tuple[Body, int]:
    def body() -> None:
        for _ in range(1000):
            torch.empty(8, 8, device=device)

    return body, 1000


def addmm(device: str) -> tuple[Body, int]:
    b, x, y = (torch.full((64, 64), 1e-2, device=device) for _ in range(3))

    def body() -> None:
        for _ in range(300):
            torch.addmm(b, x, y)

    return body, 300


def fused_adamw(device: str) -> tuple[Body, int]:
    """100 parameters of 64 by 64."""
    parameters = [torch.nn.Parameter(torch.full((64, 64), 1e-2, device=device)) for _ in range(100)]
    for p in parameters:
        p.grad = torch.full((64, 64), 1e-3, device=device)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)

    def body() -> None:
        for _ in range(5):
            optimizer.step()

    return body, 5


ROWS: dict[str, Callable[[str], tuple[Body, int]]] = {
    "chain": chain,
    "add_": add_in_place,
    "select": select,
    "view": view,
    "empty": empty,
    "addmm": addmm,
    "adamw": fused_adamw,
}


def cost_per_call(body: Body, calls: int, device: str) -> list[float]:
    start = clock.now()
    body()
    issued = clock.now()
    if device != "cpu":
        torch.tpu.synchronize()
    done = clock.now()
    return [1e6 * s / calls for s in ((issued - start).thread, (done - start).process, (done - start).wall)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="+", default=list(ROWS))
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    result: dict[str, dict[str, object]] = {}
    for name in arguments.rows:
        samples: dict[str, list[list[float]]] = {"cpu": [], "tpu": []}
        try:
            bodies = {device: ROWS[name](device) for device in samples}
            for device, (body, calls) in bodies.items():  # compiles, and warms the caches
                cost_per_call(body, calls, device)
                cost_per_call(body, calls, device)
            for _ in range(arguments.repeats):
                for device, (body, calls) in bodies.items():
                    samples[device].append(cost_per_call(body, calls, device))
            result[name] = dict(samples)
        except (RuntimeError, NotImplementedError) as error:
            result[name] = {"error": str(error).splitlines()[0]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
