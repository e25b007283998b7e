"""A fixed sample of PyTorch's own operator tests; `make conformance` runs all of them (docs/conformance.md)."""

import pytest

from tests.conformance import checks, runner, status

OPERATORS = [
    "add", "div_floor_rounding", "abs", "cumsum", "sum", "std", "argmax", "sort", "cat", "gather", "scatter_reduce_sum",
    "index_put", "masked_fill", "where", "matmul", "addmm", "softmax", "arange", "as_strided_scatter", "unique",
    "nn_functional_conv2d", "nn_functional_layer_norm", "nn_functional_gelu", "nn_functional_embedding",
    "nn_functional_cross_entropy", "nn_functional_interpolate_bilinear", "_foreach_add",
]  # fmt: skip


@pytest.fixture(scope="module")
def child():
    """The process that runs the cases."""
    process = runner.Child()
    yield process
    process.end()


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_agrees_with_the_cpu(child, name):
    entries = status.load()
    results = [child.ask(name, kind) for kind in checks.KINDS]
    problems = []
    for result in results:
        if status.apply(entries, result) == "failed":
            problems += [f"{result['kind']}: {p['at']}: {p['text']}" for p in result["problems"] if not p["excused"]]
    assert not problems, "\n".join(problems)
    assert sum(result["compared"] for result in results) > 10
    assert not status.stale(entries, {(name, kind) for kind in checks.KINDS})
