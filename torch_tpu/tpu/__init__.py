"""torch.tpu: devices, streams, random numbers, memory, eager modes and counters, named as in torch.cuda.

Nothing here starts the device before it must. Functions that take `device` accept a torch.device, "tpu:0", an index, or
None for the current device, and raise RuntimeError for a device that does not exist and ValueError for another type.
"""

import sys
import types
from typing import Any

import torch

from torch_tpu import _runtime
from torch_tpu.tpu import (
    _absent,
    _legacy,
    _precision,
    amp,
    comm,
    compiler,
    debug,
    fusion,
    memory,
    modes,
    random,
    streams,
)
from torch_tpu.tpu._device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_memory_used,
    device_of,
    exchange_device,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_sync_debug_mode,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_current_stream_capturing,
    is_tf32_supported,
    platform,
    platform_version,
    set_device,
    set_sync_debug_mode,
    synchronize,
)
from torch_tpu.tpu._precision import Precision, precision
from torch_tpu.tpu.fusion import (
    flush,
    fusion_report,
    fusion_stats,
    is_materialized,
    pending,
    reset_fusion_stats,
)
from torch_tpu.tpu.memory import (
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_tpu.tpu.modes import (
    EagerMode,
    compile_stats,
    cpu_fallback,
    expect_no_compile,
    get_eager_mode,
    reset_compile_stats,
    set_eager_mode,
)
from torch_tpu.tpu.random import _get_rng_state_offset as _get_rng_state_offset
from torch_tpu.tpu.random import _set_rng_state_offset as _set_rng_state_offset
from torch_tpu.tpu.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_tpu.tpu.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

OutOfMemoryError = torch.OutOfMemoryError
AcceleratorError = torch.AcceleratorError
has_half = True
has_magma = False

__all__ = [
    "AcceleratorError",
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "EagerMode",
    "Event",
    "FloatStorage",
    "FloatTensor",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "OutOfMemoryError",
    "Precision",
    "ShortStorage",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "allow_excess_precision",
    "amp",
    "can_device_access_peer",
    "comm",
    "compile_stats",
    "compiler",
    "cpu_fallback",
    "current_device",
    "current_stream",
    "debug",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "eager_mode",
    "empty_cache",
    "exchange_device",
    "expect_no_compile",
    "flush",
    "fusion",
    "fusion_report",
    "fusion_stats",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_eager_mode",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_materialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "modes",
    "pending",
    "platform",
    "platform_version",
    "precision",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_compile_stats",
    "reset_fusion_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_eager_mode",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "synchronize",
]

globals().update(_legacy.types())


def __getattr__(name: str) -> Any:
    raise _absent.explain("torch.tpu", name)


def init() -> None:
    """Starts the device now instead of at its first use. Raises RuntimeError where that is not possible."""
    _runtime.started()


def is_initialized() -> bool:
    """Whether the device has started in this process."""
    return _runtime.startup_error() is None and bool(_runtime.require().is_initialized())


def _lazy_init() -> None:
    """What PyTorch calls before it makes the first tensor on the device."""
    _runtime.started()


def _is_in_bad_fork() -> bool:
    """Whether this process is the forked child of one that had started the device, which cannot be used here."""
    return _runtime.startup_error() is None and bool(_runtime.require().is_in_bad_fork())


class _Module(types.ModuleType):
    """torch.tpu's own type: a module with properties."""

    @property
    def eager_mode(self) -> EagerMode:
        """The process's default eager mode; `set_eager_mode` overrides it for a thread."""
        return modes.process_eager_mode()

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode) -> None:
        modes.set_process_eager_mode(mode)

    @property
    def allow_excess_precision(self) -> bool:
        """Whether programs may leave out roundings to bfloat16 and float16 between operators. False at the start."""
        return _precision.excess_precision_allowed()

    @allow_excess_precision.setter
    def allow_excess_precision(self, allowed: bool) -> None:
        _precision.allow_excess_precision(allowed)

    @property
    def default_generators(self) -> tuple[torch.Generator, ...]:
        """The random number generator of each device."""
        return random.default_generators()

    @property
    def _initialized(self) -> bool:
        return is_initialized()


sys.modules[__name__].__class__ = _Module
