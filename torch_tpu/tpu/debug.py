"""Finding what went wrong: where NaNs come from, which line made a tensor, what would be compiled."""

from typing import Any

import torch

from torch_tpu import _runtime
from torch_tpu.tpu.modes import EagerMode, set_eager_mode

_NAN, _INF = 1, 2


class detect_anomalies:
    """Stops at the first operator whose result holds a NaN or infinity that its operands do not hold.

    From now on when called bare, else as a context manager inside it; for this thread, in debug mode. Raises
    RuntimeError that names the operator, its shapes and the line; in a backward also the line of the forward. A copy
    from the host that brings in a NaN stops as well. `nan` and `inf` choose what to look for; an operator that was
    given an infinite number (a mask filled with -inf) does not stop.
    """

    def __init__(self, nan: bool = True, inf: bool = True) -> None:
        flags = (_NAN if nan else 0) | (_INF if inf else 0)
        self._mode = set_eager_mode(EagerMode.DEBUG)
        self._previous = int(_runtime.require().set_thread_anomalies(flags))
        self._autograd = torch.autograd.set_detect_anomaly(True, check_nan=False)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._autograd.__exit__()
        _runtime.require().set_thread_anomalies(self._previous)
        self._mode.__exit__(kind, value, traceback)


class record_tracebacks:
    """Lets every tensor remember the line that made it: from now on, or as a context manager inside it.

    Late device errors and out-of-memory reports then name lines. As TORCH_TPU_TRACEBACKS=1; for all threads.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._previous = bool(_runtime.require().set_tracebacks(bool(enabled)))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        _runtime.require().set_tracebacks(self._previous)
