"""`Module.to("tpu")` swaps the parameters' contents and keeps the parameter objects.

Without this, PyTorch 2.13 makes new parameters for devices that it does not know: tied weights come apart and an
optimizer made before the move keeps the old ones. It holds for all devices, and refuses with "Couldn't swap" where a
weak reference to a parameter exists.
"""

import torch


def apply() -> None:
    """Turns it on for the process."""
    torch.__future__.set_swap_module_params_on_conversion(True)
