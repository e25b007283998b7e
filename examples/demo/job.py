"""What the jobs share: the command line, the report to the parent process, and the figures of a run.

A job is a process of its own. It writes one JSON object a line to standard output: progress, then its result.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable

import torch

TRACED_STEPS = 20  # the first losses of a run, compared between devices before rounding errors have grown


class Run:
    """One run of a job on one device. Call `step` after each step; `finish` once."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.values: list[float] = []
        self.times: list[float] = []
        self._start = time.perf_counter()
        self._last = self._start

    def step(self, value: float) -> None:
        now = time.perf_counter()
        self.values.append(value)
        self.times.append(now - self._last)
        self._last = now
        if len(self.values) % max(1, self.total // 50) == 0 or len(self.values) == self.total:
            emit({"done": len(self.values), "total": self.total, "value": value})

    def finish(self, device: str, **figures: object) -> None:
        """Emits the result: `figures` and what is the same for every job."""
        on_tpu = device.startswith("tpu")
        stats = dict(torch.tpu.compile_stats()) if on_tpu else {}
        emit(
            {
                "values": self.values,
                "first_step": self.times[0],
                "steps_per_second": 1 / statistics.median(self.times),
                "seconds": time.perf_counter() - self._start,
                "compiled": stats.get("compilations"),
                "from_disk": stats.get("disk_hits"),
                "device_peak": torch.tpu.max_memory_allocated() if on_tpu else None,
                "process_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                **figures,
            }
        )


def emit(event: dict[str, object]) -> None:
    print(json.dumps(event), flush=True)


def run_as_process(job: Callable[[str], None]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="tpu")
    torch.manual_seed(0)
    job(parser.parse_args().device)
