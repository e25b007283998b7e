"""How exactly float32 is multiplied, and whether bfloat16 results may keep more bits than they have."""

import contextlib
import enum
from collections.abc import Iterator

import torch

from torch_tpu.tpu import compiler

_EXCESS = "xla_allow_excess_precision"


class Precision(enum.Enum):
    """The precision of float32 matrix products and convolutions: the values of torch.set_float32_matmul_precision."""

    DEFAULT = "medium"
    """One bfloat16 pass on a TPU: 8 bits of mantissa."""
    HIGH = "high"
    """Three passes: about 16 bits."""
    HIGHEST = "highest"
    """Six passes: float32. What PyTorch starts with."""


@contextlib.contextmanager
def precision(mode: Precision) -> Iterator[None]:
    """torch.set_float32_matmul_precision for a block; the setting is the process's, as PyTorch's is."""
    if not isinstance(mode, Precision):
        raise TypeError(f"expected one of {', '.join(map(str, Precision))}, but got {mode!r}")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(mode.value)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def excess_precision_allowed() -> bool:
    """Whether `allow_excess_precision` is on."""
    return compiler.process_option(_EXCESS) == "true"


def allow_excess_precision(allowed: bool) -> None:
    """Lets the compiler leave out roundings to bfloat16 and float16 inside a program."""
    compiler.set_process_option(_EXCESS, "true" if allowed else None)
