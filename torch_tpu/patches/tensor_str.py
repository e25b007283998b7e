"""Printing a tensor copies it to the CPU first.

PyTorch 2.13 does so for the devices xla, lazy, ipu and mtia (torch/_tensor_str.py); on others printing runs about ten
operators on the tensor, each a program to compile here.
"""

from typing import Any

import torch
import torch._tensor_str


def apply() -> None:
    """Wraps the function that formats a tensor's values."""
    module: Any = torch._tensor_str
    original = module._tensor_str

    def _tensor_str(self: torch.Tensor, indent: int) -> Any:
        return original(self.detach().cpu() if self.device.type == "tpu" else self, indent)

    module._tensor_str = _tensor_str
