"""torch._dynamo learns of the device when a program first imports it: its import is too dear for `import torch`.

Two modules of it are met as they load. In torch._dynamo.device_interface our interface replaces upstream's TpuInterface
(which refuses float64 and float16); in torch._dynamo.backends.registry the backend `tpu` is registered and becomes the
default for graphs with tensors on the device, while all others keep Inductor.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence


def _on_device_interface(module: types.ModuleType) -> None:
    from torch_tpu import dynamo_device

    module.init_device_reg()
    module.register_interface_for_device("tpu", dynamo_device.make_interface(module.DeviceInterface))


def _on_registry(module: types.ModuleType) -> None:
    from torch_tpu import dynamo_backend

    module.register_backend(dynamo_backend.tpu, name="tpu")
    module.set_default_backend(dynamo_backend.tpu_or_inductor)


_ACTIONS: dict[str, Callable[[types.ModuleType], None]] = {
    "torch._dynamo.device_interface": _on_device_interface,
    "torch._dynamo.backends.registry": _on_registry,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the two modules as Python would, and adds an action to the end of their execution."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        action = _ACTIONS.get(name)
        if action is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def apply() -> None:
    """Acts at once on a module that is loaded already, and waits for the others."""
    for name, action in _ACTIONS.items():
        if name in sys.modules:
            action(sys.modules[name])
    sys.meta_path.insert(0, _Finder())
