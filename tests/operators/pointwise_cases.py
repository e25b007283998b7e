"""Cases of the pointwise operators, their gradients, their in-place forms and the foreach ones."""

import torch
from operators.values import Case, N, b, c, f, t, through, z

X, Y = t(N, 5), t(N, 5)

_UNARY = {
    "normal": "abs neg sin cos silu sigmoid relu tanh exp floor ceil erf expm1 sign sgn isnan bitwise_not logical_not "
    "hardsigmoid hardswish softplus elu hardtanh leaky_relu log_sigmoid_forward gelu relu_ sigmoid_ tanh_",
    "positive": "rsqrt log sqrt log1p log2",
    "nonzero": "reciprocal",
    "unit": "acos erfinv",
}


def _log_sigmoid_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.log_sigmoid_backward(grad, x, torch.ops.aten.log_sigmoid_forward(x)[1])


def _log_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.log_sigmoid_forward(x)[0]  # the second result is the CPU kernel's own buffer


CASES: dict[str, list[Case]] = {
    f"{name}.default": [c(t(N, 5, kind=kind)), c(t(2, N, 4, kind=kind))]
    for kind, names in _UNARY.items()
    for name in names.split()
}

for _name in ("add", "sub"):
    CASES[f"{_name}.Tensor"] = [c(X, Y), c(X, t(5), alpha=2), c(X, 2.5), c(t(N, 1), t(1, 5))]
for _name in ("mul", "eq", "ne", "le", "lt", "ge", "gt"):
    CASES[f"{_name}.Tensor"] = [c(X, Y), c(X, t(5)), c(X, f(N, 5))]
for _name in ("bitwise_and", "bitwise_or"):
    CASES[f"{_name}.Tensor"] = [c(X, Y), c(X, t(5))]
for _name in ("minimum", "maximum", "logical_and", "logical_or"):
    CASES[f"{_name}.default"] = [c(X, Y), c(X, t(5))]
for _name in ("eq", "ne", "le", "lt", "ge", "gt"):
    CASES[f"{_name}.Scalar"] = [c(X, 0), c(X, 0.5)]
for _name in ("add", "mul", "rsub", "remainder", "div"):
    CASES[f"{_name}.Scalar"] = [c(X, 2), c(X, 2.5)]
for _name in ("mul_", "add_"):
    CASES[f"{_name}.Scalar"] = [c(X, 2)]
for _name in ("add_", "mul_"):
    CASES[f"{_name}.Tensor"] = [c(X, Y), c(X, t(5))]

CASES |= {
    "div.Tensor": [c(X, t(N, 5, kind="nonzero")), c(X, t(5, kind="nonzero")), c(X, 2)],
    "div_.Tensor": [c(X, t(N, 5, kind="nonzero"))],
    "div_.Scalar": [c(X, 2.5)],
    "div.Tensor_mode": [c(X, t(N, 5, kind="nonzero"), rounding_mode=mode) for mode in ("floor", "trunc")]
    + [c(X, t(5, kind="nonzero"), rounding_mode=None)],
    "remainder.Tensor": [c(X, t(N, 5, kind="nonzero")), c(X, t(5, kind="nonzero"))],
    "floor_divide.default": [c(X, t(N, 5, kind="nonzero")), c(X, 2)],
    "floor_divide_.Tensor": [c(X, t(N, 5, kind="nonzero"))],
    "bitwise_or_.Tensor": [c(X, Y)],
    "logical_and_.default": [c(X, Y)],
    "pow.Tensor_Scalar": [c(t(N, 5, kind="positive"), e) for e in (2, 0.5, 3, 1.7)] + [c(X, 2)],
    "pow.Tensor_Tensor": [c(t(N, 5, kind="positive"), t(N, 5, kind="positive"))],
    "pow.Scalar": [c(2, t(N, 5, kind="positive")), c(1.5, t(N, 5, kind="positive"))],
    "clamp.default": [c(X, -0.5, 0.5), c(X, None, 1), c(X, 0)],
    "clamp_.default": [c(X, -0.5, 0.5), c(X, 0)],
    "clamp.Tensor": [c(X, t(5), None), c(X, t(N, 5), t(5))],
    "clamp_min.default": [c(X, 0), c(X, 0.5)],
    "where.self": [c(b(N, 5), X, Y), c(b(5), X, t(N, 1)), c(b(N, 1), X, f(5))],
    "masked_fill.Scalar": [c(X, b(N, 5), 2), c(X, b(5), 2)],
    "masked_fill_.Scalar": [c(X, b(N, 5), 2), c(X, b(5), 1)],
    "masked_fill.Tensor": [c(X, b(N, 5), t()), c(X, b(5), t())],
    "fill_.Scalar": [c(X, 2), c(X, 1.5)],
    "fill_.Tensor": [c(X, t())],
    "addcdiv_.default": [c(X, Y, t(N, 5, kind="nonzero"), value=0.5)],
    "addcmul_.default": [c(X, Y, t(5), value=0.5), c(X, Y, t(N, 5))],
    "lerp_.Scalar": [c(X, Y, 0.3), c(X, t(5), 0.7)],
    "polar.default": [c(t(N, 5, kind="positive"), Y)],
    "mse_loss.default": [c(X, Y), c(X, Y, 2), c(X, t(N, 5), 0)],
    "glu.default": [c(t(N, 6)), c(t(4, N), 0)],
    "_prelu_kernel.default": [c(X, t(1, 5)), c(X, t(1, 1))],
    "bucketize.Tensor": [
        c(X, t(4, kind="sorted")),
        c(X, t(4, kind="sorted"), right=True),
        c(X, t(4, kind="sorted"), out_int32=True),
    ],
    "_conj.default": [c(z(N, 5))],
    "view_as_real.default": [c(z(N, 5))],
    "view_as_complex.default": [c(t(N, 5, 2))],
    "_to_copy.default": [c(X, dtype=torch.bfloat16), c(X, dtype=torch.int64), c(X)],
    "copy_.default": [c(X, Y), c(X, t(5)), c(X, f(N, 5))],
    "gelu.default": CASES["gelu.default"] + [c(X, approximate="tanh")],
    "softplus.default": [c(X), c(X, 2, 1.5)],
    "elu.default": [c(X), c(X, 1.5), c(X, 0.7, 1.5, 2)],
    "hardtanh.default": [c(X), c(X, -0.5, 2)],
    "leaky_relu.default": [c(X), c(X, 0.2)],
    "log_sigmoid_forward.default": [through(_log_sigmoid, X), through(_log_sigmoid, t(2, N, 4))],
    # gradients, called as autograd calls them
    "gelu_backward.default": [c(X, Y), c(X, Y, approximate="tanh")],
    "silu_backward.default": [c(X, Y)],
    "sigmoid_backward.default": [c(X, t(N, 5, kind="unit"))],
    "tanh_backward.default": [c(X, t(N, 5, kind="unit"))],
    "threshold_backward.default": [c(X, Y, 0), c(X, Y, 0.5)],
    "softplus_backward.default": [c(X, Y, 1, 20), c(X, Y, 2, 1.5)],
    "hardsigmoid_backward.default": [c(X, Y)],
    "hardswish_backward.default": [c(X, Y)],
    "hardtanh_backward.default": [c(X, Y, -0.5, 1.0)],
    "elu_backward.default": [c(X, 1.0, 1.0, 1.0, False, Y), c(X, 1.5, 1.2, 0.7, False, Y)],
    "leaky_relu_backward.default": [c(X, Y, 0.2, False)],
    "log_sigmoid_backward.default": [through(_log_sigmoid_backward, X, Y)],
    "glu_backward.default": [c(X, t(N, 10), -1), c(t(2, N), t(4, N), 0)],
    "mse_loss_backward.default": [c(t(), X, Y, 1), c(t(N, 5), X, Y, 0)],
    "_prelu_kernel_backward.default": [c(X, Y, t(1, 5))],
    # foreach
    "_foreach_add_.List": [c([X, t(4)], [Y, t(4)], alpha=0.5)],
    "_foreach_add_.Scalar": [c([X, t(4)], 2)],
    "_foreach_add_.Tensor": [c([X, t(4)], t(), alpha=1)],
    "_foreach_addcdiv_.ScalarList": [
        c([X, t(4)], [Y, t(4)], [t(N, 5, kind="nonzero"), t(4, kind="nonzero")], [0.5, 2.0])
    ],
    "_foreach_addcmul_.Scalar": [c([X, t(4)], [Y, t(4)], [t(N, 5), t(4)], 0.5)],
    "_foreach_div_.ScalarList": [c([X, t(4)], [0.5, 4.0])],
    "_foreach_lerp_.Scalar": [c([X, t(4)], [Y, t(4)], 0.3)],
    "_foreach_mul_.Scalar": [c([X, t(4)], 0.5)],
    "_foreach_sqrt.default": [c([t(N, 5, kind="positive"), t(4, kind="positive")])],
}
