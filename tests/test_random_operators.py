"""Random operators by their properties: seeds repeat them, moments and bounds are the distribution's, and numbers
that no distribution has are refused at the call in PyTorch's words."""

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch

COUNT = 20_000
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.uint8)


@dataclasses.dataclass(frozen=True)
class Distribution:
    draw: Callable[[torch.dtype], torch.Tensor]
    dtypes: tuple[torch.dtype, ...]
    low: float
    high: float  # both may be drawn, except where `below`
    mean: float
    std: float
    below: bool = False  # `high` itself is never drawn


def empty(dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(COUNT, dtype=dtype, device="tpu")


INF = math.inf
UNIFORM = 1 / math.sqrt(12)
DISTRIBUTIONS = {
    "rand": Distribution(lambda d: torch.rand(COUNT, dtype=d, device="tpu"), FLOATS, 0, 1, 0.5, UNIFORM, True),
    "rand_like": Distribution(lambda d: torch.rand_like(empty(d)), FLOATS, 0, 1, 0.5, UNIFORM, True),
    "randn": Distribution(lambda d: torch.randn(COUNT, dtype=d, device="tpu"), FLOATS, -INF, INF, 0, 1),
    "randn.generator": Distribution(
        lambda d: torch.randn(COUNT, dtype=d, device="tpu", generator=torch.tpu.default_generators[0]),
        FLOATS, -INF, INF, 0, 1,
    ),
    "randint.low": Distribution(
        lambda d: torch.randint(3, 9, (COUNT,), dtype=d, device="tpu"), (*INTS, torch.float32), 3, 8, 5.5, 1.7078
    ),
    "uniform_": Distribution(lambda d: empty(d).uniform_(-1, 3), FLOATS, -1, 3, 1, 4 * UNIFORM, True),
    "normal_": Distribution(lambda d: empty(d).normal_(2, 0.5), FLOATS, -INF, INF, 2, 0.5),
    "exponential_": Distribution(lambda d: empty(d).exponential_(2), FLOATS, 0, INF, 0.5, 0.5),
    "bernoulli_.float": Distribution(lambda d: empty(d).bernoulli_(0.3), (*FLOATS, *INTS), 0, 1, 0.3, 0.4583),
    "geometric_": Distribution(lambda d: empty(d).geometric_(0.4), (*FLOATS, *INTS), 1, INF, 2.5, 1.9365),
    "random_.from": Distribution(lambda d: empty(d).random_(2, 7), (*FLOATS, *INTS), 2, 6, 4, 1.4142),
    "multinomial": Distribution(
        lambda d: torch.multinomial(torch.tensor([1, 2, 0, 1], dtype=d, device="tpu"), COUNT, True),
        FLOATS, 0, 3, 1.25, 1.0897,
    ),
}  # fmt: skip
PAIRS = [(name, dtype) for name, d in DISTRIBUTIONS.items() for dtype in d.dtypes]


@pytest.mark.parametrize(("name", "dtype"), PAIRS, ids=[f"{n}-{str(d)[6:]}" for n, d in PAIRS])
def test_distribution(name, dtype):
    want = DISTRIBUTIONS[name]
    torch.manual_seed(5)
    first, second = want.draw(dtype), want.draw(dtype)
    torch.manual_seed(5)
    again = want.draw(dtype)
    assert first.dtype == (torch.int64 if name == "multinomial" else dtype)
    assert first.device.type == "tpu"
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), second.cpu())
    values = first.cpu().double()
    assert values.isfinite().all()
    assert values.min() >= want.low
    assert values.max() < want.high if want.below else values.max() <= want.high
    error = want.std / math.sqrt(COUNT) * 5 + torch.finfo(dtype).eps if dtype.is_floating_point else 0.06
    assert abs(values.mean() - want.mean) < error
    assert abs(values.std() - want.std) < max(6 * error, 0.05 * want.std)
    # No two halves alike: successive draws are independent.
    assert abs(torch.corrcoef(torch.stack([values, second.cpu().double()]))[0, 1]) < 0.05


def test_multinomial_draws_only_what_can_be():
    p = torch.tensor([[0, 1, 2, 0, 1.0], [3, 0, 0, 1, 1.0]], device="tpu")
    drawn = torch.multinomial(p, 3).cpu()
    assert drawn[0].sort().values.tolist() == [1, 2, 4]
    assert drawn[1].sort().values.tolist() == [0, 3, 4]


WRONG = {
    "uniform_ order": lambda x: x.uniform_(2, 1),
    "uniform_ bounds": lambda x: x.uniform_(0, 1e39),
    "uniform_ extent": lambda x: x.uniform_(-3e38, 3e38),
    "uniform_ nan": lambda x: x.uniform_(math.nan, 1),
    "uniform_ integer": lambda x: x.long().uniform_(),
    "normal_ std": lambda x: x.normal_(0, -1),
    "normal_ nan": lambda x: x.normal_(0, math.nan),
    "normal std": lambda x: torch.normal(x, -1.0),
    "log_normal_ std": lambda x: x.log_normal_(0, -1),
    "exponential_ lambda": lambda x: x.exponential_(0),
    "exponential_ integer": lambda x: x.long().exponential_(),
    "geometric_ p": lambda x: x.geometric_(1.5),
    "geometric_ zero": lambda x: x.geometric_(0),
    "cauchy_ sigma": lambda x: x.cauchy_(0, 0),
    "cauchy_ integer": lambda x: x.long().cauchy_(),
    "bernoulli_ p": lambda x: x.bernoulli_(1.5),
    "bernoulli_ nan": lambda x: x.bernoulli_(math.nan),
    "bernoulli p": lambda x: torch.bernoulli(x, -0.5),
    "random_ order": lambda x: x.random_(5, 5),
    "random_ zero": lambda x: x.random_(0),
    "random_ uint8": lambda x: x.to(torch.uint8).random_(0, 300),
    "random_ negative uint8": lambda x: x.to(torch.uint8).random_(-3, 30),
    "random_ half": lambda x: x.half().random_(0, 300000),
    "randint order": lambda x: torch.randint(5, 5, (2,), device=x.device),
    "randint uint8": lambda x: torch.randint(0, 300, (2,), dtype=torch.uint8, device=x.device),
    "randint_like order": lambda x: torch.randint_like(x, 5, 5),
    "rand integer": lambda x: torch.rand(2, dtype=torch.long, device=x.device),
    "dropout p": lambda x: torch.dropout(x, 1.5, True),
    "multinomial samples": lambda x: torch.multinomial(x + 1, 9),
    "multinomial none": lambda x: torch.multinomial(x + 1, 0),
    "multinomial integer": lambda x: torch.multinomial(x.long(), 1),
    "multinomial rank": lambda x: torch.multinomial(x.reshape(1, 1, 3), 1),
}


@pytest.mark.parametrize("what", WRONG)
def test_refused(what):
    x = torch.zeros(3)
    with pytest.raises(RuntimeError) as cpu:
        WRONG[what](x)
    with pytest.raises(type(cpu.value)) as device:
        WRONG[what](x.to("tpu"))
    assert str(device.value).splitlines()[0] == str(cpu.value).splitlines()[0]


def test_refused_where_a_program_exists():
    x = torch.zeros(3, device="tpu")
    x.normal_(0, 1)
    with pytest.raises(RuntimeError, match="std"):
        x.normal_(0, -1)
