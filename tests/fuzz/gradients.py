"""Views and in-place writes under autograd: the gradients of the leaves are compared."""

import random
from collections.abc import Callable

import torch

from tests.fuzz.views import MAKERS, make_as_strided, make_dtype
from tests.fuzz.world import Mismatch, done, overlaps_itself, same_storage

Side = list[torch.Tensor]
Step = tuple[str, Callable[[Side], torch.Tensor | None]]

DIFFERENTIABLE = [maker for maker in MAKERS if maker not in (make_dtype, make_as_strided)]


def view(rng: random.Random, side: Side) -> Step:
    i = rng.randrange(len(side))
    text, act = rng.choice(DIFFERENTIABLE)(rng, side[i])
    return f"x{i}{text}", lambda ts: act(ts[i])


def write(rng: random.Random, side: Side) -> Step | None:
    i, j, n = rng.randrange(len(side)), rng.randrange(len(side)), rng.choice([1, 2, -1])
    t, other = side[i], side[j]
    if overlaps_itself(t) and 0 not in t.stride():
        return None
    mask = torch.arange(t.numel()).view(t.shape) % 3 == 0
    choices: list[Step] = [
        (f"x{i}.mul_({n})", lambda ts: done(ts[i].mul_(n))),
        (f"x{i}.add_({n})", lambda ts: done(ts[i].add_(n))),
        (f"x{i}.zero_()", lambda ts: done(ts[i].zero_())),
        (f"x{i}[0] = {n}", lambda ts: ts[i].__setitem__(0, n)),
        (f"x{i}[..., ::2] = x1's sum", lambda ts: ts[i].__setitem__((..., slice(None, None, 2)), ts[1].sum())),
        (f"x{i}[:, 0] = {n}", lambda ts: ts[i].__setitem__((slice(None), 0), n)),
    ]
    if not overlaps_itself(t):  # the CPU takes it with a deprecation warning
        choices.append((f"x{i}.masked_fill_({n})", lambda ts: done(ts[i].masked_fill_(mask.to(ts[i].device), n))))
    if other.shape == t.shape and not same_storage(other, t):
        choices += [
            (f"x{i}.copy_(x{j})", lambda ts: done(ts[i].copy_(ts[j]))),
            (f"x{i}.add_(x{j}, alpha=2)", lambda ts: done(ts[i].add_(ts[j], alpha=2))),
        ]
    return rng.choice(choices)


def backward(side: Side) -> None:
    total = side[0].new_zeros(())
    for k, t in enumerate(side):
        total = total + (t * (k + 1)).sum()
    total.backward()


class Graphs:
    """The same graph over two leaves, on the CPU and on the device."""

    def __init__(self) -> None:
        start = (torch.arange(24) % 7 - 3).float().view(4, 6)
        self.leaves = [[(start + k).to(device).requires_grad_() for k in (0, 1)] for device in ("cpu", "tpu")]
        self.sides = [[leaf * 1 for leaf in leaves] for leaves in self.leaves]
        self.texts: list[str] = []

    def both(self, text: str, act: Callable[[Side], torch.Tensor | None]) -> bool:
        self.texts.append(text)
        results, errors = [], []
        for side in self.sides:
            try:
                results.append(act(side))
                errors.append(None)
            except Exception as error:
                errors.append(error)
        if type(errors[0]) is not type(errors[1]):
            raise Mismatch("\n".join([*self.texts, f"CPU raises {errors[0]!r}, the device {errors[1]!r}"]))
        if errors[0] is None and results[0] is not None:
            for side, result in zip(self.sides, results, strict=True):
                side.append(result)
        return errors[0] is None

    def check(self, what: str, want: torch.Tensor | None, got: torch.Tensor | None) -> None:
        equal = want is got if want is None or got is None else torch.equal(want.detach(), got.detach().cpu())
        if not equal:
            raise Mismatch("\n".join([*self.texts, f"{what} is\n{got}\nthe CPU has\n{want}"]))


def run(seed: int, steps: int = 8) -> None:
    """One graph of `steps` views and writes, then backward."""
    rng, graphs = random.Random(seed), Graphs()
    for _ in range(steps):
        step = (view if rng.random() < 0.5 else write)(rng, graphs.sides[0])
        if step is None:
            continue
        graphs.both(*step)
        for k, (a, b) in enumerate(zip(*graphs.sides, strict=True)):
            graphs.check(f"x{k}", a, b)
    if graphs.both("backward", backward):
        for k, (a, b) in enumerate(zip(*graphs.leaves, strict=True)):
            graphs.check(f"the gradient of leaf {k}", a.grad, b.grad)
