"""Views and in-place writes under autograd: the gradients of the leaves are compared."""

import torch

from tests.fuzz.views import MAKERS, make_as_strided, make_copy, make_dtype
from tests.fuzz.world import Mismatch, overlaps_itself

DIFFERENTIABLE = [maker for maker in MAKERS if maker not in (make_dtype, make_as_strided)] + [make_copy]


def run(seed: int, steps: int = 8) -> int:
    """One graph of `steps` views and writes over two leaves, then backward. Returns the number of writes."""
    import random

    rng = random.Random(seed)
    texts: list[str] = []
    start = (torch.arange(24) % 7 - 3).float().view(4, 6)
    leaves = [[(start + k).to(device).requires_grad_() for k in (0, 1)] for device in ("cpu", "tpu")]
    sides = [[leaf[0] * 1, leaf[1] * 1] for leaf in leaves]
    writes = 0

    def both(text: str, act) -> bool:
        texts.append(text)
        results, errors = [], []
        for side in sides:
            try:
                results.append(act(side))
                errors.append(None)
            except Exception as error:
                errors.append(error)
        if type(errors[0]) is not type(errors[1]):
            raise Mismatch("\n".join([*texts, f"CPU raises {errors[0]!r}, the device {errors[1]!r}"]))
        if errors[0] is None and isinstance(results[0], torch.Tensor):
            for side, result in zip(sides, results, strict=True):
                side.append(result)
        return errors[0] is None

    def check(what: str, want: torch.Tensor | None, got: torch.Tensor | None) -> None:
        if want is None or got is None:
            equal = want is got
        else:
            equal = torch.equal(want, got.cpu())
        if not equal:
            raise Mismatch("\n".join([*texts, f"{what} is\n{got}\nthe CPU has\n{want}"]))

    for _ in range(steps):
        i = rng.randrange(len(sides[0]))
        t = sides[0][i]
        if rng.random() < 0.5:
            text, act = rng.choice(DIFFERENTIABLE)(rng, t)
            both(f"x{i}{text}", lambda side, i=i, act=act: act(side[i]))
        elif not overlaps_itself(t) or 0 in t.stride():
            j, n = rng.randrange(len(sides[0])), rng.choice([1, 2, -1])
            other = sides[0][j]
            mask = torch.arange(t.numel()).view(t.shape) % 3 == 0
            choices = [
                (f"x{i}.mul_({n})", lambda side: side[i].mul_(n) and None),
                (f"x{i}.add_({n})", lambda side: side[i].add_(n) and None),
                (f"x{i}.zero_()", lambda side: side[i].zero_() and None),
                (f"x{i}.masked_fill_({n})", lambda side: side[i].masked_fill_(mask.to(side[i].device), n) and None),
                (f"x{i}[0] = {n}", lambda side: side[i].__setitem__(0, n)),
                (f"x{i}[..., ::2] = x1 sum", lambda side: side[i].__setitem__((..., slice(None, None, 2)), side[1].sum())),
                (f"x{i}[:, 0] = {n}", lambda side: side[i].__setitem__((slice(None), 0), n)),
            ]
            if other.shape == t.shape and other.untyped_storage()._cdata != t.untyped_storage()._cdata:
                choices += [
                    (f"x{i}.copy_(x{j})", lambda side: side[i].copy_(side[j]) and None),
                    (f"x{i}.add_(x{j}, alpha=2)", lambda side: side[i].add_(side[j], alpha=2) and None),
                ]
            writes += both(*rng.choice(choices))
        for k, (a, b) in enumerate(zip(*sides, strict=True)):
            check(f"x{k}", a.detach(), b.detach())

    def backward(side: list[torch.Tensor]) -> None:
        total = side[0].new_zeros(())
        for k, t in enumerate(side):
            total = total + (t * (k + 1)).sum()
        total.backward()

    if both("backward", backward):
        for k in (0, 1):
            check(f"the gradient of leaf {k}", leaves[0][k].grad, leaves[1][k].grad)
    return writes
