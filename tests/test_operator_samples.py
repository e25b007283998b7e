"""The public functions behind the operators of test_operators.py, on upstream's own sample inputs (OpInfo)."""

import itertools
import pathlib

import pytest
import torch
from operators.compare import Outcome, difference, flatten
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

CENSUS = (pathlib.Path(__file__).parent / "data" / "census_operators.txt").read_text().split()
SAMPLES = 3
LARGEST = 4096  # elements of a sample's tensors; a few samples are there to exercise memory

# Public functions whose operators have other names.
PUBLIC = {
    "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv_transpose2d", "nn.functional.embedding",
    "nn.functional.cross_entropy", "nn.functional.nll_loss", "nn.functional.layer_norm", "nn.functional.group_norm",
    "nn.functional.batch_norm", "nn.functional.softplus", "nn.functional.silu", "nn.functional.elu",
    "nn.functional.pad",
    "nn.functional.max_pool2d", "nn.functional.avg_pool2d", "nn.functional.adaptive_avg_pool2d", "nn.functional.glu",
    "nn.functional.interpolate", "nn.functional.grid_sample", "nn.functional.scaled_dot_product_attention",
    "nn.functional.linear", "nn.functional.prelu", "nn.functional.mse_loss", "nn.functional.unfold",
    "nn.functional.fold", "softmax", "log_softmax", "where", "fft.fft", "fft.rfft", "fft.irfft", "cdist",
    "linalg.vector_norm",
    "linalg.solve_triangular", "nn.functional.logsigmoid", "nn.functional.hardswish", "matmul", "einsum",
}  # fmt: skip
# Random, or with values that nobody has set.
LEFT_OUT = {
    "empty", "empty_like", "new_empty", "new_empty_strided", "uniform", "exponential", "bernoulli", "multinomial",
    "rand_like", "randint", "randn", "rand",
}  # fmt: skip
# (name, sample): reason
SKIPPED: dict[tuple[str, int], str] = {
    ("arange", 2): "the sample names no device: its result is the CPU's",
    **{("sparse_mm_reduce", i): "sparse tensors are not supported on the device" for i in range(SAMPLES)},
}


def wanted(op) -> bool:
    bases = {name.split(".")[0].strip("_") for name in CENSUS}
    own = {op.name, op.name.split(".")[-1], op.aten_name} - {None}
    return (op.name in PUBLIC or bool(own & bases)) and op.name not in LEFT_OUT


OPS = [op for op in op_db if wanted(op) and torch.float32 in op.supported_dtypes("cpu")]


def size(sample) -> int:
    total = 0

    def count(x):
        nonlocal total
        total += x.numel() if isinstance(x, torch.Tensor) else 0

    tree_map(count, (sample.input, sample.args, sample.kwargs))
    return total


def choose(op):
    """The first, middle and last of upstream's first samples of a moderate size."""
    samples = list(itertools.islice(op.sample_inputs("cpu", torch.float32), 30))
    samples = [s for s in samples if size(s) <= LARGEST]
    places = sorted({0, len(samples) // 2, len(samples) - 1}) if samples else []
    return [samples[i] for i in places][:SAMPLES]


def run(op, sample, device: str, backward: bool) -> Outcome:
    out = Outcome()
    leaves = []

    def move(x):
        if not isinstance(x, torch.Tensor):
            return torch.device(device) if isinstance(x, torch.device) else x
        moved = x.detach().clone().to(device)
        if backward and (x.is_floating_point() or x.is_complex()):
            leaves.append(moved.requires_grad_())
        return moved

    try:
        value, args, kwargs = tree_map(move, (sample.input, sample.args, sample.kwargs))
        if "device" in kwargs:
            kwargs["device"] = device
        result = sample.output_process_fn_grad(op(value, *args, **kwargs)) if backward else op(value, *args, **kwargs)
        flatten(result, out.values)
        if backward:
            roots = [v for v in out.values if isinstance(v, torch.Tensor) and v.requires_grad]
            out.differentiable = bool(roots)
            seeds = [torch.linspace(-1, 1.5, r.numel()).reshape(r.shape).to(r.dtype).to(device) for r in roots]
            out.values = list(torch.autograd.grad(roots, leaves, seeds, allow_unused=True)) if roots else []
        out.values = [(v, v.detach().cpu()) if isinstance(v, torch.Tensor) else v for v in out.values]
    except Exception as error:
        out.error = error
    return out


@pytest.mark.parametrize("op", OPS, ids=[op.formatted_name for op in OPS])
def test_samples(op):
    problems = []
    for index, sample in enumerate(choose(op)):
        if (op.formatted_name, index) in SKIPPED:
            continue
        for backward in (False, True) if index == 0 and op.supports_autograd else (False,):
            want = run(op, sample, "cpu", backward)
            if want.error is not None:
                continue
            wrong = difference(want, run(op, sample, "tpu", backward), "contraction", strides=False, factor=2)
            if wrong:
                problems.append(f"sample {index}{' backward' * backward}: {wrong}\n      {str(sample)[:200]}")
    assert not problems, "\n  ".join([op.formatted_name, *problems])
