"""torch.compile: the backend `tpu`, and the choice of a backend where the user names none."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

CompiledFn = Callable[..., Any]


def tpu(graph: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> CompiledFn:
    """The backend for tensors on the device. Raises NotImplementedError: eager runs such functions unchanged."""
    raise NotImplementedError(
        "torch.compile does not support tensors on the device 'tpu' yet: call the function without torch.compile"
    )


def tpu_or_inductor(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> CompiledFn:
    """The default backend: `tpu` for a graph with tensors on the device, else Inductor with `mode` and `options`."""
    if _uses_tpu(graph, inputs):
        return tpu(graph, inputs, mode=mode, options=options)
    wrapper: Any = torch._TorchCompileInductorWrapper(mode, options, None)
    compiled: CompiledFn = wrapper(graph, inputs)
    return compiled


def _uses_tpu(graph: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    values = [*inputs, *(node.meta.get("example_value") for node in graph.graph.nodes)]
    return any(isinstance(value, torch.Tensor) and value.device.type == "tpu" for value in values)
