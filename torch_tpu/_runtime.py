"""The extension module as the Python side sees it: reached only through here, started at its first use."""

import atexit
import importlib.util
import os
import threading
import types
from collections.abc import Callable

_extension: types.ModuleType | None = None
_startup_error: Exception | None = None
_start_lock = threading.RLock()
_on_start: dict[str, Callable[[], None]] = {}


def set_extension(module: types.ModuleType) -> None:
    """Called once by `_startup`, when the extension module has loaded. Starts nothing."""
    global _extension
    module.initialize(plugin_candidates())
    atexit.register(_shutdown)
    _extension = module


def _shutdown() -> None:
    # The threads it joins do not exist in a forked child.
    if _extension is not None and _extension.is_initialized() and not _extension.is_in_bad_fork():
        _extension.shutdown()


def set_startup_error(error: Exception) -> None:
    """Makes every use of the device raise `error`."""
    global _startup_error
    if _startup_error is None:
        _startup_error = error
        if _extension is not None:
            _extension.set_startup_error(str(error))


def startup_error() -> Exception | None:
    """What `require` would raise."""
    return _startup_error


def require() -> types.ModuleType:
    """The extension module, without starting the device. Raises what went wrong on import."""
    if _startup_error is not None:
        raise type(_startup_error)(f"the device 'tpu' cannot be used: {_startup_error}") from _startup_error
    if _extension is None:
        raise RuntimeError("the device 'tpu' cannot be used: torchtpu has not finished loading")
    return _extension


def started() -> types.ModuleType:
    """The extension module with the device started: a PJRT plugin loaded and its client made.

    Raises RuntimeError when no plugin is installed, when it does not load, and in the forked child of a process that
    had started it; what went wrong on import is raised here as well.
    """
    extension = require()
    if not extension.is_initialized() or extension.is_in_bad_fork():
        extension.start()
    if _on_start:
        with _start_lock:
            actions = list(_on_start.values())
            _on_start.clear()
            for action in actions:
                action()
    return extension


def when_started(name: str, action: Callable[[], None]) -> None:
    """Runs `action` now if the device is up, else when it has started, in place of an earlier one of that name."""
    with _start_lock:
        if _extension is not None and _extension.is_initialized():
            action()
        else:
            _on_start.pop(name, None)
            _on_start[name] = action


def plugin_candidates() -> dict[str, str]:
    """Where the installed PJRT plugins are, "" for one that is not; which one to take is decided in C++."""
    return {
        "libtpu_path": _package_file("libtpu", "libtpu.so"),
        "cpu_path": _package_file("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
    }


def _package_file(package: str, name: str) -> str:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return ""
    for directory in (spec.submodule_search_locations if spec else None) or ():
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    return ""
