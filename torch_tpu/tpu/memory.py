"""Device memory: what is held, its peak, and the statistics torch.cuda users know."""

from typing import Any

import torch

from torch_tpu import _runtime
from torch_tpu.tpu._device import Device, index_of


def memory_stats(device: Device = None) -> dict[str, Any]:
    """Statistics under torch.cuda's keys, such as "allocated_bytes.all.peak"."""
    index = index_of(device)
    stats: dict[str, Any] = _runtime.started().memory_stats(index)
    return stats


def memory_allocated(device: Device = None) -> int:
    """Bytes of the buffers that live now."""
    return int(memory_stats(device)["allocated_bytes.all.current"])


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that lived at once since the start or `reset_peak_memory_stats`."""
    return int(memory_stats(device)["allocated_bytes.all.peak"])


def memory_reserved(device: Device = None) -> int:
    """Bytes taken from the device, cached ones included."""
    return int(memory_stats(device)["reserved_bytes.all.current"])


def max_memory_reserved(device: Device = None) -> int:
    """The most of them since the start or `reset_peak_memory_stats`."""
    return int(memory_stats(device)["reserved_bytes.all.peak"])


def reset_peak_memory_stats(device: Device = None) -> None:
    """Lets the peaks start from what is held now."""
    index = index_of(device)
    _runtime.started().reset_peak_memory_stats(index)


def reset_max_memory_allocated(device: Device = None) -> None:
    """As `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Sets the running totals to zero."""
    index = index_of(device)
    _runtime.started().reset_accumulated_memory_stats(index)


def empty_cache() -> None:
    """Gives back cached memory that no tensor uses; does nothing before the device has started."""
    extension = _runtime.require()
    if extension.is_initialized():
        extension.empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of the device."""
    free, total = torch.accelerator.get_memory_info(index_of(device))
    return int(free), int(total)
