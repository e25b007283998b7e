"""Every operator that the training of current models uses, on the device in strict mode against CPU eager PyTorch.

tests/data/census_operators.txt lists the operators, tests/operators holds their cases. A test fails with all that is
wrong with its operator, not with the first.
"""

import pathlib

import pytest
import torch
from operators import compute_cases, pointwise_cases, shape_cases
from operators.compare import CLASSES, Outcome, describe, difference, run
from operators.exceptions import BACKWARD, DTYPES, FIRST_RESULT, FORMS, LAYOUTS, MISTAKES, TOLERANCE_CLASS, VALUES
from operators.mistakes import mistakes
from operators.values import Case, Spec, map_specs, zero_size

import torch_tpu._C as _C

CENSUS = (pathlib.Path(__file__).parent / "data" / "census_operators.txt").read_text().split()
CASES = pointwise_cases.CASES | shape_cases.CASES | compute_cases.CASES
RANDOM = [  # test_random_operators.py
    "bernoulli_.float", "exponential_.default", "multinomial.default", "rand.default", "rand_like.default",
    "randint.low", "randn.generator", "uniform_.default",
]  # fmt: skip
UNINITIALISED = ("empty.memory_format", "empty_like.default", "new_empty.default", "new_empty_strided.default")
ALL_DTYPES = (
    torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool,
)  # fmt: skip
ROWS = {row["name"]: row["tolerance"] for row in _C.operator_table()}

operators = pytest.mark.parametrize("name", sorted(CASES))


def function_of(name: str):
    packet, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def tolerance_of(name: str) -> str:
    """The class of the operator's row, or of its functional form's; composites of several operators are the loosest."""
    if name in TOLERANCE_CLASS:
        return TOLERANCE_CLASS[name][0]
    packet, overload = name.split(".")
    for base in (packet, packet.removesuffix("_")):
        for row in (f"{base}.{overload}", base, f"{base}.Tensor"):
            if row in ROWS:
                return ROWS[row]
    return "contraction"


def at_least(tolerance: str, floor: str) -> str:
    return max(tolerance, floor, key=CLASSES.index) if tolerance in CLASSES else floor


class Report:
    def __init__(self, name: str):
        self.name = name
        self.problems: list[str] = []
        self.compared = 0

    def compare(self, what: str, want: Outcome, got: Outcome, tolerance: str, **options) -> None:
        if want.error is None:
            self.compared += 1
            wrong = difference(want, got, tolerance, values=self.name not in UNINITIALISED, **options)
        else:
            wrong = same_error(want, got)
        if wrong:
            self.problems.append(f"{what}: {wrong}")

    def finish(self) -> None:
        assert not self.problems, "\n  ".join([self.name, *self.problems])


def same_error(want: Outcome, got: Outcome) -> str | None:
    """An error's class is the CPU's, its text speaks of the call and not of the compiler."""
    if got.error is None:
        return f"no error for {describe(want.error)}"
    text = str(got.error)
    internal = ("stablehlo", "mlir", "internal assert", "cannot be lowered")
    if any(word in text.lower() for word in internal) or not text:
        return f"{describe(got.error)} speaks of the inside; on CPU {describe(want.error)}"
    if not isinstance(got.error, type(want.error)) and not isinstance(want.error, type(got.error)):
        return f"{describe(got.error)} for {describe(want.error)}"
    return None


def both(name: str, case: Case, dtype: torch.dtype = torch.float32, **options) -> tuple[Outcome, Outcome]:
    function = function_of(name)
    return tuple(run(name, function, case, device, dtype, **options) for device in ("cpu", "tpu"))


def test_every_operator_has_cases():
    assert set(CASES).isdisjoint(RANDOM)
    assert set(CASES) | set(RANDOM) == set(CENSUS)


def supports_float(name: str) -> bool:
    return run(name, function_of(name), CASES[name][0], "cpu", torch.float32).error is None


@operators
def test_values(name):
    report = Report(name)
    base = torch.float32 if supports_float(name) else torch.int64
    for index, case in enumerate(CASES[name]):
        if (name, index) in VALUES:
            continue
        want, got = both(name, case, base)
        assert want.error is None, f"case {index} does not run on CPU: {describe(want.error)}"
        report.compare(f"case {index}", want, got, tolerance_of(name))
    report.finish()


@operators
def test_dtypes(name):
    if not any(spec.dtype is None for spec in CASES[name][0].specs()):
        pytest.skip("the operator's arguments have dtypes of their own")
    report = Report(name)
    for dtype in ALL_DTYPES:
        if (name, dtype) in DTYPES or (name, None) in DTYPES:
            continue
        want = run(name, function_of(name), CASES[name][0], "cpu", dtype)
        if want.error is not None:  # CPU lacks kernels that the device has, and the other way round
            continue
        got = run(name, function_of(name), CASES[name][0], "tpu", dtype)
        if name in FIRST_RESULT:
            want.values, got.values = want.values[:1], got.values[:1]
        report.compare(str(dtype), want, got, tolerance_of(name))
    report.finish()


@operators
def test_backward(name):
    report = Report(name)
    tolerance = at_least(tolerance_of(name), "reduction")
    runs = [(0, torch.float32), (1, torch.float32), (0, torch.bfloat16)]
    for index, dtype in runs:
        if index >= len(CASES[name]) or name in BACKWARD or (name, dtype) in DTYPES:
            continue
        case = CASES[name][index]
        want = run(name, function_of(name), case, "cpu", dtype, backward=True)
        if want.error is None and want.differentiable:
            got = run(name, function_of(name), case, "tpu", dtype, backward=True)
            report.compare(f"case {index} {dtype}", want, got, tolerance, strides=False, factor=2)
    if not report.compared:
        pytest.skip("not differentiable")
    report.finish()


@operators
def test_layouts(name):
    """Inputs that are not contiguous, have no elements, or no dimensions."""
    report = Report(name)
    case = CASES[name][0]
    base = torch.float32 if supports_float(name) else torch.int64
    for layout in ("transposed", "strided"):
        if (name, layout) not in LAYOUTS:
            want, got = both(name, case, base, layout=layout)
            if (
                want.error is not None and got.error is None
            ):  # some CPU kernels need contiguous inputs; the device has no such need
                want = run(name, function_of(name), case, "cpu", base)
            report.compare(layout, want, got, tolerance_of(name))
    empty = zero_size(case)
    if empty is not None and (name, "zero size") not in LAYOUTS:
        report.compare("zero size", *both(name, empty, base), tolerance_of(name))
    if any(spec.dtype is None and spec.shape for spec in case.specs()) and (name, "0-d") not in LAYOUTS:
        scalar = map_specs(
            lambda s: Spec((), s.kind, s.dtype, s.high) if s.dtype is None else s, (case.args, case.kwargs)
        )
        report.compare("0-d", *both(name, Case(*scalar, case.function), base), tolerance_of(name))
    report.finish()


def sibling(name: str, kind: str):
    """The operator's in-place or out= form; None where it has none."""
    packet, overload = name.split(".")
    if kind == "in-place":
        packet += "_"
        names = [overload]
    else:
        names = ["out" if overload == "default" else f"{overload}_out", "out", f"{overload.split('_')[0]}_out"]
    forms = getattr(torch.ops.aten, packet, None)
    own = function_of(name)._schema
    for candidate in names:
        if forms is None or candidate not in forms.overloads():
            continue
        form = getattr(forms, candidate)
        inputs = [a.name for a in form._schema.arguments if kind == "in-place" or not a.is_out]
        if inputs == [a.name for a in own.arguments] and str(own.arguments[0].type) == str(
            form._schema.arguments[0].type
        ):
            return form
    return None


@operators
def test_forms(name):
    """In-place and out= forms."""
    case = CASES[name][0]
    report = Report(name)
    base = torch.float32 if supports_float(name) else torch.int64
    in_place = sibling(name, "in-place")
    if in_place is not None and (name, "in-place") not in FORMS:
        for layout in ("contiguous", "strided"):
            want, got = (run(name, in_place, case, device, base, layout) for device in ("cpu", "tpu"))
            report.compare(f"in-place {layout}", want, got, tolerance_of(name))
    out = sibling(name, "out")
    if out is not None and case.function is None and (name, "out=") not in FORMS:
        outs = [a.name for a in out._schema.arguments if a.is_out]
        for how in ("sized", "empty", "strided"):
            if (name, f"out= {how}") in FORMS:
                continue
            outcomes = [run_out(name, out, outs, case, device, base, how) for device in ("cpu", "tpu")]
            report.compare(f"out= {how}", *outcomes, tolerance_of(name))
    if not report.compared:
        pytest.skip("no such form")
    report.finish()


def run_out(name, function, outs, case, device, dtype, how) -> Outcome:
    plain = run(name, function_of(name), case, "cpu", dtype)

    def with_outs(*args, **kwargs):
        targets = {}
        for out, value in zip(outs, plain.values, strict=True):
            shape, kind = value[0].shape, value[0].dtype
            if how == "sized" or not shape:
                targets[out] = torch.zeros(shape, dtype=kind).to(device)
            elif how == "empty":
                targets[out] = torch.empty(0, dtype=kind).to(device)
            else:
                targets[out] = torch.zeros((*shape[:-1], 2 * shape[-1]), dtype=kind).to(device)[..., ::2]
        result = function(*args, **kwargs, **targets)
        results = result if isinstance(result, tuple) else (result,)
        assert all(r is t for r, t in zip(results, targets.values(), strict=True))
        return result

    return run(name, None, Case(case.args, case.kwargs, with_outs), device, dtype)


@operators
def test_mistakes(name):
    """Wrong shapes and dtypes raise what the CPU raises; tensors of two devices always raise."""
    report = Report(name)
    for what, wrong in mistakes(CASES[name][0]):
        if (name, what) not in MISTAKES:
            report.compare(what, *both(name, wrong), at_least(tolerance_of(name), "transcendental"))
    if (name, "devices") not in MISTAKES:
        problem = mixed_devices(name, CASES[name][0])
        if problem:
            report.problems.append(problem)
    report.finish()


def mixed_devices(name: str, case: Case) -> str | None:
    tensors = [spec for spec in case.specs() if spec.dtype is None and spec.shape]
    if len(tensors) < 2 or case.function is not None or name == "copy_.default":
        return None

    def last_on_cpu(*args, **kwargs):
        last = len(args) - 1
        while not isinstance(args[last], torch.Tensor) or not args[last].is_floating_point() or not args[last].dim():
            last -= 1
            if last < 1:
                raise RuntimeError("one device")
        return function_of(name)(*args[:last], args[last].cpu(), *args[last + 1 :], **kwargs)

    got = run(name, None, Case(case.args, case.kwargs, last_on_cpu), "tpu", torch.float32)
    if isinstance(got.error, RuntimeError) and "device" in str(got.error):
        return None
    return f"a CPU tensor among the operands: {describe(got.error)}"
