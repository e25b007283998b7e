"""The storage and tensor types of old programs: torch.tpu.FloatStorage, torch.tpu.FloatTensor and so on."""

from typing import Any, NoReturn

import torch
from torch.storage import _LegacyStorage

_STORAGES = {
    "BFloat16Storage": torch.bfloat16,
    "BoolStorage": torch.bool,
    "ByteStorage": torch.uint8,
    "CharStorage": torch.int8,
    "ComplexDoubleStorage": torch.complex128,
    "ComplexFloatStorage": torch.complex64,
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "IntStorage": torch.int32,
    "LongStorage": torch.int64,
    "ShortStorage": torch.int16,
}
_TENSORS = {
    name.replace("Storage", "Tensor"): dtype for name, dtype in _STORAGES.items() if not name.startswith("Complex")
}


class _TpuLegacyStorage(_LegacyStorage):
    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("from_buffer: Not available for tpu storage")

    @classmethod
    def _new_with_weak_ptr(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("_new_with_weak_ptr: Not available for tpu storage")

    @classmethod
    def _new_shared_filename(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("_new_shared_filename: Not available for tpu storage")


class _TensorType(type):
    """The type of torch.tpu.FloatTensor and its like: calling one makes a tensor, isinstance asks device and dtype."""

    dtype: torch.dtype

    def __call__(cls, *args: Any, device: Any = "tpu") -> torch.Tensor:
        return torch.empty(0, dtype=cls.dtype, device=device).new(*args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) and instance.device.type == "tpu" and instance.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class '{cls.__name__}'>"


def types() -> dict[str, Any]:
    """All of them by name."""
    storages = {
        name: type(name, (_TpuLegacyStorage,), {"__module__": "torch.tpu", "dtype": dtype, "_dtype": dtype})
        for name, dtype in _STORAGES.items()
    }
    # Tensor.type() reads a class by its full name.
    tensors = {
        name: _TensorType(f"torch.tpu.{name}", (), {"__module__": "torch.tpu", "dtype": dtype})
        for name, dtype in _TENSORS.items()
    }
    return {**storages, **tensors}
