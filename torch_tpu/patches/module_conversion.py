"""`Module.to("tpu")` swaps the parameters' contents and keeps the parameter objects.

Without this, PyTorch 2.13 makes new parameters for devices that it does not know: tied weights come apart and an
optimizer made before the move keeps the old ones. It holds for all devices, and refuses with "Couldn't swap" where a
weak reference to a parameter exists. TorchScript modules hold their tensors in C++, where a swap of Python objects does
not reach and where `Module._apply` finds no Parameter objects to replace: those get a conversion of their own.
"""

from collections.abc import Callable
from typing import Any

import torch


def apply() -> None:
    """Turns it on for the process."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.jit.RecursiveScriptModule._apply = _apply_script_module


def _apply_script_module(module: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
    """As `Module._apply`: in place where the type allows, else a new tensor wherever the old one was held."""
    converted: dict[int, Any] = {}
    for part in module.modules() if recurse else (module,):
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if tensor._cdata not in converted:
                    converted[tensor._cdata] = _convert(tensor, fn)
                new = converted[tensor._cdata]
                if new is not tensor:
                    part._c.setattr(name, new)
    return module


def _convert(tensor: Any, fn: Callable[[Any], Any]) -> Any:
    with torch.no_grad():
        new = fn(tensor)
        grad = None if tensor.grad is None else fn(tensor.grad)
    if torch._has_compatible_shallow_copy_type(tensor, new):
        tensor.data = new
        new = tensor
    else:
        new = new.detach().requires_grad_(tensor.requires_grad)
    if grad is not None:
        new.grad = grad
    return new
