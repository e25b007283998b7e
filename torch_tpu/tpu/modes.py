"""Eager modes, the program counters, and the opt-in to CPU fallback."""

import enum
import os
from typing import Any

from torch_tpu import _runtime

_FALSE = ("", "0", "false", "off", "no")


class EagerMode(enum.Enum):
    """How operators run."""

    STRICT = 0
    """Each operator runs when it is called."""
    DEBUG = 1
    """Each operator runs when it is called, is waited for, and its values are checked."""
    DEFER_AND_FUSE = 2
    """Operators are recorded, and run in groups fused into programs when a value is read or many have gathered."""
    DEFER_NEVER = STRICT
    DEFER_NEVER_AND_LAUNCH_BLOCKING = DEBUG


_NAMES = {"strict": EagerMode.STRICT, "debug": EagerMode.DEBUG, "fuse": EagerMode.DEFER_AND_FUSE}
_process_mode = EagerMode.STRICT


def _code(mode: EagerMode) -> int:
    if not isinstance(mode, EagerMode):
        names = ", ".join(f"EagerMode.{member.name}" for member in EagerMode)
        raise TypeError(f"expected one of torch.tpu's {names}, but got {mode!r}")
    return int(mode.value)


def process_eager_mode() -> EagerMode:
    """The mode of threads that have not chosen their own."""
    return _process_mode


def set_process_eager_mode(mode: EagerMode) -> None:
    """Sets it. Raises TypeError for what is no mode."""
    global _process_mode
    code = _code(mode)
    _runtime.require().set_process_eager_mode(code)
    _process_mode = mode


def get_eager_mode() -> EagerMode:
    """The mode in effect in this thread."""
    return EagerMode(_runtime.require().get_eager_mode())


class set_eager_mode:
    """Sets this thread's eager mode: from now on, or as a context manager inside it.

    Leaving it hands what DEFER_AND_FUSE has recorded to the device. Raises TypeError for what is no mode.
    """

    def __init__(self, mode: EagerMode) -> None:
        self._previous = int(_runtime.require().set_thread_eager_mode(_code(mode)))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        _runtime.require().set_thread_eager_mode(self._previous)
        _runtime.require().flush()


def set_from_environment() -> None:
    """Takes the process default from the environment. Raises ValueError for an unknown mode name."""
    mode = _mode_of_environment()
    if mode is not None:
        set_process_eager_mode(mode)


def _mode_of_environment() -> EagerMode | None:
    name = os.environ.get("TORCH_TPU_EAGER_MODE", "").strip().lower()
    if name:
        if name not in _NAMES:
            raise ValueError(f"TORCH_TPU_EAGER_MODE is '{name}', which is no eager mode: choose {', '.join(_NAMES)}")
        return _NAMES[name]
    if _is_on("TPU_LAUNCH_BLOCKING") or _is_on("TORCH_TPU_LAUNCH_BLOCKING"):
        return EagerMode.DEBUG
    if _is_on("TORCH_TPU_DEFER_AND_FUSE"):
        return EagerMode.DEFER_AND_FUSE
    return None


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _FALSE


def compile_stats() -> dict[str, Any]:
    """Counts of this process since its start or `reset_compile_stats`.

    compilations (programs compiled), cache_hits (found in memory), disk_hits (loaded from disk), compile_seconds,
    executions (programs run) and fallbacks (operators run on the CPU).
    """
    stats: dict[str, Any] = _runtime.require().compile_stats()
    return stats


def reset_compile_stats() -> None:
    """Sets the counts to zero."""
    _runtime.require().reset_compile_stats()


class expect_no_compile:
    """Context manager: a call in this thread that needs a program to be compiled raises RuntimeError inside it.

    The error names the operator and its shapes; the call changes nothing. Programs found in memory or in the disk
    cache are fine.
    """

    def __enter__(self) -> None:
        _runtime.require().flush()  # what was recorded before may still be compiled
        self._previous = bool(_runtime.require().set_no_compile_expected(True))

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        _runtime.require().set_no_compile_expected(self._previous)


class cpu_fallback:
    """Lets operators that the device does not have run on the CPU: from now on, or as a context manager inside it.

    Off by default. Such calls are counted in `compile_stats()["fallbacks"]` and warned about once an operator.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._previous = bool(_runtime.require().set_cpu_fallback(bool(enabled)))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        _runtime.require().set_cpu_fallback(self._previous)
