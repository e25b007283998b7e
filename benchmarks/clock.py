"""Clocks of the benchmarks. Standard library only: the JAX children import it too."""

import os
import resource
import threading
import time
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds: of the calling thread, of all threads of the process (user and system), and by the wall."""

    thread: float
    process: float
    wall: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.thread - other.thread, self.process - other.process, self.wall - other.wall)


def now() -> Cost:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(time.thread_time(), usage.ru_utime + usage.ru_stime, time.perf_counter())


def pin_to_one_core() -> None:
    """The last core this process may use, for all its threads: call it before anything starts threads."""
    assert threading.active_count() == 1
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def resident_mb() -> float:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
