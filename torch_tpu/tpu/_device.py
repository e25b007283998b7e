"""Which devices there are, which one is current, and what it is."""

import dataclasses
import re
from typing import Any, TypeAlias

import torch

from torch_tpu import _runtime

Device: TypeAlias = torch.device | str | int | None


def index_of(device: Device, optional: bool = True) -> int:
    """The index that `device` means; starts the device. Raises ValueError for a device of another type."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "tpu":
            raise ValueError(f"Expected a tpu device, but got: {device}")
        device = device.index
    if device is None:
        if not optional:
            raise ValueError("Expected a device with an index, such as 'tpu:0'")
        return current_device()
    if isinstance(device, bool) or not isinstance(device, int):
        raise TypeError(f"Expected a torch.device, a device string, an index or None, but got: {device!r}")
    count = _runtime.started().device_count()
    if not 0 <= device < count:
        raise RuntimeError(
            f"invalid device ordinal {device}: there {'is 1 tpu device' if count == 1 else f'are {count} tpu devices'}"
            f", numbered from 0 (TORCH_TPU_NUM_DEVICES says how many a CPU host shows)"
        )
    return device


def is_available() -> bool:
    """Whether the device can be used here: never raises and never starts it."""
    return device_count() > 0


def device_count() -> int:
    """How many devices there are; 0 where the device cannot be used."""
    if _runtime.startup_error() is not None:
        return 0
    try:
        return int(_runtime.require().device_count())
    except (RuntimeError, ValueError):
        return 0


def current_device() -> int:
    """The index of this thread's current device."""
    return int(_runtime.started().current_device())


def set_device(device: Device) -> None:
    """Makes `device` this thread's current device."""
    index = index_of(device)
    _runtime.started().set_device(index)


def exchange_device(index: int) -> int:
    """Makes the device of that index current and returns the one before; a negative index changes nothing."""
    if index < 0:
        return -1
    return int(_runtime.started().exchange_device(index_of(index)))


class device:
    """Context manager: `device` is current inside it. A negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = device if isinstance(device, int) and device < 0 else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = exchange_device(self.idx)

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        exchange_device(self.prev_idx)


class device_of(device):
    """Context manager: the device of a tensor or storage is current inside it; one elsewhere changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "tpu" else -1)


def synchronize(device: Device = None) -> None:
    """Waits for all work queued on `device`."""
    index = index_of(device)
    _runtime.started().synchronize(index)


def platform() -> str:
    """The PJRT platform that the device runs on: "tpu", or "cpu" on a host without one."""
    return str(_runtime.started().platform())


def platform_version() -> str:
    """The version of the PJRT plugin and its compiler."""
    return str(_runtime.started().platform_version())


@dataclasses.dataclass(frozen=True)
class _TpuDeviceProperties:
    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    id: int
    process_index: int


def get_device_properties(device: Device = None) -> _TpuDeviceProperties:
    """What is known of a device.

    name (its kind), major and minor (`get_device_capability`), total_memory (bytes; the host's without a TPU),
    multi_processor_count (cores that run a program: 1), and PJRT's id and process_index.
    """
    index = index_of(device)
    known = _runtime.started().device_properties(index)
    generation = re.search(r"tpu\s*v?(\d+)", known["name"], re.IGNORECASE)
    return _TpuDeviceProperties(
        name=known["name"],
        major=int(generation.group(1)) if generation else 0,
        minor=0,
        total_memory=known["total_memory"] or torch.accelerator.get_memory_info(index)[1],
        multi_processor_count=1,
        id=known["id"],
        process_index=known["process_index"],
    )


def get_device_name(device: Device = None) -> str:
    """The device's kind, such as "TPU v5 lite"."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The TPU's generation as (major, minor); (0, 0) on a host without one."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether `device` can copy from `peer_device`: true of any two different devices of a process."""
    return index_of(device) != index_of(peer_device)


def device_memory_used(device: Device = None) -> int:
    """Bytes of the device's memory in use."""
    free, total = torch.accelerator.get_memory_info(index_of(device))
    return int(total - free)


def ipc_collect() -> None:
    """Frees memory left over from sharing tensors with other processes, which the device does not do: nothing."""
    _runtime.started()


def is_current_stream_capturing() -> bool:
    """False: streams are not captured."""
    return False


_SYNC_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens where the host waits for the device.

    "default" or 0: nothing; "warn" or 1: a warning; "error" or 2: a RuntimeError. Copies to the host and .item()
    count, also inside operators whose sizes depend on values, such as nonzero.
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_MODES[debug_mode]
    if debug_mode not in _SYNC_MODES.values():
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    _runtime.started().set_sync_debug_mode(debug_mode)


def get_sync_debug_mode() -> int:
    """0, 1 or 2: see `set_sync_debug_mode`."""
    return int(_runtime.started().sync_debug_mode())


def is_tf32_supported() -> bool:
    """False: the type is CUDA's. torch.set_float32_matmul_precision sets how exactly float32 is multiplied."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: bfloat16 is the device's own type."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that torch.autocast("tpu") takes."""
    return [torch.bfloat16, torch.float16]
