"""Debug mode: wrong index values raise PyTorch's CPU errors at the call, anomalies stop where they begin."""

import re

import pytest
import torch
import torch.nn.functional as F

from torch_tpu import _runtime

SIZES = (4, 3)


def _cases(device: str, bad: int) -> dict[str, object]:
    """Calls with one index out of range, by name."""
    x = torch.arange(12.0).reshape(SIZES).to(device)
    i = torch.tensor([0, bad, 1], device=device)
    row = i[None]
    targets = torch.tensor([0, 1, bad, 2], device=device)
    far = torch.tensor([99 if bad > 0 else -99], device=device)
    one = torch.tensor([1.0], device=device)
    return {
        "index": lambda: x[i],
        "index second dimension": lambda: x[:, i],
        "index two": lambda: x[i, i.clamp(0, 2)],
        "index_put": lambda: x.index_put_((i,), one[0]),
        "index_put accumulate": lambda: x.index_put_((i,), one[0], accumulate=True),
        "setitem": lambda: x.__setitem__(i, 1.0),
        "index_select": lambda: x.index_select(0, i),
        "gather": lambda: x.gather(0, row),
        "gather dim 1": lambda: x.gather(1, row),
        "scatter value": lambda: x.scatter_(0, row, 1.0),
        "scatter": lambda: x.scatter(1, row, x),
        "scatter_add": lambda: x.scatter_add_(0, row, x.clone()),
        "scatter_reduce": lambda: x.scatter_reduce_(0, row, x.clone(), "amax"),
        "take": lambda: x.take(far),
        "put": lambda: x.put_(far, one),
        "embedding": lambda: F.embedding(i, x),
        "index_add": lambda: x.index_add_(0, i, x[:3].clone()),
        "index_copy": lambda: x.index_copy_(0, i, x[:3].clone()),
        "index_fill": lambda: x.index_fill_(1, i, 1.0),
        "index_reduce": lambda: x.index_reduce_(0, i, x[:3].clone(), "prod"),
        "cross_entropy": lambda: F.cross_entropy(x, targets),
        "nll_loss 2d": lambda: F.nll_loss(x[None, :, :, None], torch.full((1, 3, 1), bad, device=device)),
        "masked_scatter": lambda: x.masked_scatter_(x >= 0, one),
        "bernoulli": lambda: torch.bernoulli(x),
        "normal": lambda: torch.normal(x, -1 - x),
        "multinomial": lambda: torch.multinomial(torch.tensor([0.5, -1.0], device=device), 1),
    }


def _error(call: object) -> Exception:
    with pytest.raises((RuntimeError, IndexError)) as raised:
        call()  # type: ignore[operator]
    return raised.value


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("bad", [7, -6])
@pytest.mark.parametrize("name", list(_cases("cpu", 7)))
def test_an_index_out_of_range_raises_what_the_cpu_raises(name: str, bad: int) -> None:
    wanted = _error(_cases("cpu", bad)[name])
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG):
        got = _error(_cases("tpu", bad)[name])
    assert type(got) is type(wanted)
    first, rest = str(got).split("\n", 1)
    words = str(wanted).splitlines()[0]
    if name == "index second dimension":  # the CPU moves the dimension to the front and calls it 0
        words = words.replace("dimension 0", "dimension 1")
    assert first == words
    # What was called, with shapes, and this file's line.
    assert re.search(r"in \w+(\.\w+)?\(.*float32\[", rest)
    assert re.search(r"test_debug\.py:\d+ in <lambda>", rest)
    assert name in ("multinomial", "bernoulli", "normal", "masked_scatter") or re.search(
        rf"(?<!\d){bad}\b|{bad // 6 * 99}", str(got)
    )


@pytest.mark.parametrize("name", ["index_put", "scatter value", "index_add", "put", "masked_scatter"])
def test_a_refused_write_changes_nothing(name: str) -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG):
        x = torch.arange(12.0).reshape(SIZES).to("tpu")
        i = torch.tensor([0, 7, 1], device="tpu")
        one = torch.ones(1, device="tpu")
        calls = {
            "index_put": lambda: x.index_put_((i,), one[0]),
            "scatter value": lambda: x.scatter_(0, i[None], 1.0),
            "index_add": lambda: x.index_add_(0, i, torch.ones(3, 3, device="tpu")),
            "put": lambda: x.put_(i + 90, one.expand(3)),
            "masked_scatter": lambda: x.masked_scatter_(x >= 0, one),
        }
        _error(calls[name])
        assert torch.equal(x.cpu(), torch.arange(12.0).reshape(SIZES))
        assert torch.equal((x + 1).cpu(), torch.arange(12.0).reshape(SIZES) + 1)


def test_valid_indices_give_the_same_values_in_debug_mode() -> None:
    x = torch.arange(12.0).reshape(SIZES)
    i = torch.tensor([3, -1, 0])
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG):
        got = x.to("tpu")[i.to("tpu")]
        loss = F.cross_entropy(x.to("tpu"), torch.tensor([0, 1, -100, 2], device="tpu"))
    assert torch.equal(got.cpu(), x[i])
    torch.testing.assert_close(loss.cpu(), F.cross_entropy(x, torch.tensor([0, 1, -100, 2])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_strict_reads_nan_or_zero_out_of_range_and_drops_writes(dtype: torch.dtype) -> None:
    x = torch.ones(4, 3).to(dtype).to("tpu")
    around = torch.full((64,), 5.0, device="tpu").to(dtype)  # memory that must not show
    i = torch.tensor([0, 7, -9], device="tpu")
    got = x[i].cpu()
    assert torch.equal(got[0], torch.ones(3).to(dtype))
    outside = torch.full((2, 3), float("nan") if dtype.is_floating_point else 0).to(dtype)
    torch.testing.assert_close(got[1:], outside, equal_nan=True, rtol=0, atol=0)
    x.index_fill_(0, i, 0)
    assert torch.equal(x.cpu(), torch.tensor([0, 1, 1, 1])[:, None].expand(4, 3).to(dtype))
    assert torch.equal(around.cpu(), torch.full((64,), 5.0).to(dtype))


# -- Anomalies --------------------------------------------------------------------------------------------------------


def test_the_first_nan_stops_at_its_operator_and_line() -> None:
    x = torch.tensor([1.0, -1.0], device="tpu")
    with torch.tpu.debug.detect_anomalies():
        y = x * 2
        with pytest.raises(RuntimeError, match=r"'log' returned NaN in its output 0") as raised:
            y.log()
        assert "log(self: float32[2])" in str(raised.value)
        assert "test_debug.py" in str(raised.value)
    assert y.log().isnan().any()  # outside nothing is looked for


def test_infinities_stop_unless_they_were_asked_for() -> None:
    x = torch.zeros(2, device="tpu")
    with torch.tpu.debug.detect_anomalies():
        masked = x.masked_fill(x == 0, float("-inf"))  # asked for
        assert (masked + 1).isinf().all()  # came in
        with pytest.raises(RuntimeError, match=r"'reciprocal' returned Inf"):
            x.reciprocal()
    with torch.tpu.debug.detect_anomalies(inf=False):
        assert x.reciprocal().isinf().all()


def test_a_nan_in_a_backward_names_the_line_of_the_forward() -> None:
    x = torch.zeros(2, device="tpu", requires_grad=True)
    with torch.tpu.debug.detect_anomalies(inf=False):
        y = (x * 0).sqrt() * x  # the forward's line
        with pytest.raises(RuntimeError, match="NaN") as raised:
            y.sum().backward()
    text = str(raised.value)
    assert re.search(r"in the backward of \w+Backward\d*, whose forward ran at .*test_debug\.py:\d+", text)


def test_a_nan_from_the_host_stops_at_the_copy() -> None:
    with torch.tpu.debug.detect_anomalies(), pytest.raises(RuntimeError, match="brings in NaN"):
        torch.tensor([float("nan")]).to("tpu")


# -- Programs ---------------------------------------------------------------------------------------------------------


def test_expect_no_compile_names_what_is_missing_and_changes_nothing(output) -> None:
    code = """
import torch
x = torch.ones(3, 17, device="tpu")
x.add_(1)
with torch.tpu.expect_no_compile():
    x.add_(1)  # compiled above
    try:
        x.hypot_(x)
    except RuntimeError as error:
        print(error)
print(x.unique().tolist())
print(x.hypot_(x).unique().tolist())
"""
    message, before, after = output(code, TORCH_TPU_CACHE="0").splitlines()
    assert "hypot_(self: float32[3, 17], other: float32[3, 17]) needs a program" in message
    assert before == "[3.0]"
    assert after.startswith("[4.24")


def test_an_operator_that_keeps_missing_is_warned_about_with_what_differs(python) -> None:
    code = """
import torch
for n in range(4, 24):
    x = torch.ones(2, n, device="tpu")
    torch.logaddexp2(x, x)
"""
    told = r"torch\.tpu: logaddexp2 has needed .*self\.shape\[1\], other\.shape\[1\].*self\.shape\[1\] \d+ -> \d+"
    warned = python(code).stderr
    assert re.search(told, warned), warned


# -- Where -------------------------------------------------------------------------------------------------------------


def test_tracebacks_are_off_unless_asked_for() -> None:
    assert not _runtime.require().tracebacks()
    with torch.tpu.debug.record_tracebacks():
        assert _runtime.require().tracebacks()
    assert not _runtime.require().tracebacks()
