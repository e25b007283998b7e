"""The device as Dynamo sees it, in place of upstream's TpuInterface."""

from typing import Any

import torch

from torch_tpu import tpu


def make_interface(base: type[Any]) -> type[Any]:
    """A subclass of torch._dynamo.device_interface.DeviceInterface, whose module is still loading when this runs."""

    class DeviceInterface(base):
        device = tpu.device
        Stream = torch.Stream
        Event = torch.Event
        current_device = staticmethod(tpu.current_device)
        set_device = staticmethod(tpu.set_device)
        exchange_device = staticmethod(tpu.exchange_device)
        maybe_exchange_device = staticmethod(tpu.exchange_device)
        device_count = staticmethod(tpu.device_count)
        is_available = staticmethod(tpu.is_available)
        stream = staticmethod(tpu.stream)
        current_stream = staticmethod(tpu.current_stream)
        set_stream = staticmethod(tpu.set_stream)
        synchronize = staticmethod(tpu.synchronize)
        memory_allocated = staticmethod(tpu.memory_allocated)
        get_compute_capability = staticmethod(tpu.get_device_name)

        class Worker:
            set_device = staticmethod(tpu.set_device)
            current_device = staticmethod(tpu.current_device)
            get_device_properties = staticmethod(tpu.get_device_properties)

        @staticmethod
        def get_raw_stream(device_idx: int) -> int:
            return int(tpu.current_stream(device_idx).stream_id)

        @staticmethod
        def is_bf16_supported(including_emulation: bool = False) -> bool:
            return tpu.is_bf16_supported(including_emulation)

        @classmethod
        def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
            return True

    return DeviceInterface
