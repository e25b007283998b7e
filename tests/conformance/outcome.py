"""Calls an operator on a device, and says how two outcomes differ."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, SampleInput, UnaryUfuncInfo
from torch.utils._pytree import tree_leaves, tree_map

from tests.conformance.plan import FACTORIES, parts

# Greatest difference, relative to the element and the scale of its tensor.
LIMITS = {torch.float32: 4e-6, torch.complex64: 4e-6, torch.float64: 4e-14, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}

# Operands and gradients' seeds are of the order of one: a result smaller than this is what cancelled.
SMALLEST_SCALE = 0.05


@dataclasses.dataclass
class Outcome:
    """What a call gave: its leaves in order (tensors with the values they had on return), or the exception."""

    leaves: list[Any] = dataclasses.field(default_factory=list)
    hosts: list[Any] = dataclasses.field(default_factory=list)
    kind: str = ""
    error: Exception | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Problem:
    """Something wrong: where, what, and for values by how much (relative)."""

    at: str
    text: str
    off: float | None = None


class Mover:
    """Puts a sample's tensors on a device; those that share memory share it there too, strides are kept."""

    def __init__(self, device: str):
        self.device = device
        self._storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self.leaves: list[torch.Tensor] = []

    def tensor(self, x: torch.Tensor) -> torch.Tensor:
        if x.layout != torch.strided or x.is_quantized or x.device.type == "meta":
            return x.to(self.device) if x.device.type != "meta" else x
        wants_gradient = x.requires_grad and x.is_leaf
        x = x.detach().resolve_conj().resolve_neg()
        key = (x.untyped_storage()._cdata, x.dtype)
        if key not in self._storages:
            whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
            self._storages[key] = whole.clone().to(self.device)
        whole = self._storages[key]
        plain = x.is_contiguous() and x.numel() == whole.numel()
        moved = whole.view(x.shape) if plain else whole.as_strided(x.shape, x.stride(), x.storage_offset())
        if wants_gradient:
            moved = moved.detach().requires_grad_()
            self.leaves.append(moved)
        return moved

    def tree(self, tree: Any) -> Any:
        def one(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                return self.tensor(x)
            if isinstance(x, torch.device):
                return torch.device(self.device)
            return self.device if isinstance(x, str) and x == "cpu" else x

        return tree_map(one, tree)

    def sample(self, op: OpInfo, sample: SampleInput) -> tuple[Any, list[Any], dict[str, Any]]:
        value, args, kwargs = self.tree(parts(sample))
        if "device" in kwargs or (op.name in FACTORIES and self.device != "cpu"):
            kwargs["device"] = self.device
        return value, list(args), kwargs


def call(work: Callable[[], Any]) -> Outcome:
    """Runs `work` and brings its values to the host, so that errors of running are seen as well."""
    out = Outcome()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = work()
            out.kind = type(result).__name__
            out.leaves = [x for x in tree_leaves(result) if x is not None]
            out.hosts = [x.detach().cpu().clone() if isinstance(x, torch.Tensor) else x for x in out.leaves]
        except Exception as error:
            out.error = error
    out.warnings = [str(w.message) for w in caught]
    return out


def debugged(want: Outcome, work: Callable[[], Outcome]) -> Outcome:
    """What `work` gives on the device; once more in debug mode where it misses an error of the CPU's.

    Errors that depend on values (an index out of range) are found in debug mode only, docs/modes.md says.
    """
    got = work()
    if want.error is None or got.error is not None:
        return got
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG):
        return work()


def run(op: OpInfo, function: Callable[..., Any], sample: SampleInput, device: str) -> Outcome:
    def work() -> Any:
        value, args, kwargs = Mover(device).sample(op, sample)
        return function(value, *args, **kwargs)

    return call(work)


def describe(error: Exception | None) -> str:
    if error is None:
        return "no error"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:240] if lines else ''}"


def elementwise(op: OpInfo) -> bool:
    return isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo)


def difference(
    op: OpInfo, want: Outcome, got: Outcome, at: str, *, values: bool = True, factor: float = 1
) -> Problem | None:
    """What is wrong with `got`; None when nothing is. `factor` multiplies the limit."""
    if want.error is not None or got.error is not None:
        return error_difference(want, got, at)
    if want.kind != got.kind or len(want.leaves) != len(got.leaves):
        return Problem(at, f"returns {got.kind} of {len(got.leaves)} for {want.kind} of {len(want.leaves)}")
    for index, (a, b) in enumerate(zip(want.leaves, got.leaves, strict=True)):
        where = f"result {index}: " if len(want.leaves) > 1 else ""
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            if type(a) is not type(b):
                return Problem(at, f"{where}{b!r} for {a!r}")
            if isinstance(a, int | float | complex) and values:
                off = _off(op, torch.tensor(a), torch.tensor(b))
                if off > LIMITS[torch.float32]:
                    return Problem(at, f"{where}{b!r} for {a!r}", off)
            continue
        if b.device.type != "tpu":
            return Problem(at, f"{where}is on {b.device}")
        if a.dtype != b.dtype or a.shape != b.shape:
            return Problem(at, f"{where}{b.dtype} {tuple(b.shape)} for {a.dtype} {tuple(a.shape)}")
        if values and a.numel():
            off = _off(op, want.hosts[index], got.hosts[index])
            if off > LIMITS.get(a.dtype, 0) * factor:
                return Problem(at, where + _shown(want.hosts[index], got.hosts[index], off), off)
    return None


def error_difference(want: Outcome, got: Outcome, at: str) -> Problem | None:
    """An error must be the CPU's class."""
    if want.error is not None and got.error is not None:
        same = isinstance(got.error, type(want.error)) or isinstance(want.error, type(got.error))
        if same and not _speaks_of_the_inside(got.error):
            return None
    return Problem(at, f"{describe(got.error)} [CPU: {describe(want.error)}]")


def _speaks_of_the_inside(error: Exception) -> bool:
    return any(word in str(error).lower() for word in ("stablehlo", "mlir", "internal assert", "cannot be lowered"))


def _off(op: OpInfo, want: torch.Tensor, got: torch.Tensor) -> float:
    """Greatest difference relative to the element plus the tensor's scale; inf where NaN, Inf or integers differ."""
    if want.is_complex():
        want, got = torch.view_as_real(want.resolve_conj()), torch.view_as_real(got.resolve_conj())
    if not want.is_floating_point():
        return 0.0 if torch.equal(want, got) else float("inf")
    want, got = want.double(), got.double()
    finite = want.isfinite()
    if not torch.equal(finite, got.isfinite()):
        return float("inf")
    if not torch.equal(want[~finite].nan_to_num(), got[~finite].nan_to_num()):
        return float("inf")
    if not finite.any():
        return 0.0
    want, got = want[finite], got[finite]
    largest = float(want.abs().max())
    scale = min(largest, 8.0) if elementwise(op) else largest
    return float(((got - want).abs() / (want.abs() + max(scale, SMALLEST_SCALE))).max())


def _shown(want: torch.Tensor, got: torch.Tensor, off: float) -> str:
    wrong = (want != got) & ~((want != want) & (got != got))
    where = wrong.flatten().nonzero().flatten()[:4].tolist()
    return (
        f"{want.dtype} {tuple(want.shape)} off by {off:.1e}: {got.flatten()[where].tolist()} for "
        f"{want.flatten()[where].tolist()} at {where}"
    )


def stride_difference(want: Outcome, got: Outcome, at: str) -> Problem | None:
    for index, (a, b) in enumerate(zip(want.leaves, got.leaves, strict=False)):
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or a.shape != b.shape or not a.numel():
            continue
        if _real_strides(a) != _real_strides(b):
            return Problem(at, f"result {index}: strides {b.stride()} for {a.stride()} of {tuple(a.shape)}")
    return None


def _real_strides(x: torch.Tensor) -> list[int]:
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]
