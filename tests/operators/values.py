"""How the cases of the operator tests are written: tensors as specifications, made for a dtype, layout and device."""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import torch


class Dim(int):
    """A size that is 0 in the zero-size run of a case."""


N = Dim(3)


@dataclasses.dataclass(frozen=True)
class Spec:
    shape: tuple[int, ...]
    kind: str = "normal"
    dtype: torch.dtype | None = None  # None: the dtype under test
    high: int = 0  # of indices


class Marker:
    """Stands for the dtype or the device under test among a case's arguments."""


DTYPE, DEVICE = Marker(), Marker()


@dataclasses.dataclass(frozen=True)
class Case:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Callable[..., Any] | None = None  # instead of the operator: the public one that calls it

    def specs(self) -> list[Spec]:
        found: list[Spec] = []
        map_specs(lambda spec: found.append(spec), (self.args, self.kwargs))
        return found


def t(*shape: int, kind: str = "normal") -> Spec:
    """A tensor of the dtype under test."""
    return Spec(shape, kind)


def f(*shape: int, kind: str = "normal") -> Spec:
    return Spec(shape, kind, torch.float32)


def z(*shape: int) -> Spec:
    return Spec(shape, "normal", torch.complex64)


def i(*shape: int, high: int) -> Spec:
    return Spec(shape, "index", torch.int64, high)


def b(*shape: int) -> Spec:
    return Spec(shape, "normal", torch.bool)


def c(*args: Any, **kwargs: Any) -> Case:
    return Case(args, kwargs)


def through(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Case:
    return Case(args, kwargs, function)


def map_specs(change: Callable[[Spec], Any], tree: Any) -> Any:
    if isinstance(tree, Spec):
        return change(tree)
    if isinstance(tree, list | tuple):
        return type(tree)(map_specs(change, item) for item in tree)
    if isinstance(tree, dict):
        return {key: map_specs(change, item) for key, item in tree.items()}
    return tree


def fill(spec: Spec, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """The values: the same for every device, near the same for every dtype."""
    g = torch.Generator().manual_seed(seed)
    shape = tuple(spec.shape)
    if spec.kind == "index":
        return torch.randint(0, max(spec.high, 1), shape, generator=g).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) > 0.4
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype, generator=g)
    if spec.kind == "distinct":  # no ties, exact in every dtype
        order = torch.randperm(max(torch.Size(shape).numel(), 1), generator=g)[: torch.Size(shape).numel()]
        values = order.reshape(shape)
        return (values - 7).to(dtype) if dtype != torch.uint8 else values.to(dtype)
    if dtype.is_floating_point:
        if spec.kind == "normal":
            values = torch.randn(shape, generator=g)
        elif spec.kind == "nonzero":
            values = torch.rand(shape, generator=g) + 0.5
            values = torch.where(torch.rand(shape, generator=g) > 0.5, values, -values)
        elif spec.kind == "positive":
            values = torch.rand(shape, generator=g) * 3 + 0.1
        elif spec.kind == "unit":
            values = torch.rand(shape, generator=g) * 1.8 - 0.9
        elif spec.kind == "sorted":
            values = torch.randn(shape, generator=g).sort(-1).values
        else:  # a well-conditioned triangle: large diagonal
            values = torch.randn(shape, generator=g) + 4 * torch.eye(shape[-1])
        return values.to(dtype)
    low, high = (1, 6) if spec.kind in ("nonzero", "positive") else (-9, 10)
    if dtype == torch.uint8:
        low = max(low, 0)
    if spec.kind == "unit":
        low, high = 0, 1
    values = torch.randint(low, high, shape, generator=g).to(dtype)
    if spec.kind == "nonzero" and dtype.is_signed:
        values = torch.where(torch.rand(shape, generator=g) > 0.5, values, -values)
    return values.sort(-1).values if spec.kind == "sorted" else values


LAYOUTS = ("contiguous", "transposed", "strided")


def lay_out(values: torch.Tensor, layout: str, device: str) -> torch.Tensor:
    """`values` on the device, lying in memory as the layout says."""
    if layout == "transposed" and values.dim() > 1:
        return values.transpose(0, -1).contiguous().to(device).transpose(0, -1)
    if layout == "strided" and values.dim() > 0:
        return values.repeat_interleave(2, -1).to(device)[..., ::2]
    return values.to(device)


def zero_size(case: Case) -> Case | None:
    """The case with N = 0; None where it has no such form."""
    if not any(isinstance(size, Dim) for spec in case.specs() for size in spec.shape):
        return None

    def shrink(tree: Any) -> Any:
        if isinstance(tree, Dim):
            return 0
        if isinstance(tree, Spec):
            return dataclasses.replace(tree, shape=tuple(shrink(s) for s in tree.shape), high=shrink(tree.high))
        if isinstance(tree, list | tuple):
            return type(tree)(shrink(item) for item in tree)
        return tree

    shrunk = Case(shrink(case.args), {k: shrink(v) for k, v in case.kwargs.items()}, case.function)
    for spec in shrunk.specs():
        if spec.kind == "index" and spec.high == 0 and torch.Size(spec.shape).numel():
            return None
    return shrunk


def make(
    name: str,
    case: Case,
    device: str,
    dtype: torch.dtype,
    layout: str = "contiguous",
    leaves: list[torch.Tensor] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments on the device. With `leaves`, floating tensors ask for gradients and are put in there."""
    count = 0

    def one(spec: Spec) -> torch.Tensor:
        nonlocal count
        count += 1
        values = fill(spec, spec.dtype or dtype, zlib.crc32(f"{name} {count}".encode()))
        tensor = lay_out(values, "contiguous" if spec.kind == "index" else layout, device)
        if leaves is not None and (tensor.is_floating_point() or tensor.is_complex()):
            tensor = tensor.detach().requires_grad_()
            leaves.append(tensor)
        return tensor

    def mark(tree: Any) -> Any:
        if tree is DTYPE:
            return dtype
        if tree is DEVICE:
            return device
        if isinstance(tree, list | tuple):
            return type(tree)(mark(item) for item in tree)
        return int(tree) if isinstance(tree, Dim) else tree

    args, kwargs = map_specs(one, (case.args, case.kwargs))
    return mark(args), {key: mark(value) for key, value in kwargs.items()}
