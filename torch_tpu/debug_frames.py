"""What an error raised during a backward says about the forward it belongs to."""

import os
import re
from typing import Any

import torch

_LIBRARY = os.path.dirname(torch.__file__) + os.sep
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)')


def describe_backward(node: Any) -> str:
    """A line that names an autograd node, and the line of its forward where anomaly detection recorded it."""
    text = f"\n  in the backward of {node.name()}"
    for entry in reversed(node.metadata.get("traceback_", [])):
        frame = _FRAME.search(entry)
        if frame and not frame["file"].startswith(_LIBRARY):
            return f"{text}, whose forward ran at {frame['file']}:{frame['line']} in {frame['name']}"
    return f"{text} (torch.autograd.detect_anomaly() records the line of its forward)"
