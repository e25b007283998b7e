"""Options of the compiler that makes programs of operators."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from torch_tpu import _runtime

__all__ = ["custom_compiler_options"]


class _OptionsOfThread(threading.local):
    def __init__(self) -> None:
        self.options: dict[str, str] = {}


_of_thread = _OptionsOfThread()
_of_process: dict[str, str] = {}


@contextlib.contextmanager
def custom_compiler_options(options: Mapping[str, str]) -> Iterator[None]:
    """Programs that this thread asks for inside are compiled with these XLA options, such as {"xla_dump_to": "/tmp/x"}.

    They override the device's own, and each set of options has programs of its own, in memory and on disk. Raises
    ValueError for options that the compiler does not take.
    """
    if not all(isinstance(text, str) for pair in options.items() for text in pair):
        raise TypeError("compiler options are texts: names and values as in XLA_FLAGS, without the dashes")
    before = _of_thread.options
    wanted = {**before, **options}
    extension = _runtime.started()
    number = extension.intern_user_options({**_of_process, **wanted})
    previous = extension.set_thread_user_options(number)
    _of_thread.options = wanted
    try:
        yield
    finally:
        _of_thread.options = before
        extension.set_thread_user_options(previous)


def set_process_option(name: str, value: str | None) -> None:
    """An option for all programs of this process outside of `custom_compiler_options`; None takes it away again."""
    if value is None:
        _of_process.pop(name, None)
    else:
        _of_process[name] = value
    _runtime.when_started(f"option {name}", _apply)


def process_option(name: str) -> str | None:
    """What `set_process_option` set."""
    return _of_process.get(name)


def _apply() -> None:
    extension: Any = _runtime.require()
    extension.set_process_user_options(extension.intern_user_options(dict(_of_process)))
