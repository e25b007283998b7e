"""One function for each kind of check. Each gives the number of comparisons made and the problems found."""

import re
import unittest.mock
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from tests.conformance import plan
from tests.conformance.outcome import (
    Mover,
    Outcome,
    Problem,
    call,
    debugged,
    describe,
    difference,
    error_difference,
    run,
    stride_difference,
)  # fmt: skip
from tests.conformance.plan import Numbered, base_dtype, parts, samples, tensors

Found = tuple[int, list[Problem]]
SEED = 4711  # unlike any of upstream's


def determined(op: OpInfo, function: Callable[..., Any], sample: SampleInput, want: Outcome) -> bool:
    """Whether the values are the same in every call: not random, not uninitialised."""
    if op.name in plan.UNINITIALISED:
        return False
    torch.manual_seed(SEED)
    with unittest.mock.patch.object(torch, "manual_seed"):  # some OpInfos set a seed of their own
        again = run(op, function, sample, "cpu")
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) if isinstance(a, torch.Tensor) else a == b or a != a
        for a, b in zip(want.hosts, again.hosts, strict=True)
    )


def _compare(op: OpInfo, chosen: list[Numbered], *, errors: bool = False) -> Found:
    problems, compared = [], 0
    for n in chosen:
        want = run(op, op.op, n.sample, "cpu")
        if want.error is not None and not errors:
            continue
        compared += 1
        values = want.error is None and determined(op, op.op, n.sample, want)
        got = debugged(want, lambda n=n: run(op, op.op, n.sample, "tpu"))
        problems.append(difference(op, want, got, n.label, values=values))
    return compared, [p for p in problems if p]


def check_float32(op: OpInfo) -> Found:
    """Forward in float32 (operators without it: in the dtype they have)."""
    dtype = base_dtype(op)
    return _compare(op, samples(op, dtype, 12)) if dtype not in (None, torch.int64) else (0, [])


def check_int64(op: OpInfo) -> Found:
    """Forward in int64 where the CPU has it."""
    if torch.int64 not in op.supported_dtypes("cpu"):
        return 0, []
    return _compare(op, samples(op, torch.int64, 12))


def check_noncontiguous(op: OpInfo) -> Found:
    """Inputs with gaps in memory (upstream's), and with their dimensions swapped in memory."""
    dtype = base_dtype(op)
    chosen = samples(op, dtype, 6) if dtype is not None else []
    gaps = [Numbered(f"{n.label} with gaps", n.sample.noncontiguous()) for n in chosen]
    swapped = [Numbered(f"{n.label} swapped", plan.permuted(n.sample)) for n in chosen[:4]]
    return _compare(op, gaps + swapped)


def check_strides(op: OpInfo) -> Found:
    """Results lie in memory as the CPU's do, for contiguous inputs and for swapped ones."""
    dtype = base_dtype(op)
    chosen = samples(op, dtype, 4) if dtype is not None else []
    problems, compared = [], 0
    for n in chosen + [Numbered(f"{n.label} swapped", plan.permuted(n.sample)) for n in chosen]:
        want, got = (run(op, op.op, n.sample, device) for device in ("cpu", "tpu"))
        if want.error is None and got.error is None:
            compared += 1
            problems.append(stride_difference(want, got, n.label))
    return compared, [p for p in problems if p]


def check_zero_size(op: OpInfo) -> Found:
    """Inputs without elements; what the CPU refuses is refused."""
    dtype = base_dtype(op)
    return _compare(op, plan.zero_size(op, dtype, 8), errors=True) if dtype is not None else (0, [])


def check_0d(op: OpInfo) -> Found:
    """Inputs without dimensions; what the CPU refuses is refused."""
    dtype = base_dtype(op)
    return _compare(op, plan.shapeless(op, dtype, 6), errors=True) if dtype is not None else (0, [])


def check_out(op: OpInfo) -> Found:
    """out= of the right size, with gaps, empty, of a wrong size (warns), of a wrong dtype."""
    dtype = base_dtype(op)
    if not op.supports_out or dtype is None:
        return 0, []
    problems, compared = [], 0
    for index, n in enumerate(samples(op, dtype, 4)):
        plain = run(op, op.op, n.sample, "cpu")
        if plain.error is not None or "out" in n.sample.kwargs:
            continue
        hows = ("sized", "gaps", "empty", "larger", "dtype") if index == 0 else ("sized", "gaps")
        for how in hows:
            want, got = (_run_out(op, n.sample, plain, how, device) for device in ("cpu", "tpu"))
            at = f"{n.label}, out= {how}"
            compared += 1
            values = want.error is None and determined(op, op.op, n.sample, plain)
            found = difference(op, want, got, at, values=values)
            if found is None and want.error is None:
                found = stride_difference(want, got, at)
            if found is None and _resized(want) != _resized(got):
                found = Problem(at, f"warns {_resized(got)} times of a resize for {_resized(want)}")
            problems.append(found)
    return compared, [p for p in problems if p]


def _resized(outcome: Outcome) -> int:
    return sum("resized" in text for text in outcome.warnings)


def _run_out(op: OpInfo, sample: SampleInput, plain: Outcome, how: str, device: str) -> Outcome:
    def target(x: torch.Tensor) -> torch.Tensor:
        if how == "sized" or (how == "gaps" and not x.dim()):
            made = torch.zeros(x.shape, dtype=x.dtype)
        elif how == "gaps":
            return torch.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype).to(device)[..., ::2]
        elif how == "empty":
            made = torch.empty(0, dtype=x.dtype)
        elif how == "larger":
            made = torch.zeros((*x.shape, 2), dtype=x.dtype)
        else:
            made = torch.zeros(x.shape, dtype=torch.int64 if x.dtype.is_floating_point else torch.bool)
        return made.to(device)

    def work() -> Any:
        value, args, kwargs = Mover(device).sample(op, sample)
        outs = [target(x) for x in plain.leaves]
        places = [x.data_ptr() for x in outs]
        single = len(outs) == 1 and plain.kind == "Tensor"
        result = op.op(value, *args, **kwargs, out=outs[0] if single else tuple(outs))
        results = [result] if single else list(result)
        assert all(r is o for r, o in zip(results, outs, strict=True)), "out= is not what was returned"
        kept = how in ("empty", "larger") or [x.data_ptr() for x in outs] == places
        assert kept, "out= has moved to other memory"
        return result

    return call(work)


def check_in_place(op: OpInfo) -> Found:
    """The in-place variant, on plain inputs and on ones with gaps, in the base dtype and in int64."""
    function = op.get_inplace()
    dtype = base_dtype(op)
    if function is None or dtype is None:
        return 0, []
    chosen = [n for n in samples(op, dtype, 8) if not n.sample.broadcasts_input and _writable(n.sample)]
    chosen = chosen[:5] + [Numbered(f"{n.label} with gaps", n.sample.noncontiguous()) for n in chosen[:2]]
    if dtype is torch.float32 and torch.int64 in op.supported_dtypes("cpu"):
        integers = [n for n in samples(op, torch.int64, 4) if not n.sample.broadcasts_input and _writable(n.sample)]
        chosen += [Numbered(f"{n.label} int64", n.sample) for n in integers]
    problems = []
    for n in chosen:
        want = _run_in_place(op, function, n.sample, "cpu")
        got = debugged(want, lambda n=n: _run_in_place(op, function, n.sample, "tpu"))
        values = want.error is None and determined(op, op.op, n.sample, run(op, op.op, n.sample, "cpu"))
        found = difference(op, want, got, n.label, values=values)
        problems.append(found or (stride_difference(want, got, n.label) if want.error is None else None))
    return len(problems), [p for p in problems if p]


def _writable(sample: SampleInput) -> bool:
    return bool(tensors(sample.input))


def _run_in_place(op: OpInfo, function: Callable[..., Any], sample: SampleInput, device: str) -> Outcome:
    def work() -> Any:
        value, args, kwargs = Mover(device).sample(op, sample)
        result = function(value, *args, **kwargs)
        if isinstance(value, torch.Tensor):
            assert result is value, "the in-place variant returns something else"
        return value

    return call(work)


def check_gradients(op: OpInfo) -> Found:
    """First derivatives in float32."""
    if not op.supports_autograd or torch.float32 not in op.supported_dtypes("cpu"):
        return 0, []
    problems, compared = [], 0
    for n in samples(op, torch.float32, 8, gradients=True):
        want = _run_gradients(op, n.sample, "cpu")
        if want.error is not None or not want.leaves:
            continue
        torch.manual_seed(SEED)
        with unittest.mock.patch.object(torch, "manual_seed"):
            again = _run_gradients(op, n.sample, "cpu")
        same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(want.hosts, again.hosts, strict=True))
        compared += 1
        got = _run_gradients(op, n.sample, "tpu")
        problems.append(difference(op, want, got, n.label, values=same, factor=4))
    return compared, [p for p in problems if p]


def _run_gradients(op: OpInfo, sample: SampleInput, device: str) -> Outcome:
    def work() -> Any:
        mover = Mover(device)
        value, args, kwargs = mover.sample(op, sample)
        result = sample.output_process_fn_grad(op.op(value, *args, **kwargs))
        roots = [x for x in tensors(result) if x.requires_grad]
        if not roots or not mover.leaves:
            return []
        seeds = [torch.linspace(-1, 1.5, r.numel()).reshape(r.shape).to(r.dtype).to(device) for r in roots]
        found = torch.autograd.grad(roots, mover.leaves, seeds, allow_unused=True)
        return [torch.zeros(0, device=device) if g is None else g for g in found]

    return call(work)


def check_errors(op: OpInfo) -> Found:
    """Upstream's wrong calls: the class and the text that upstream expects of every device."""
    problems, compared = [], 0
    if op.error_inputs_func is None:
        return 0, []
    torch.manual_seed(0)
    for number, wrong in enumerate(op.error_inputs("cpu")):
        sample = wrong.sample_input
        want = _run_error(op, sample, "cpu")
        if want.error is None or not _matches(want.error, wrong):
            continue
        compared += 1
        at = f"error {number}"
        got = debugged(want, lambda sample=sample: _run_error(op, sample, "tpu"))
        found = error_difference(want, got, at)
        if found is None and not _matches(got.error, wrong):
            found = Problem(at, f"{describe(got.error)} [text expected: {wrong.error_regex}]")
        problems.append(found)
    return compared, [p for p in problems if p]


def _run_error(op: OpInfo, sample: SampleInput, device: str) -> Outcome:
    def work() -> Any:
        value, args, kwargs = Mover(device).tree(parts(sample))
        if "device" in kwargs:
            kwargs["device"] = device
        return op.op(value, *args, **kwargs)

    return call(work)


def _matches(error: Exception | None, wrong: Any) -> bool:
    return isinstance(error, wrong.error_type) and re.search(wrong.error_regex, str(error)) is not None


KINDS: dict[str, Callable[[OpInfo], Found]] = {
    "float32": check_float32,
    "int64": check_int64,
    "out=": check_out,
    "in-place": check_in_place,
    "non-contiguous": check_noncontiguous,
    "strides": check_strides,
    "zero-size": check_zero_size,
    "0-d": check_0d,
    "errors": check_errors,
    "gradients": check_gradients,
}
