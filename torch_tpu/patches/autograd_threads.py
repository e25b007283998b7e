"""Backward runs in the thread that calls it, as on the CPU.

PyTorch runs the backward of an accelerator's tensors in a thread of its own: 150 to 200 us each time, and that thread
can abort the process at exit. The setting is a thread's; the engine sets it for the other threads that use the device.
"""

import torch


def apply() -> None:
    """Switches it off in the importing thread."""
    torch.autograd.set_multithreading_enabled(False)
