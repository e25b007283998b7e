"""`Module.to("tpu")` swaps the parameters' contents and keeps the parameter objects.

Without this, PyTorch 2.13 makes new parameters for devices that it does not know: tied weights come apart and an
optimizer made before the move keeps the old ones. Conversions that neither leave nor reach the device go PyTorch's own
way. A move refuses with "Couldn't swap" where a weak reference to a parameter exists. TorchScript modules hold their
tensors in C++, where a swap of Python objects does not reach and where `Module._apply` finds no Parameter objects to
replace: those get a conversion of their own.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

_plain_apply = torch.nn.Module._apply


def apply() -> None:
    """Turns it on for the process."""
    torch.nn.Module._apply = _apply_module
    torch.jit.RecursiveScriptModule._apply = _apply_script_module


def _apply_module(module: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
    with _swapping() if _moves(module, fn) else contextlib.nullcontext():
        return _plain_apply(module, fn, recurse)


def _moves(module: Any, fn: Callable[[Any], Any]) -> bool:
    """Whether `fn` takes one of the module's tensors to the device or away from it, tried on empty ones."""
    tensors = (t for held in (module._parameters, module._buffers) for t in held.values() if t is not None)
    kinds = {(tensor.device, tensor.dtype) for tensor in tensors}
    try:
        probes = [torch.empty(0, dtype=dtype, device=device) for device, dtype in kinds]
        return any((fn(probe).device.type == "tpu") != (probe.device.type == "tpu") for probe in probes)
    except Exception:  # whatever `fn` has to say about the tensors, it says when they are converted
        return False


@contextlib.contextmanager
def _swapping() -> Iterator[None]:
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


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
