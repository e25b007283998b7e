"""The fault-injecting plugin from Python: what a child process needs to start on it, and what it may ask of it."""

import ctypes
import enum
import os
import pathlib

from torch_tpu import _runtime

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATH = ROOT / "build" / "tests" / "fault_plugin" / "fault_plugin.so"

INTERNAL, RESOURCE_EXHAUSTED = 13, 8  # PJRT_Error_Code


class How(enum.IntEnum):
    """What has happened when an execution fails."""

    REFUSED = 0
    """Nothing."""
    CONSUMED = 1
    """The donated arguments are gone."""
    LATER = 2
    """The call succeeds; its results, and what is computed from them, report the failure when they are waited for."""


def environment(**more: str) -> dict[str, str]:
    """Variables that start a process on the plugin, wrapping the installed CPU plugin."""
    return {
        "TORCH_TPU_PJRT_PLUGIN": str(PATH),
        "FAULT_PLUGIN_WRAPS": _runtime.plugin_candidates()["cpu_path"],
        **more,
    }


class FaultPlugin:
    """Asks the plugin of this process for faults."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["TORCH_TPU_PJRT_PLUGIN"])
        for name in ("fault_live_bytes", "fault_compiles", "fault_executes"):
            getattr(self._library, name).restype = ctypes.c_int64
        self._library.fault_limit.argtypes = [ctypes.c_int64]
        self._library.fault_compile.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int]
        self._library.fault_execute.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]

    def fail_compile(self, nth: int = 1, match: str = "", code: int = INTERNAL) -> None:
        """The nth coming compilation (0: all) of a program whose text contains `match` fails."""
        self._library.fault_compile(nth, match.encode(), code)

    def fail_execute(self, nth: int = 1, match: str = "", code: int = INTERNAL, how: How = How.REFUSED) -> None:
        """The same for executions of programs that were compiled in this process."""
        self._library.fault_execute(nth, match.encode(), code, int(how))

    def limit(self, extra_bytes: int) -> None:
        """Lets buffers take this many bytes more than they do now."""
        self._library.fault_limit(self.live_bytes() + extra_bytes)

    def delay(self, compile_ms: int = 0, execute_ms: int = 0) -> None:
        """Makes every compilation and every execution take this long."""
        self._library.fault_delay(compile_ms, execute_ms)

    def truncate(self, *, serialized: bool = False, loaded: bool = False) -> None:
        """Loses half of the bytes of programs that are written to the cache, or loaded from it."""
        self._library.fault_truncate(int(serialized) + 2 * int(loaded))

    def clear(self) -> None:
        """No more faults."""
        self._library.fault_clear()

    def live_bytes(self) -> int:
        """Bytes that buffers take now."""
        return int(self._library.fault_live_bytes())

    def compiles(self) -> int:
        """Compilations asked for so far."""
        return int(self._library.fault_compiles())

    def executes(self) -> int:
        """Executions asked for so far."""
        return int(self._library.fault_executes())
