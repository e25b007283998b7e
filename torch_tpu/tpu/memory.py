"""Device memory: what is held, its peak, the statistics torch.cuda users know, and the memory fraction of a process.

The engine counts arrays as they are made and freed, and the temporary memory of programs while they run. Nothing is
cached or rounded: reserved, active, requested and allocated bytes are the same. See docs/memory.md.
"""

import collections
import warnings
from typing import Any

import torch
from typing_extensions import deprecated

from torch_tpu import _runtime
from torch_tpu.tpu import _absent
from torch_tpu.tpu._device import Device, index_of
from torch_tpu.tpu._memory_history import _allocation_traceback as _allocation_traceback
from torch_tpu.tpu._memory_history import _dump_snapshot as _dump_snapshot
from torch_tpu.tpu._memory_history import _get_memory_metadata as _get_memory_metadata
from torch_tpu.tpu._memory_history import _record_memory_history as _record_memory_history
from torch_tpu.tpu._memory_history import _save_memory_usage as _save_memory_usage
from torch_tpu.tpu._memory_history import _save_segment_usage as _save_segment_usage
from torch_tpu.tpu._memory_history import _set_memory_metadata as _set_memory_metadata
from torch_tpu.tpu._memory_history import _snapshot as _snapshot
from torch_tpu.tpu._memory_history import memory_snapshot

__all__ = [
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]


def __getattr__(name: str) -> Any:
    raise _absent.explain("torch.tpu.memory", name)


def _is_started() -> bool:
    return _runtime.startup_error() is None and bool(_runtime.require().is_initialized())


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """Statistics under torch.cuda's keys, nested: ["allocation"]["all"]["peak"]; {} before the device has started."""
    if not _is_started():
        return {}
    index = index_of(device)
    _runtime.started().drain()  # here without Python's lock
    stats: dict[str, Any] = torch._C._accelerator_getDeviceStats(index)
    return {**stats, "num_oom_rejections": 0, "reserved_bytes_by_private_pools": {}}


def memory_stats(device: Device = None) -> dict[str, Any]:
    """Statistics under torch.cuda's keys, such as "allocated_bytes.all.peak"; {} before the device has started."""
    return _flat(memory_stats_as_nested_dict(device))


def _flat(nested: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat[prefix] = value

    visit("", nested)
    return collections.OrderedDict(sorted(flat.items()))


def memory_allocated(device: Device = None) -> int:
    """Bytes of the arrays that live now; 0 before the device has started."""
    return int(memory_stats(device).get("allocated_bytes.all.current", 0))


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that lived at once, programs' temporary memory included, since the start or a reset."""
    return int(memory_stats(device).get("allocated_bytes.all.peak", 0))


def memory_reserved(device: Device = None) -> int:
    """Bytes taken from the device: those of `memory_allocated`, since nothing is cached."""
    return int(memory_stats(device).get("reserved_bytes.all.current", 0))


def max_memory_reserved(device: Device = None) -> int:
    """The most of them since the start or `reset_peak_memory_stats`."""
    return int(memory_stats(device).get("reserved_bytes.all.peak", 0))


@deprecated("torch.tpu.memory_cached has been renamed to torch.tpu.memory_reserved", category=FutureWarning)
def memory_cached(device: Device = None) -> int:
    """As `memory_reserved`."""
    return memory_reserved(device)


@deprecated("torch.tpu.max_memory_cached has been renamed to torch.tpu.max_memory_reserved", category=FutureWarning)
def max_memory_cached(device: Device = None) -> int:
    """As `max_memory_reserved`."""
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Lets the peaks start from what is held now."""
    index = index_of(device)
    _runtime.started().drain()
    torch._C._accelerator_resetPeakStats(index)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Sets the running totals, "allocated" and "freed", to zero."""
    index = index_of(device)
    _runtime.started().drain()
    torch._C._accelerator_resetAccumulatedStats(index)


def reset_max_memory_allocated(device: Device = None) -> None:
    """As `reset_peak_memory_stats`, with a warning."""
    _reset_peaks("reset_max_memory_allocated", device)


def reset_max_memory_cached(device: Device = None) -> None:
    """As `reset_peak_memory_stats`, with a warning."""
    _reset_peaks("reset_max_memory_cached", device)


def _reset_peaks(name: str, device: Device) -> None:
    text = f"torch.tpu.{name} calls torch.tpu.reset_peak_memory_stats, which resets all peak memory stats."
    warnings.warn(text, FutureWarning, stacklevel=3)
    reset_peak_memory_stats(device)


def empty_cache() -> None:
    """Gives back cached memory that no tensor uses: there is none."""
    if _is_started():
        _runtime.require().empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of the device."""
    free, total = torch.accelerator.get_memory_info(index_of(device))
    return int(free), int(total)


_fractions: dict[int, float] = {}


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limits what this process may take of `device` to `fraction` of its memory.

    What would go past the limit raises torch.OutOfMemoryError. Raises TypeError for what is no float and ValueError for
    one outside of 0 to 1.
    """
    index = index_of(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _runtime.started().set_memory_fraction(index, fraction)
    _fractions[index] = fraction


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The fraction of the device's memory that this process may take: 1.0 where nothing was set."""
    return _fractions.get(index_of(device), 1.0)


def get_allocator_backend() -> str:
    """Where memory comes from: always "pjrt"."""
    return "pjrt"


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Statistics of pinned host memory under torch.cuda's keys, nested; {} before the device has started.

    Nothing is cached: "active_requests" and "allocations" are the same. Times are not measured and have no keys.
    """
    if not _is_started():
        return {}
    stats: dict[str, Any] = _runtime.started().host_memory_stats()
    return stats


def host_memory_stats() -> dict[str, Any]:
    """Statistics of pinned host memory, such as "allocated_bytes.peak"."""
    return _flat(host_memory_stats_as_nested_dict())


def reset_peak_host_memory_stats() -> None:
    """Lets the peaks of pinned host memory start from what is held now."""
    _runtime.require().reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    """Sets the running totals of pinned host memory to zero."""
    _runtime.require().reset_accumulated_host_memory_stats()


_SUMMARY = (
    ("allocated_bytes", "Allocated memory"),
    ("active_bytes", "Active memory"),
    ("requested_bytes", "Requested memory"),
    ("reserved_bytes", "TPU reserved memory"),
    ("inactive_split_bytes", "Non-releasable memory"),
    ("allocation", "Allocations"),
    ("active", "Active allocs"),
    ("segment", "TPU reserved segments"),
    ("inactive_split", "Non-releasable allocs"),
)
_POOLS = (("all", ""), ("large_pool", "      from large pool"), ("small_pool", "      from small pool"))


def _amount(value: int, largest: int, is_bytes: bool) -> str:
    units, step, limit = (
        (("B  ", "KiB", "MiB", "GiB", "TiB"), 1024, 768 * 1024) if is_bytes else ((" ", "K", "M"), 1000, 750_000)
    )
    unit = 0
    while largest >= limit and unit + 1 < len(units):
        value, largest, unit = value // step, largest // step, unit + 1
    return f"{value:6d} {units[unit]}" if is_bytes else f"{value:7d} {units[unit]} "


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The statistics as a table to print; `abbreviated` leaves the size classes out."""
    index = index_of(device)
    _runtime.started()
    stats = memory_stats(index)
    rule, thin = "=" * 75, "-" * 75
    counts = f"OOMs: {stats['num_ooms']:<12d} | {'':6} allocation retries: {stats['num_alloc_retries']:<8d}"
    lines = [
        rule,
        f" {'':16} PyTorch TPU memory summary, device ID {index:<18d} ",
        thin,
        f"  {'':9} {counts}".ljust(75),
        rule,
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ",
    ]
    for key, title in _SUMMARY:
        lines.append(thin)
        names = ("current", "peak", "allocated", "freed")
        scales = [stats[f"{key}.all.{name}"] for name in names]
        for pool, label in _POOLS[:1] if abbreviated else _POOLS:
            cells = (
                _amount(stats[f"{key}.{pool}.{name}"], scale, key.endswith("bytes"))
                for name, scale in zip(names, scales, strict=True)
            )
            lines.append(f" {label or title:<21} | {' | '.join(cells)} ")
    lines.append(rule)
    return "".join(f"|{line}|\n" for line in lines)
