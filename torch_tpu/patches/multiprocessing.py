"""Sending a tensor on the device to another process is refused, in one sentence that says what to do.

PyTorch 2.13 refuses as well, with "_share_fd_: only available on CPU".
"""

from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions


def _reduce(tensor: torch.Tensor) -> Any:
    if tensor.device.type == "tpu":
        raise RuntimeError(
            "a tensor on the device 'tpu' cannot be shared with another process: send tensor.cpu(), and "
            "move it to the device again there"
        )
    return reductions.reduce_tensor(tensor)


def apply() -> None:
    """Replaces the way tensors and parameters are pickled for another process."""
    for kind in (torch.Tensor, torch.nn.parameter.Parameter):
        ForkingPickler.register(kind, _reduce)
