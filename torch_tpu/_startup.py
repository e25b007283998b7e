"""What happens on import: the device's name, `torch.tpu`, the extension module and the patches.

Being installed must be harmless. Whatever goes wrong here is warned about once and raised at the first use of the
device; `import torch` and programs for the CPU go on.
"""

import contextlib
import importlib
import importlib.metadata
import sys
import types
import warnings

import torch

from torch_tpu import _runtime

TORCH_SERIES = "2.13"
_started = False


def start() -> None:
    """Adds the device to PyTorch, once."""
    global _started
    if _started:
        return
    _started = True
    try:
        _add_device()
    except Exception as error:
        _refuse(error)


def _refuse(error: Exception) -> None:
    _runtime.set_startup_error(error)
    with contextlib.suppress(RuntimeWarning):  # where warnings are errors, `import torch` still works
        warnings.warn(f"the device 'tpu' cannot be used: {error}", RuntimeWarning, stacklevel=2)


def _add_device() -> None:
    name = torch._C._get_privateuse1_backend_name()
    if name != "privateuseone" or hasattr(torch, "tpu"):
        raise RuntimeError(
            f"another package has already added the device '{name}' to PyTorch, which takes one such device a "
            "process; uninstall it, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import only one of them"
        )
    torch.utils.rename_privateuse1_backend("tpu")
    from torch_tpu import tpu

    torch._register_device_module("tpu", tpu)
    _alias_submodules(tpu)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _check_neighbours()
    _load_extension()
    try:
        tpu.modes.set_from_environment()
    except ValueError as error:
        _refuse(error)
    _patch()


def _alias_submodules(package: types.ModuleType) -> None:
    """`import torch.tpu.memory` finds the module that `torch.tpu` uses, not a second copy."""
    for name, module in list(sys.modules.items()):
        if name.startswith(package.__name__ + "."):
            sys.modules["torch.tpu" + name.removeprefix(package.__name__)] = module


def _check_neighbours() -> None:
    if not torch.__version__.startswith(TORCH_SERIES + "."):
        raise RuntimeError(
            f"this build of torchtpu is for torch {TORCH_SERIES}, and torch {torch.__version__} is installed: "
            f"pip install 'torch>={TORCH_SERIES},<2.14', or a torchtpu built for your version"
        )
    try:
        theirs = importlib.metadata.version("torch-tpu")
    except importlib.metadata.PackageNotFoundError:
        return
    raise RuntimeError(
        f"the package torch-tpu {theirs} is installed beside torchtpu; both provide the module torch_tpu and the "
        "device 'tpu': uninstall one of them (pip uninstall torch-tpu, then reinstall torchtpu)"
    )


def _load_extension() -> None:
    try:
        extension = importlib.import_module("torch_tpu._C")
    except ImportError as error:
        raise RuntimeError(
            f"the extension module of torchtpu does not load ({error}): run `make build` in a source tree, or "
            "reinstall torchtpu"
        ) from error
    from torch_tpu import decompose

    extension.set_decomposer(decompose.decompose)
    _runtime.set_extension(extension)


def _patch() -> None:
    from torch_tpu.patches import (
        autograd_threads,
        data_parallel,
        dlpack,
        dynamo,
        module_conversion,
        multiprocessing,
        tensor_str,
    )

    autograd_threads.apply()
    module_conversion.apply()
    tensor_str.apply()
    dlpack.apply()
    data_parallel.apply()
    multiprocessing.apply()
    dynamo.apply()
