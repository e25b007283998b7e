"""TorchTPU: the device `tpu` for PyTorch, over StableHLO and PJRT.

PyTorch loads this package by itself (entry point group `torch.backends`); the user's face of it is `torch.tpu`.
"""

__version__ = "0.1.0"


def _autoload() -> None:
    """Adds the device to PyTorch; called at the end of `import torch`. Never raises: see `_startup`."""
    from torch_tpu import _startup

    _startup.start()


# With autoloading switched off, or on `import torch_tpu` before torch, this is what adds the device.
import torch  # noqa: E402, F401

_autoload()
