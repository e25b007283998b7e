"""What the CPU refuses raises the same on the device, at the call: class and text. And what was mended with that."""

import pytest
import torch
from torch.testing import assert_close


def ones(device, *shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, device=device)


def index(device, *values):
    return torch.tensor(values, device=device)


REFUSED = {
    "fill_ too large for float32": lambda d: ones(d, 2).fill_(1e300),
    "fill_ too large for int8": lambda d: ones(d, 2, dtype=torch.int8).fill_(300),
    "masked_fill complex into real": lambda d: ones(d, 2).masked_fill(ones(d, 2, dtype=torch.bool), 1j),
    "masked_fill complex tensor into int": lambda d: ones(d, 2, dtype=torch.int64).masked_fill(
        ones(d, 2, dtype=torch.bool), torch.tensor(1j)
    ),
    "scatter too large a value": lambda d: ones(d, 2).scatter(0, index(d, 0), 1e300),
    "histc of a turned range": lambda d: torch.histc(ones(d, 3), 4, 3.0, 1.0),
    "cholesky of a negative matrix": lambda d: torch.linalg.cholesky(-torch.eye(2, device=d)),
    "old cholesky of a negative matrix": lambda d: torch.cholesky(-torch.eye(2, device=d)),
    "in-place list: float into int": lambda d: torch._foreach_mul_([ones(d, 2, dtype=torch.int64)], 1.5),
    "in-place list: root of int": lambda d: torch._foreach_sqrt_([ones(d, 2, dtype=torch.int64)]),
    "roll of a number": lambda d: ones(d).roll(1, 0),
    "gelu of another kind": lambda d: torch.nn.functional.gelu(ones(d, 2), approximate="erf"),
    "arange with a step cut to 0": lambda d: torch.arange(0, 4, 0.5, out=ones(d, 0, dtype=torch.int64)),
    "padding cut below nothing": lambda d: torch.nn.functional.pad(ones(d, 2), (-3, 4)),
    "index_put into a number": lambda d: ones(d).index_put((index(d, 0),), ones(d)),
    "index_select of nothing": lambda d: ones(d, 0, 2).index_select(0, index(d, 1)),
    "index of nothing": lambda d: ones(d, 0, 2)[index(d, 1)],
    "embedding of nothing": lambda d: torch.nn.functional.embedding(index(d, 1), ones(d, 0, 2)),
    "multinomial out= of float": lambda d: torch.multinomial(ones(d, 3), 2, out=ones(d, 2)),
    "nonzero out= of bool": lambda d: torch.nonzero(ones(d, 3), out=ones(d, 3, 1, dtype=torch.bool)),
    "cat out= of int": lambda d: torch.cat([ones(d, 2)], out=ones(d, 2, dtype=torch.int64)),
    "stack out= of int": lambda d: torch.stack([ones(d, 2)], out=ones(d, 1, 2, dtype=torch.int64)),
    "gather out= of double": lambda d: torch.gather(ones(d, 2), 0, index(d, 0), out=ones(d, 1, dtype=torch.float64)),
    "conj_physical out= of int": lambda d: torch.conj_physical(ones(d, 2), out=ones(d, 2, dtype=torch.int64)),
    "unique slices of nothing": lambda d: torch.unique(ones(d, 0, 2), dim=1),
}
OTHER_WORDS = {"index of nothing", "conj_physical out= of int"}  # the device says the same in other words


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_refused_as_on_the_cpu(name):
    with pytest.raises(Exception) as want:
        REFUSED[name]("cpu")
    with pytest.raises(type(want.value)) as got:
        REFUSED[name]("tpu")
    if name not in OTHER_WORDS:
        assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]


def test_out_that_is_an_operand_is_refused_where_the_cpu_does():
    x = ones("tpu", 4)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.gather(x, 0, index("tpu", 0, 1, 2, 3), out=x)


def test_an_index_into_nothing_is_refused_without_debug_mode():
    with pytest.raises(RuntimeError, match="is out of bounds for dimension 0 with size 0"):
        ones("tpu", 0, 2).scatter(0, index("tpu", 1)[None], 1.0)


def test_a_resized_out_warns_once():
    with pytest.warns(UserWarning, match="was resized") as caught:
        torch.conj_physical(ones("tpu", 2), out=ones("tpu", 2, 2))
    assert len(caught) == 1


def test_linspace_of_integers_does_not_fall_short():
    assert_close(torch.linspace(50, 1, 50, dtype=torch.int64, device="tpu").cpu(), torch.arange(50, 0, -1))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    x = torch.tensor([[2, 0, 2], [1, 0, 1], [2, 0, 2], [0, 0, 0]])
    for function in (torch.unique, torch.unique_consecutive):
        want = function(x, return_inverse=True, return_counts=True, dim=dim)
        got = function(x.to("tpu"), return_inverse=True, return_counts=True, dim=dim)
        assert all(torch.equal(a, b.cpu()) for a, b in zip(want, got, strict=True))


def test_as_strided_scatter_counts_in_memory_as_the_cpu_does():
    def scattered(device, view):
        x = view(torch.arange(12.0, device=device))
        return torch.as_strided_scatter(x, torch.full((2, 2), -1.0, device=device), (2, 2), (1, 3), 1)

    for view in (lambda x: x.reshape(3, 4), lambda x: x.reshape(3, 4).t(), lambda x: x[::2]):
        assert torch.equal(scattered("tpu", view).cpu(), scattered("cpu", view))


@pytest.mark.parametrize("name", ["abs", "sort", "flip", "index_put", "select_scatter"])
def test_results_lie_in_memory_as_their_operand_does(name):
    calls = {
        "abs": lambda x: x.abs(),
        "sort": lambda x: x.sort(-1).values,
        "flip": lambda x: x.flip(0),
        "index_put": lambda x: x.index_put((torch.tensor([1], device=x.device),), x[0]),
        "select_scatter": lambda x: x.select_scatter(x[:, 0], 1, 1),
    }
    x = torch.arange(6.0).reshape(2, 3).t()
    assert calls[name](x.to("tpu")).stride() == calls[name](x).stride()
