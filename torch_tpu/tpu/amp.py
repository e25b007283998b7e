"""torch.cuda.amp's names for programs that still use them; torch.amp with "tpu" is the way to write it today."""

import functools
from typing import Any

import torch
from typing_extensions import deprecated

from torch_tpu.tpu._device import is_available

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


def amp_definitely_not_available() -> bool:
    """Whether the device cannot be used here."""
    return not is_available()


@deprecated(
    "torch.tpu.amp.autocast(args...) is deprecated: use torch.amp.autocast('tpu', args...)", category=FutureWarning
)
class autocast(torch.amp.autocast):
    """torch.amp.autocast for the device."""

    def __new__(
        cls, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> "autocast":
        return super().__new__(cls)

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("tpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler for the device."""

    @deprecated(
        "torch.tpu.amp.GradScaler(args...) is deprecated: use torch.amp.GradScaler('tpu', args...)",
        category=FutureWarning,
    )
    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("tpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@deprecated(
    "torch.tpu.amp.custom_fwd(args...) is deprecated: use torch.amp.custom_fwd(args..., device_type='tpu')",
    category=FutureWarning,
)
def custom_fwd(fwd: Any = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """torch.amp.custom_fwd for the device."""
    return functools.partial(torch.amp.custom_fwd, device_type="tpu")(fwd=fwd, cast_inputs=cast_inputs)


@deprecated(
    "torch.tpu.amp.custom_bwd(args...) is deprecated: use torch.amp.custom_bwd(args..., device_type='tpu')",
    category=FutureWarning,
)
def custom_bwd(bwd: Any) -> Any:
    """torch.amp.custom_bwd for the device."""
    return functools.partial(torch.amp.custom_bwd, device_type="tpu")(bwd)
