"""DLPack is refused for tensors on the device, in one sentence.

PyTorch 2.13 would export them: as an unknown kind of device, with an address that nothing can read. An export to the
CPU (`dl_device=(1, 0)`, `numpy.from_dlpack(x, device="cpu")`) copies and is let through.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack

_CPU = 1  # kDLCPU


def _refusing(export: Callable[..., Any]) -> Callable[..., Any]:
    def to_dlpack(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("dl_device")
        if tensor.device.type == "tpu" and (wanted is None or int(wanted[0]) != _CPU):
            raise BufferError("a tensor on the device 'tpu' has no memory that DLPack could share: use tensor.cpu()")
        return export(tensor, *args, **kwargs)

    to_dlpack.__doc__ = export.__doc__
    return to_dlpack


def apply() -> None:
    """Wraps PyTorch's three ways to export."""
    extension: Any = torch._C
    extension._to_dlpack_versioned = _refusing(extension._to_dlpack_versioned)
    legacy = _refusing(extension._to_dlpack)
    extension._to_dlpack = legacy
    for module in (torch, torch.utils.dlpack):
        vars(module)["to_dlpack"] = legacy
