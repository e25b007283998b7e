"""PyTorch's core decompositions, for operators with neither a lowering nor a C++ composite kernel.

The engine calls `decompose` once a key, under capture, with the operator's own arguments; the operators that it runs
become the lowering. torch._decomp is imported at the first such miss: it is a large import.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch


class _InProgress(threading.local):
    def __init__(self) -> None:
        self.names: set[str] = set()


_in_progress = _InProgress()


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    from torch._decomp import core_aten_decompositions

    return dict(core_aten_decompositions())


def _overload(op: str) -> Any:
    """`aten::gelu`, `add.Tensor` or `gelu.default` as torch.ops has it."""
    namespace, _, name = op.rpartition("::")
    packet, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), overload or "default")


def has_decomposition(op: str) -> bool:
    """Whether operator `op` ("aten::gelu") has one."""
    return _overload(op) in _table()


def decompose(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs the decomposition of operator `op` and returns its result.

    `args` may hold all arguments in the schema's order: keyword-only ones are passed as keywords, since decompositions
    do not always take them in that place. Raises LookupError when there is no decomposition, or when the one in
    progress has come back to `op` itself.
    """
    overload = _overload(op)
    function = _table().get(overload)
    if function is None:
        raise LookupError(f"PyTorch has no core decomposition of {op}")
    if op in _in_progress.names:
        raise LookupError(f"the decomposition of {op} needs {op} itself: it needs a lowering")
    arguments = overload._schema.arguments
    positional = [value for argument, value in zip(arguments, args, strict=False) if not argument.kwarg_only]
    named = {argument.name: value for argument, value in zip(arguments, args, strict=False) if argument.kwarg_only}
    _in_progress.names.add(op)
    try:
        return function(*positional, **named, **kwargs)
    finally:
        _in_progress.names.discard(op)
