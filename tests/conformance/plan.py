"""Which operators, dtypes and sample inputs are checked. Everything is fixed: two runs check the same."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations as upstream
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CENSUS = (ROOT / "tests" / "data" / "census_operators.txt").read_text().split()
LARGEST = 4096  # elements of a sample's tensors together; a few of upstream's are there to exercise memory
DRAWN = 600  # samples of an operator that are looked at

# Census operators (without overload) that are reached through public functions with other names.
PUBLIC: dict[str, tuple[str, ...]] = {
    "_conj": ("conj", "conj_physical"),
    "_fft_c2c": ("fft.fft", "fft.ifft"),
    "_fft_c2r": ("fft.irfft", "fft.hfft"),
    "_fft_r2c": ("fft.rfft", "fft.ihfft"),
    "_local_scalar_dense": ("item",),
    "_prelu_kernel": ("nn.functional.prelu",),
    "_prelu_kernel_backward": ("nn.functional.prelu",),
    "_safe_softmax": ("torch.ops.aten._safe_softmax.default", "nn.functional.scaled_dot_product_attention"),
    "_to_copy": ("to", "float", "long", "bfloat16", "bool", "int", "half"),
    "_unique2": ("unique",),
    "_unsafe_view": ("matmul", "nn.functional.linear", "einsum"),
    "_upsample_bilinear2d_aa_backward": ("_upsample_bilinear2d_aa",),
    "addmm": ("addmm", "nn.functional.linear"),
    "as_strided_": ("as_strided",),
    "bmm": ("bmm", "matmul"),
    "cat": ("cat", "hstack", "vstack"),
    "clamp_min": ("clamp_min",),
    "col2im": ("nn.functional.fold", "nn.functional.unfold"),
    "convolution": (
        "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d",
        "nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
    ),
    "copy_": ("as_strided_scatter", "slice_scatter", "select_scatter", "to"),
    "embedding_dense_backward": ("nn.functional.embedding",),
    "grid_sampler_2d": ("nn.functional.grid_sample", "grid_sampler_2d"),
    "im2col": ("nn.functional.unfold",),
    "index": ("__getitem__",),
    "lift_fresh": ("__getitem__",),
    "log_sigmoid_forward": ("nn.functional.logsigmoid",),
    "max_pool2d_with_indices": ("nn.functional.max_pool2d", "nn.functional.max_pool1d"),
    "native_batch_norm": ("native_batch_norm", "nn.functional.batch_norm", "nn.functional.instance_norm"),
    "native_group_norm": ("nn.functional.group_norm",),
    "native_layer_norm": ("native_layer_norm", "nn.functional.layer_norm"),
    "nll_loss_forward": ("nn.functional.nll_loss", "nn.functional.cross_entropy"),
    "rand": ("rand_like",),
    "reflection_pad1d": ("nn.functional.pad",),
    "replication_pad1d": ("nn.functional.pad",),
    "_scaled_dot_product_flash_attention_for_cpu": ("nn.functional.scaled_dot_product_attention",),
    "_euclidean_dist": ("cdist",),
    "upsample_bicubic2d": ("nn.functional.interpolate",),
    "upsample_bilinear2d": ("nn.functional.interpolate", "nn.functional.upsample_bilinear"),
    "upsample_linear1d": ("nn.functional.interpolate",),
    "upsample_nearest2d": ("nn.functional.interpolate", "nn.functional.upsample_nearest"),
    "view": ("view", "reshape", "flatten", "unflatten", "view_as"),
}  # fmt: skip
# Their results hold whatever the memory held.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# They make tensors from nothing; a sample may leave the device out.
FACTORIES = {
    "arange", "empty", "empty_permuted", "empty_strided", "eye", "full", "linspace", "logspace", "normal", "ones",
    "rand", "randint", "randn", "scalar_tensor", "zeros", "tril_indices", "triu_indices",
}  # fmt: skip


def database() -> list[OpInfo]:
    """Every OpInfo of the wheel; list operators have tables of their own."""
    lists = (upstream.foreach_unary_op_db, upstream.foreach_binary_op_db, upstream.foreach_pointwise_op_db,
             upstream.foreach_reduce_op_db, upstream.foreach_other_op_db)  # fmt: skip
    return [*upstream.op_db, *itertools.chain.from_iterable(lists)]


def _base(census_name: str) -> str:
    """The functional, forward operator that an operator belongs to."""
    name = census_name.split(".")[0]
    if name in PUBLIC:
        return name
    return name.removesuffix("_").removesuffix("_backward_data").removesuffix("_backward")


def opinfos_of(census_name: str) -> list[OpInfo]:
    """The OpInfos that exercise an ATen operator; none where upstream has none."""
    base = _base(census_name)
    public = PUBLIC.get(base, ())
    plain = base.lstrip("_") if not base.startswith("_foreach") else base
    found = []
    for op in DATABASE:
        own = {op.name, op.name.removeprefix("nn.functional."), op.aten_name}
        if op.name in public if public else (own & {base, plain}):
            found.append(op)
    return found


DATABASE = database()


def census_ops() -> list[OpInfo]:
    wanted = {op.formatted_name for name in CENSUS for op in opinfos_of(name)}
    return [op for op in DATABASE if op.formatted_name in wanted]


def uncovered() -> list[str]:
    """Census operators that no OpInfo exercises; the tables in tests/operators do."""
    return [name for name in CENSUS if not opinfos_of(name)]


def base_dtype(op: OpInfo) -> torch.dtype | None:
    """float32 where the operator has it on the CPU, else int64, else complex64."""
    supported = op.supported_dtypes("cpu")
    return next((d for d in (torch.float32, torch.int64, torch.complex64, torch.bool) if d in supported), None)


def tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def parts(sample: SampleInput) -> tuple[Any, ...]:
    return (sample.input, sample.args, sample.kwargs)


def rebuilt(sample: SampleInput, change: Any) -> SampleInput:
    """The sample with every tensor replaced by change(tensor)."""
    value, args, kwargs = tree_map(lambda x: change(x) if isinstance(x, torch.Tensor) else x, parts(sample))
    return SampleInput(
        value,
        args=args,
        kwargs=kwargs,
        output_process_fn_grad=sample.output_process_fn_grad,
        broadcasts_input=sample.broadcasts_input,
    )


def _signature(sample: SampleInput) -> str:
    """What makes a program of its own: shapes and dtypes, and which other arguments there are."""

    def one(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return (str(x.dtype), tuple(x.shape), x.stride())
        return type(x).__name__ if isinstance(x, float | complex) else repr(x)

    return repr(tree_map(one, parts(sample)))


def spread(items: list[Any], count: int) -> list[Any]:
    """At most `count` of the items, the first and the last among them."""
    if len(items) <= count:
        return items
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


@dataclasses.dataclass(frozen=True)
class Numbered:
    """A sample and its number among upstream's, for messages."""

    label: str
    sample: SampleInput


def _drawn(op: OpInfo, dtype: torch.dtype, gradients: bool) -> Iterator[Numbered]:
    torch.manual_seed(0)
    seen: set[str] = set()
    options = {"allow_higher_dtype_scalars": True} if op.name.startswith("_foreach") else {}
    drawn: Iterable[SampleInput] = op.sample_inputs("cpu", dtype, requires_grad=gradients, **options)
    for number, sample in enumerate(itertools.islice(drawn, DRAWN)):
        if sum(x.numel() for x in tensors(parts(sample))) > LARGEST:
            continue
        signature = _signature(sample)
        if signature not in seen:
            seen.add(signature)
            yield Numbered(f"sample {number}", sample)


def _shapeless(sample: SampleInput) -> bool:
    found = tensors(sample.input)
    return bool(found) and all(x.dim() == 0 for x in found)


def _empty(sample: SampleInput) -> bool:
    return any(x.numel() == 0 for x in tensors(parts(sample)))


def samples(op: OpInfo, dtype: torch.dtype, count: int, gradients: bool = False) -> list[Numbered]:
    """Up to `count` samples that differ in shapes; zero-size and 0-d ones have checks of their own."""
    drawn = list(_drawn(op, dtype, gradients))
    ordinary = [n for n in drawn if not _empty(n.sample) and not _shapeless(n.sample)]
    return spread(ordinary or drawn, count)


def zero_size(op: OpInfo, dtype: torch.dtype, count: int) -> list[Numbered]:
    """Upstream's samples without elements, and others with one dimension cut to nothing."""
    drawn = list(_drawn(op, dtype, False))
    empty = [n for n in drawn if _empty(n.sample)]
    cut = []
    for n in spread([n for n in drawn if not _empty(n.sample) and not _shapeless(n.sample)], count):
        first = tensors(n.sample.input)[:1]
        for dim in {0, first[0].dim() - 1} if first and first[0].dim() else ():
            size, rank = first[0].shape[dim], first[0].dim()

            def shrink(x: torch.Tensor, dim: int = dim, size: int = size, rank: int = rank) -> torch.Tensor:
                same = x.dim() == rank and x.shape[dim] == size
                return x.narrow(dim, 0, 0).contiguous() if same else x

            cut.append(Numbered(f"{n.label} with dimension {dim} cut to 0", rebuilt(n.sample, shrink)))
    return spread(empty, count // 2) + spread(cut, count - min(len(empty), count // 2))


def shapeless(op: OpInfo, dtype: torch.dtype, count: int) -> list[Numbered]:
    """Upstream's 0-d samples, and others with each tensor replaced by its first element."""
    drawn = list(_drawn(op, dtype, False))
    own = [n for n in drawn if _shapeless(n.sample)]
    others = [n for n in drawn if not _empty(n.sample) and not _shapeless(n.sample) and tensors(n.sample.input)]
    reduced = [
        Numbered(f"{n.label} as 0-d", rebuilt(n.sample, lambda x: x.reshape(-1)[0].clone()))
        for n in spread(others, count)
    ]
    return spread(own, count // 2) + spread(reduced, count - min(len(own), count // 2))


def permuted(sample: SampleInput) -> SampleInput:
    """The same values with the first and last dimensions swapped in memory: dense, not contiguous."""

    def lay_out(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x

    return rebuilt(sample, lay_out)
