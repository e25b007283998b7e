"""python -m tests.fuzz [first] [count]: the long run, 500 seeds unless told otherwise."""

import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("TORCH_TPU_CACHE_DIR", str(ROOT / "build" / "test-cache"))

import torch  # noqa: E402

from tests.fuzz.runner import run_seed  # noqa: E402
from tests.fuzz.world import Mismatch  # noqa: E402


def main() -> int:
    numbers = [int(argument) for argument in sys.argv[1:]]
    first, count = (numbers + [0, 500][len(numbers) :])[:2]
    began, failed = time.monotonic(), []
    for seed in range(first, first + count):
        try:
            run_seed(seed)
        except Mismatch as error:
            failed.append(seed)
            print(f"\n{error}", flush=True)
        if sys.stderr.isatty():
            print(f"\rseed {seed + 1 - first} of {count}, {len(failed)} failed", end="", file=sys.stderr, flush=True)
    stats = torch.tpu.compile_stats()
    seconds = time.monotonic() - began
    print(
        f"\n{count - len(failed)} of {count} seeds agree with the CPU in {seconds:.0f} s: "
        f"{stats['compilations']} programs compiled, {stats['disk_hits']} loaded, {stats['executions']} runs"
    )
    if failed:
        print("failed:", *failed)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
