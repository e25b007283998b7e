"""Copies to and from several devices, which torch.nn.DataParallel and torch.nn.parallel.comm call.

PyTorch has these functions in its builds for CUDA only. A device is an index; -1 or None among destinations is the CPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensors = Sequence[torch.Tensor]


def _place(index: int | None) -> torch.device:
    return torch.device("cpu") if index is None or index < 0 else torch.device("tpu", index)


def _broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    return [tensor.to(_place(device)) for device in devices]


def _broadcast_out(tensor: torch.Tensor, out: Tensors) -> Tensors:
    for target in out:
        target.copy_(tensor)
    return out


def _broadcast_coalesced(tensors: Tensors, devices: Sequence[int], buffer_size: int) -> list[list[torch.Tensor]]:
    return [[tensor.to(_place(device)) for tensor in tensors] for device in devices]


def _scatter(
    tensor: torch.Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any
) -> list[torch.Tensor]:
    chunks = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return [chunk.contiguous().to(_place(device)) for chunk, device in zip(chunks, devices, strict=False)]


def _scatter_out(tensor: torch.Tensor, out: Tensors, dim: int, streams: Any) -> Tensors:
    for target, chunk in zip(out, tensor.split([target.size(dim) for target in out], dim), strict=True):
        target.copy_(chunk)
    return out


def _gather(tensors: Tensors, dim: int, destination: int | None) -> torch.Tensor:
    return torch.cat([tensor.to(_place(destination)) for tensor in tensors], dim)


def _gather_out(tensors: Tensors, out: torch.Tensor, dim: int) -> torch.Tensor:
    return out.copy_(torch.cat([tensor.to(out.device) for tensor in tensors], dim))


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    _broadcast,
    _broadcast_out,
    _broadcast_coalesced,
    _scatter,
    _scatter_out,
    _gather,
    _gather_out,
)


def apply() -> None:
    """Adds those that this build of PyTorch does not have."""
    for function in _FUNCTIONS:
        if not hasattr(torch._C, function.__name__):
            setattr(torch._C, function.__name__, function)
