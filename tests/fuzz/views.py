"""Steps that make a view, or a copy, of a live tensor. Parameters come from few values, so that programs are shared."""

import random
from collections.abc import Callable

import torch

from tests.fuzz.world import World

View = tuple[str, Callable[[torch.Tensor], torch.Tensor]]

DTYPE_VIEWS = {
    torch.float32: [torch.int32, torch.uint8, torch.int64, torch.bfloat16],
    torch.int32: [torch.float32, torch.int64, torch.uint8],
    torch.int64: [torch.int32, torch.uint8, torch.float32],
    torch.uint8: [torch.int32, torch.float32],
    torch.bfloat16: [torch.uint8, torch.float32],
}


def _dim(rng: random.Random, t: torch.Tensor) -> int:
    return rng.randrange(t.dim()) if t.dim() else 0


def make_slice(rng: random.Random, t: torch.Tensor) -> View:
    dim = _dim(rng, t)
    step = rng.choice([1, 1, 2, 3])
    start = rng.choice([0, 1, 2])
    stop = rng.choice([None, None, -1, 3])
    index = (slice(None),) * dim + (slice(start, stop, step),)
    return f"[{'...,' if dim else ''}{start}:{stop}:{step}] in dim {dim}", lambda x: x[index]


def make_narrow(rng: random.Random, t: torch.Tensor) -> View:
    dim, start, length = _dim(rng, t), rng.choice([0, 1, -1]), rng.choice([0, 1, 2])
    return f".narrow({dim}, {start}, {length})", lambda x: x.narrow(dim, start, length)


def make_select(rng: random.Random, t: torch.Tensor) -> View:
    dim, index = _dim(rng, t), rng.choice([0, 1, -1])
    return f".select({dim}, {index})", lambda x: x.select(dim, index)


def make_transpose(rng: random.Random, t: torch.Tensor) -> View:
    a, b = _dim(rng, t), _dim(rng, t)
    return f".transpose({a}, {b})", lambda x: x.transpose(a, b)


def make_permute(rng: random.Random, t: torch.Tensor) -> View:
    order = list(range(t.dim()))
    rng.shuffle(order)
    return f".permute({order})", lambda x: x.permute(order)


def make_expand(rng: random.Random, t: torch.Tensor) -> View:
    dim = rng.randint(0, t.dim())
    size = [-1] * t.dim()
    size.insert(dim, 2)
    return f".unsqueeze({dim}).expand({size})", lambda x: x.unsqueeze(dim).expand(size)


def make_diagonal(rng: random.Random, t: torch.Tensor) -> View:
    offset = rng.choice([0, 1, -1])
    a, b = rng.choice([(0, 1), (-1, -2)])
    return f".diagonal({offset}, {a}, {b})", lambda x: x.diagonal(offset, a, b)


def make_unfold(rng: random.Random, t: torch.Tensor) -> View:
    dim, size, step = _dim(rng, t), rng.choice([1, 2]), rng.choice([1, 2])
    return f".unfold({dim}, {size}, {step})", lambda x: x.unfold(dim, size, step)


def make_view(rng: random.Random, t: torch.Tensor) -> View:
    sizes = rng.choice([[-1], [2, -1], [-1, 2], [3, -1, 2], [1, -1]])
    if rng.random() < 0.5:
        return f".view({sizes})", lambda x: x.view(sizes)
    return f".reshape({sizes})", lambda x: x.reshape(sizes)


def make_squeeze(rng: random.Random, t: torch.Tensor) -> View:
    dim = _dim(rng, t)
    if rng.random() < 0.5:
        return ".squeeze()", lambda x: x.squeeze()
    return f".unsqueeze({dim})", lambda x: x.unsqueeze(dim)


def make_as_strided(rng: random.Random, t: torch.Tensor) -> View:
    sizes, strides = rng.choice(
        [([2, 3], [3, 1]), ([2, 3], [1, 2]), ([3], [2]), ([2, 2], [1, 1]), ([3, 2], [4, 1]), ([2, 2, 2], [6, 3, 1])]
    )
    offset = rng.choice([None, 0, 1, 2])
    text = f".as_strided({sizes}, {strides}, {offset})"
    return text, lambda x: x.as_strided(sizes, strides, offset)


def make_dtype(rng: random.Random, t: torch.Tensor) -> View:
    if t.is_complex():
        return ".view_as_real()", torch.view_as_real
    if t.dtype == torch.float32 and rng.random() < 0.3:
        return ".view_as_complex()", torch.view_as_complex
    dtype = rng.choice(DTYPE_VIEWS.get(t.dtype, [t.dtype]))
    return f".view({dtype})", lambda x: x.view(dtype)


def make_part(rng: random.Random, t: torch.Tensor) -> View:
    dim, n = _dim(rng, t), rng.choice([1, 2])
    return rng.choice(
        [
            (f".split({n}, {dim})[-1]", lambda x: x.split(n, dim)[-1]),
            (f".chunk({n}, {dim})[0]", lambda x: x.chunk(n, dim)[0]),
            (f".unbind({dim})[-1]", lambda x: x.unbind(dim)[-1]),
            (f".tensor_split(3, {dim})[1]", lambda x: x.tensor_split(3, dim)[1]),
        ]
    )


def make_same(rng: random.Random, t: torch.Tensor) -> View:
    return rng.choice(
        [
            (".detach()", lambda x: x.detach()),
            (".data", lambda x: x.data),
            (".view_as(self)", lambda x: x.view_as(x)),
            ("[...]", lambda x: x[...]),
            (".flatten()", lambda x: x.flatten()),
            (".mT", lambda x: x.mT),
        ]
    )


def make_copy(rng: random.Random, t: torch.Tensor) -> View:
    rows = [1, 0] if t.dim() > 0 and t.shape[0] > 1 else [0]
    return rng.choice(
        [
            (".clone()", lambda x: x.clone()),
            (".contiguous()", lambda x: x.contiguous()),
            (".flip(0)", lambda x: x.flip(0)),
            (".clone(contiguous)", lambda x: x.clone(memory_format=torch.contiguous_format)),
            (".roll(1)", lambda x: x.roll(1)),
            (f"[{rows}]", lambda x: x[rows]),
        ]
    )


MAKERS = [
    *[make_slice] * 3,
    make_narrow,
    *[make_select] * 2,
    *[make_transpose] * 2,
    make_permute,
    make_expand,
    make_diagonal,
    make_unfold,
    *[make_view] * 2,
    make_squeeze,
    make_as_strided,
    *[make_dtype] * 2,
    make_part,
    make_same,
    make_copy,
]


def view_step(world: World) -> None:
    """Adds a view or a copy of a live tensor."""
    rng = world.rng
    i = rng.randrange(len(world.cpu))
    source = world.cpu[i]
    maker = rng.choice(MAKERS)
    text, act = maker(rng, source)
    bits_only = world.is_marked(source) or (maker is make_dtype and not source.is_complex())
    world.step(f"x{i}{text}", lambda ts: act(ts[i]), bits_only)
