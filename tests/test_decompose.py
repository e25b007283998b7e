"""PyTorch's core decompositions as the engine calls them, tried on CPU tensors."""

import pytest
import torch

from torch_tpu.decompose import decompose


@pytest.fixture
def x():
    return torch.randn(3, 4)


def test_defaults_and_spellings(x):
    want = torch.nn.functional.softplus(x)
    for name in ("aten::softplus", "softplus", "softplus.default", "aten::softplus.default"):
        torch.testing.assert_close(decompose(name, (x,), {}), want)
    torch.testing.assert_close(decompose("softplus", (x, 2, 20), {}), torch.nn.functional.softplus(x, 2, 20))


def test_keyword_only_arguments_in_schema_order(x):
    torch.testing.assert_close(decompose("aten::addcmul", (x, x, x, 0.5), {}), torch.addcmul(x, x, x, value=0.5))
    torch.testing.assert_close(decompose("aten::addcmul", (x, x, x), {"value": 2}), torch.addcmul(x, x, x, value=2))
    got = decompose("aten::std.correction", (x, [0]), {"correction": 0, "keepdim": True})
    torch.testing.assert_close(got, torch.std(x, [0], correction=0, keepdim=True))
    got = decompose("aten::gelu_backward", (x, x, "tanh"), {})
    torch.testing.assert_close(got, torch.ops.aten.gelu_backward(x, x, approximate="tanh"))


def test_no_decomposition(x):
    with pytest.raises(LookupError, match=r"aten::add\.Tensor"):
        decompose("aten::add.Tensor", (x, x), {})
