"""Steps that write to a live tensor, or change what memory it names."""

from collections.abc import Callable

import torch

from tests.fuzz.world import Tensors, World, done, occupied, overlaps_itself, same_storage

Write = tuple[str, Callable[[Tensors], torch.Tensor | None]]


def number(world: World, t: torch.Tensor) -> float | int | bool:
    """A number that every type holds and that keeps arithmetic exact."""
    if t.dtype == torch.bool:
        return world.rng.choice([True, False])
    if t.dtype == torch.uint8:
        return world.rng.choice([0, 1, 3])
    return world.rng.choice([0, 1, 2, -3])


def values(like: torch.Tensor, start: int) -> torch.Tensor:
    """A CPU tensor of the shape and type of `like` with small whole numbers."""
    count = torch.arange(start, start + like.numel()) % 7
    return (count if like.dtype in (torch.uint8, torch.bool) else count - 3).view(like.shape).to(like.dtype)


def on(ts: Tensors, host: torch.Tensor) -> torch.Tensor:
    return host.to(ts[0].device)


def source_for(world: World, i: int, same_dtype: bool) -> int | None:
    """A live tensor that tensor i may be computed from: of its shape, and not partly the same memory."""
    rng, t = world.rng, world.cpu[i]
    fitting = []
    for j, s in enumerate(world.cpu):
        if s.shape != t.shape or s.is_complex() != t.is_complex():
            continue
        if same_dtype and s.dtype != t.dtype:
            continue
        if s.dtype != t.dtype and (not world.computes(s) or t.dtype == torch.uint8 or world.is_marked(t)):
            continue
        if j != i and same_storage(s, t) and occupied(s) & occupied(t):
            continue
        fitting.append(j)
    return rng.choice(fitting) if fitting else None


def move(world: World, i: int) -> Write | None:
    """Copies that keep bits as they are."""
    rng, t = world.rng, world.cpu[i]
    kind, n, start = rng.randrange(6), number(world, t), rng.randrange(3)
    host = values(t, start)
    if kind == 0:
        return f"x{i}.fill_({n})", lambda ts: done(ts[i].fill_(n))
    if kind == 1:
        return f"x{i}.zero_()", lambda ts: done(ts[i].zero_())
    if kind == 2:
        return f"x{i}.copy_(from the host, {start})", lambda ts: done(ts[i].copy_(host))
    if kind == 3:
        return f"x{i}[...] = device values {start}", lambda ts: ts[i].__setitem__(..., on(ts, host))
    if kind == 4 and t.dim() and t.shape[0]:
        row = host[0]
        return f"x{i}.copy_(broadcast row, {start})", lambda ts: done(ts[i].copy_(on(ts, row)))
    j = source_for(world, i, same_dtype=False)
    if j is None:
        return None
    if world.is_marked(world.cpu[j]):
        world.mark(t)
    return f"x{i}.copy_(x{j})", lambda ts: done(ts[i].copy_(ts[j]))


def arithmetic(world: World, i: int) -> Write | None:
    rng, t = world.rng, world.cpu[i]
    if not world.computes(t):
        return None
    n, host = number(world, t), values(t, rng.randrange(3))
    simple: list[Write] = [
        (f"x{i}.add_({n})", lambda ts: done(ts[i].add_(n))),
        (f"x{i}.mul_({n})", lambda ts: done(ts[i].mul_(n))),
        (f"x{i}.sub_(values, alpha=2)", lambda ts: done(ts[i].sub_(on(ts, host), alpha=2))),
        (f"x{i}.clamp_(0, 2)", lambda ts: done(ts[i].clamp_(0, 2))),
        (f"x{i}.neg_()", lambda ts: done(ts[i].neg_())),
        (f"x{i}.add_(x{i})", lambda ts: done(ts[i].add_(ts[i]))),
        (f"torch.mul(x{i}, {n}, out=x{i})", lambda ts: done(torch.mul(ts[i], n, out=ts[i]))),
        (f"torch.add(values, 1, out=x{i})", lambda ts: done(torch.add(on(ts, host), 1, out=ts[i]))),
        (f"torch.flip(values, out) to x{i}", lambda ts: done(ts[i].copy_(on(ts, host).flip(-1)))),
        (f"cumsum_ of x{i}", lambda ts: done(ts[i].cumsum_(0))),
        (f"foreach_add_ of x{i}", lambda ts: torch._foreach_add_([ts[i]], n)),
        (f"logical_not_ of x{i}", lambda ts: done(ts[i].logical_not_())),
    ]
    if t.dtype == torch.bool:
        simple = [step for step in simple if "cumsum" not in step[0]]  # the CPU has no kernel for it
    text, act = rng.choice(simple)
    if rng.random() < 0.3:
        j = source_for(world, i, same_dtype=True)
        if j is not None and world.computes(world.cpu[j]):
            return rng.choice(
                [
                    (f"x{i}.add_(x{j})", lambda ts: done(ts[i].add_(ts[j]))),
                    (f"torch.sub(x{j}, 1, out=x{i})", lambda ts: done(torch.sub(ts[j], 1, out=ts[i]))),
                    (f"foreach_add_([x{i}, x{j}])", lambda ts: torch._foreach_add_([ts[i], ts[j]], 1)),
                    (f"x{i}.mul_(x{j})", lambda ts: done(ts[i].mul_(ts[j]))),
                ]
            )
    return text, act


def indexed(world: World, i: int) -> Write | None:
    rng, t = world.rng, world.cpu[i]
    if t.dim() == 0 or 0 in t.shape or overlaps_itself(t):  # the CPU takes some of these with a deprecation warning
        return None
    n, host = number(world, t), values(t, rng.randrange(3))
    dim = rng.randrange(t.dim())
    mask = torch.arange(t.numel()).view(t.shape) % 3 == 0
    rows = torch.tensor([t.shape[0] - 1, 0]) if t.shape[0] > 1 else torch.tensor([0])
    index = torch.zeros_like(t, dtype=torch.int64) + torch.arange(t.shape[dim]).view([-1] + [1] * (t.dim() - 1 - dim))
    index = index.flip(dim)
    part = host[: len(rows)]
    step = rng.choice([1, 2])
    inner = (slice(None),) * dim + (slice(None, None, step),)
    accumulate = rng.random() < 0.5 and world.computes(t)
    choices: list[Write] = [
        (f"x{i}.masked_fill_({n})", lambda ts: done(ts[i].masked_fill_(on(ts, mask), n))),
        (f"x{i}[mask] = {n}", lambda ts: ts[i].__setitem__(on(ts, mask), n)),
        (f"x{i}[0] = {n}", lambda ts: ts[i].__setitem__(0, n)),
        (f"x{i}[::{step} in dim {dim}] = {n}", lambda ts: ts[i].__setitem__(inner, n)),
        (f"x{i}[::{step} in dim {dim}] = values", lambda ts: ts[i].__setitem__(inner, on(ts, host[inner]))),
        (f"x{i}[-1] = values", lambda ts: ts[i].__setitem__(-1, on(ts, host[-1]))),
        (f"x{i}[rows] = values", lambda ts: ts[i].__setitem__(on(ts, rows), on(ts, part))),
        (
            f"x{i}.index_put_(rows, accumulate={accumulate})",
            lambda ts: done(ts[i].index_put_((on(ts, rows),), on(ts, part), accumulate)),
        ),
        (f"x{i}.scatter_({dim}, {n})", lambda ts: done(ts[i].scatter_(dim, on(ts, index), n))),
        (f"x{i}.scatter_({dim}, values)", lambda ts: done(ts[i].scatter_(dim, on(ts, index), on(ts, host)))),
        (f"x{i}.index_fill_(0, {n})", lambda ts: done(ts[i].index_fill_(0, on(ts, rows), n))),
        (f"x{i}.index_copy_(0)", lambda ts: done(ts[i].index_copy_(0, on(ts, rows), on(ts, part)))),
        (f"x{i}.masked_scatter_", lambda ts: done(ts[i].masked_scatter_(on(ts, mask), on(ts, host)))),
    ]
    if world.computes(t):
        choices += [
            (f"x{i}.scatter_add_({dim})", lambda ts: done(ts[i].scatter_add_(dim, on(ts, index), on(ts, host)))),
            (f"x{i}.index_add_(0)", lambda ts: done(ts[i].index_add_(0, on(ts, rows), on(ts, part)))),
            (f"x{i}[0] += 1", lambda ts: done(ts[i][0].add_(1))),
        ]
    return rng.choice(choices)


def memory(world: World, i: int) -> Write | None:
    """Changes of metadata and of the storage itself. What is fresh memory on the CPU is zeroed in the same step."""
    rng, t = world.rng, world.cpu[i]
    j = rng.randrange(len(world.cpu))

    def bigger(ts: Tensors) -> None:
        storage = ts[i].untyped_storage()
        before = storage.nbytes()
        ts[i].resize_(3, 5)
        fresh = torch.empty(0, dtype=torch.uint8, device=ts[i].device).set_(storage)
        fresh[before:].zero_()

    def emptied_and_back(ts: Tensors) -> None:
        storage = ts[i].untyped_storage()
        before = storage.nbytes()
        storage.resize_(0)
        storage.resize_(before)
        torch.empty(0, dtype=torch.uint8, device=ts[i].device).set_(storage).zero_()

    def grown(ts: Tensors) -> None:
        storage = ts[i].untyped_storage()
        before = storage.nbytes()
        storage.resize_(before + 24)
        torch.empty(0, dtype=torch.uint8, device=ts[i].device).set_(storage)[before:].zero_()

    def data(ts: Tensors) -> None:
        ts[i].data = ts[j].data

    choices: list[Write] = [
        (f"x{i}.resize_(3, 5)", bigger),
        (f"x{i}.resize_(2)", lambda ts: done(ts[i].resize_(2)) if ts[i].numel() > 2 else None),
        (f"x{i}'s storage resized to 0 and back", emptied_and_back),
        (f"x{i}'s storage grown", grown),
        (f"x{i}.transpose_(0, -1)", lambda ts: done(ts[i].transpose_(0, -1))),
        (f"x{i}.unsqueeze_(0)", lambda ts: done(ts[i].unsqueeze_(0))),
        (f"x{i}.squeeze_()", lambda ts: done(ts[i].squeeze_())),
    ]
    if t.dtype == world.cpu[j].dtype:
        choices += [
            (f"x{i}.set_(x{j})", lambda ts: done(ts[i].set_(ts[j]))),
            (f"x{i}.data = x{j}", data),
        ]
    return rng.choice(choices)


KINDS = [*[move] * 4, *[arithmetic] * 4, *[indexed] * 3, memory]


def write_step(world: World) -> None:
    """Writes to a live tensor; one whose elements overlap, only where the CPU refuses it too."""
    for _ in range(10):
        i = world.rng.randrange(len(world.cpu))
        t = world.cpu[i]
        kind = world.rng.choice(KINDS)
        if kind is not memory and overlaps_itself(t) and 0 not in t.stride():
            continue
        made = kind(world, i)
        if made is None:
            continue
        text, act = made
        world.step(text, act)
        return
