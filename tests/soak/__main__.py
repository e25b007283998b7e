"""The long runs: python -m tests.soak [--seconds 60] [--steps 10000] [--warm-up 1000] [--modes strict,...]."""

import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("TORCH_TPU_CACHE_DIR", str(ROOT / "build" / "test-cache"))

import torch  # noqa: E402

from tests.soak import threads, training  # noqa: E402

LIMIT = 100  # bytes a step, on the host and on the device


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=1_000)
    parser.add_argument("--modes", default="strict,defer_and_fuse")
    arguments = parser.parse_args()
    failed = False
    for mode in arguments.modes.split(","):
        torch.tpu.eager_mode = torch.tpu.EagerMode[mode.upper()]
        if arguments.seconds > 0:
            rounds = threads.run(arguments.seconds)
            print(f"{mode}: 8 threads for {arguments.seconds:.0f} s: {rounds} rounds, all values right", flush=True)
        if arguments.steps > 0:
            began = time.monotonic()
            growth = training.run(arguments.steps, arguments.warm_up)
            good = growth.host < LIMIT and growth.device < LIMIT
            failed |= not good
            seconds = time.monotonic() - began
            print(
                f"{mode}: {arguments.steps} training steps in {seconds:.0f} s: {growth.host:.1f} bytes a step more on "
                f"the host, {growth.device:.1f} on the device{'' if good else ': TOO MUCH'}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
