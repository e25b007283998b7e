"""Runs a case on a device and compares what came out with the CPU's."""

import dataclasses
from typing import Any

import torch
from operators.values import Case, make

# Multiples of the dtype's eps, by the table's tolerance class: (float32 and float64, bfloat16 and float16). The half
# types are computed in float32 and rounded once on both devices, but a composite kernel may round in between.
TOLERANCES = {
    "exact": (0, 0),
    "elementwise": (4, 2),
    "transcendental": (32, 2),
    "reduction": (64, 4),
    "contraction": (128, 8),
}
CLASSES = list(TOLERANCES)


@dataclasses.dataclass
class Outcome:
    """What a call gave: its tensors in order, or the exception."""

    values: list[Any] = dataclasses.field(default_factory=list)
    error: Exception | None = None
    differentiable: bool = False


def flatten(tree: Any, into: list[Any]) -> list[Any]:
    if isinstance(tree, list | tuple):
        for item in tree:
            flatten(item, into)
    elif tree is not None:
        into.append(tree)
    return into


def written(function: Any) -> bool:
    schema = getattr(function, "_schema", None)
    return schema is not None and schema.is_mutable and not schema.name.startswith("aten::native_batch_norm")


def run(
    name: str,
    function: Any,
    case: Case,
    device: str,
    dtype: torch.dtype,
    layout: str = "contiguous",
    backward: bool = False,
) -> Outcome:
    leaves: list[torch.Tensor] | None = [] if backward else None
    out = Outcome()
    try:
        args, kwargs = make(name, case, device, dtype, layout, leaves)
        if written(function) and backward:  # a leaf cannot be written in place
            first = args[0].clone() if isinstance(args[0], torch.Tensor) else [x.clone() for x in args[0]]
            args = (first, *args[1:])
        result = (case.function or function)(*args, **kwargs)
        flatten(result, out.values)
        if written(function):
            flatten(args[0], out.values)
        if name == "native_batch_norm.default":  # running statistics
            flatten(args[3:5], out.values)
        if leaves:
            roots = [v for v in out.values if isinstance(v, torch.Tensor) and v.requires_grad]
            out.differentiable = bool(roots)
            if roots:
                seeds = [torch.linspace(-1, 1.5, r.numel()).reshape(r.shape).to(r.dtype).to(device) for r in roots]
                out.values = list(torch.autograd.grad(roots, leaves, seeds, allow_unused=True))
        # The values come to the host here, so that errors of running them are seen as well.
        out.values = [(v, v.detach().cpu()) if isinstance(v, torch.Tensor) else v for v in out.values]
    except Exception as error:
        out.error = error
    return out


def describe(error: Exception | None) -> str:
    return (
        "no error"
        if error is None
        else f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
    )


def difference(
    want: Outcome, got: Outcome, tolerance: str, *, values: bool = True, strides: bool = True, factor: float = 1
) -> str | None:
    """What is wrong with `got`; None when nothing is."""
    if got.error is not None:
        return describe(got.error)
    if len(want.values) != len(got.values):
        return f"{len(got.values)} results for {len(want.values)}"
    for index, (a, b) in enumerate(zip(want.values, got.values, strict=True)):
        where = f"result {index}: "
        if not isinstance(a, tuple):
            if a is None or b is None:
                if a is not b:
                    return where + f"{b!r} for {a!r}"
            elif type(a) is not type(b) or not torch.allclose(torch.tensor(a), torch.tensor(b), equal_nan=True):
                return where + f"{b!r} for {a!r}"
            continue
        if not isinstance(b, tuple):
            return where + "no tensor"
        (cpu, want_host), (device, host) = a, b
        if device.device.type != "tpu":
            return where + f"is on {device.device}"
        if device.dtype != cpu.dtype or device.shape != cpu.shape:
            return where + f"{device.dtype} {tuple(device.shape)} for {cpu.dtype} {tuple(cpu.shape)}"
        # Pointwise results keep their operand's order in memory; others need only be contiguous where the CPU's are.
        kept = cpu.is_contiguous() or tolerance in ("elementwise", "transcendental")
        if strides and kept and cpu.numel() and real_strides(device) != real_strides(cpu):
            return where + f"strides {device.stride()} for {cpu.stride()} of {tuple(cpu.shape)}"
        if values and want_host.numel():
            wrong = unequal(want_host, host, tolerance, factor)
            if wrong:
                return where + wrong
    return None


def real_strides(x: torch.Tensor) -> list[int]:
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]


def unequal(want: torch.Tensor, got: torch.Tensor, tolerance: str, factor: float) -> str | None:
    rtol = atol = 0.0
    if want.is_floating_point() or want.is_complex():
        halved = want.dtype in (torch.bfloat16, torch.float16)
        rtol = TOLERANCES[tolerance][halved] * torch.finfo(want.dtype).eps * factor
        finite = want.abs().to(torch.float64)
        finite = finite[finite.isfinite()]
        atol = rtol * max(float(finite.max()) if finite.numel() else 0.0, 1e-3)
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError:
        return f"{want.dtype} {got.flatten()[:6].tolist()} for {want.flatten()[:6].tolist()}"
    return None
