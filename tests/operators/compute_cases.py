"""Cases of reductions, contractions, normalisations, convolutions, pooling, losses and attention."""

from typing import Any

import torch
import torch.nn.functional as F
from operators.values import Case, N, b, c, i, t, through

aten = torch.ops.aten
X = t(N, 5)
D = t(N, 5, kind="distinct")


def _sdpa(q: Any, k: Any, v: Any, **options: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, **options)


def _topk_in_any_order(x: Any) -> torch.Tensor:
    return torch.topk(x, 3, 1, True, False)[0].sort(-1)[0]


def _lstm(x: Any, h: Any, cell: Any, *weights: Any) -> Any:
    return torch.lstm(x, (h, cell), list(weights), True, 1, 0.0, True, False, False)


def _max_pool_backward(grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> torch.Tensor:
    indices = aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation)[1]
    return aten.max_pool2d_with_indices_backward(grad, x, kernel, stride, padding, dilation, False, indices)


def _batch_norm_backward(grad: Any, x: Any, weight: Any, mean: Any, var: Any, train: bool) -> Any:
    _, save_mean, save_invstd = aten.native_batch_norm(x, weight, None, mean, var, train, 0.1, 1e-5)
    return aten.native_batch_norm_backward(
        grad, x, weight, mean, var, save_mean, save_invstd, train, 1e-5, [True, True, True]
    )


def _layer_norm_backward(grad: Any, x: Any, shape: list[int], weight: Any, bias: Any, mask: list[bool]) -> Any:
    _, mean, rstd = aten.native_layer_norm(x, shape, weight, bias, 1e-5)
    return aten.native_layer_norm_backward(grad, x, shape, mean, rstd, weight, bias, mask)


def _group_norm_backward(grad: Any, x: Any, weight: Any, mask: list[bool]) -> Any:
    sizes = (x.size(0), x.size(1), x.size(2) * x.size(3))
    _, mean, rstd = aten.native_group_norm(x, weight, None, *sizes, 2, 1e-5)
    return aten.native_group_norm_backward(grad, x, mean, rstd, weight, *sizes, 2, mask)


def _weight_norm_backward(grad: Any, v: Any, g: Any, dim: int) -> Any:
    return aten._weight_norm_interface_backward(grad, v, g, aten._weight_norm_interface(v, g, dim)[1], dim)


def _nll_backward(logits: Any, target: Any, weight: Any, reduction: int, ignore: int) -> torch.Tensor:
    out, total = aten.nll_loss_forward(logits, target, weight, reduction, ignore)
    return aten.nll_loss_backward(torch.ones_like(out), logits, target, weight, reduction, ignore, total)


def _softmax_backward(grad: Any, x: Any, dim: int) -> torch.Tensor:
    return aten._softmax_backward_data(grad, aten._softmax(x, dim, False), dim, x.dtype)


def _log_softmax_backward(grad: Any, x: Any, dim: int) -> torch.Tensor:
    return aten._log_softmax_backward_data(grad, aten._log_softmax(x, dim, False), dim, x.dtype)


_Q, _K, _V = t(2, 2, 4, 8), t(2, 2, 6, 8), t(2, 2, 6, 8)
_LSTM = (t(2, N, 4), t(1, N, 3), t(1, N, 3), t(12, 4), t(12, 3), t(12), t(12))
_CONV2D = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
_IMAGE = t(1, 2, 4, 5)

CASES: dict[str, list[Case]] = {
    # reductions
    "sum.default": [c(X), c(X, dtype=torch.float32)],
    "sum.dim_IntList": [c(X, [1]), c(X, [0, 1], True), c(t(2, N, 4), [-1], dtype=torch.float64)],
    "mean.default": [c(X)],
    "mean.dim": [c(X, [1]), c(t(2, N, 4), [0, -1], True)],
    "prod.dim_int": [c(t(N, 5, kind="nonzero"), 1), c(t(N, 5, kind="nonzero"), 0, True)],
    "std.correction": [c(X, [1]), c(X, [0, 1], correction=0, keepdim=True)],
    "logsumexp.default": [c(X, [1]), c(X, [0, 1], True)],
    "linalg_vector_norm.default": [c(X), c(X, 1, [1]), c(X, float("inf"), [1], True), c(X, 3, [0])],
    "_euclidean_dist.default": [c(t(N, 4), t(5, 4))],
    "max.default": [c(D)],
    "min.default": [c(D)],
    "max.dim": [c(D, 1), c(D, 0, True)],
    "min.dim": [c(D, 1), c(D, 0, True)],
    "aminmax.default": [c(D), c(D, dim=1, keepdim=True)],
    "argmax.default": [c(D), c(D, 1), c(D, 0, True)],
    "argmin.default": [c(D), c(D, 1)],
    "any.default": [c(X), c(b(N, 5))],
    "any.dim": [c(X, 1), c(b(N, 5), 0, True)],
    "all.default": [c(X), c(b(N, 5))],
    "all.dim": [c(X, 1), c(b(N, 5), 0, True)],
    "cumsum.default": [c(X, 1), c(X, 0), c(X, 1, dtype=torch.float64)],
    "histc.default": [c(X, 5, -2, 2), c(X, 4)],
    "sort.default": [c(D), c(D, 0, True)],
    "topk.default": [c(D, 2), c(D, 2, 0, False), through(_topk_in_any_order, D)],
    # contractions
    "mm.default": [c(t(N, 4), t(4, 5))],
    "mv.default": [c(t(N, 4), t(4))],
    "bmm.default": [c(t(2, N, 4), t(2, 4, 5))],
    "addmm.default": [c(t(5), t(N, 4), t(4, 5)), c(X, t(N, 4), t(4, 5), beta=0.5, alpha=2)],
    "baddbmm.default": [c(t(2, N, 5), t(2, N, 4), t(2, 4, 5)), c(t(1, 5), t(2, N, 4), t(2, 4, 5), beta=0, alpha=2)],
    "_grouped_mm.default": [
        through(
            lambda a, w: aten._grouped_mm(a, w, offs=torch.tensor([3, 8], dtype=torch.int32).to(a.device)),
            t(8, 16),
            t(2, 16, 8),
        ),
    ],
    "linalg_solve_triangular.default": [
        c(t(4, 4, kind="triangle"), t(4, 2), upper=True),
        c(t(4, 4, kind="triangle"), t(2, 4), upper=False, left=False),
        c(t(4, 4, kind="triangle"), t(4, 2), upper=False, unitriangular=True),
    ],
    "_scaled_dot_product_flash_attention_for_cpu.default": [
        through(_sdpa, _Q, _K, _V),
        through(_sdpa, _Q, _K, _V, is_causal=True),
        through(_sdpa, _Q, _K, _V, attn_mask=b(4, 6), scale=0.5),
    ],
    "_scaled_dot_product_flash_attention_for_cpu_backward.default": [
        through(_sdpa, _Q, _Q, _Q, is_causal=True),
        through(_sdpa, _Q, _K, _V, attn_mask=t(4, 6)),
    ],
    "mkldnn_rnn_layer.default": [through(_lstm, *_LSTM)],
    "mkldnn_rnn_layer_backward.default": [through(_lstm, *_LSTM)],
    # softmax and losses
    "_softmax.default": [c(X, 1, False), c(t(2, N, 4), 0, False)],
    "_log_softmax.default": [c(X, 1, False), c(t(2, N, 4), 0, False)],
    "_safe_softmax.default": [c(X, 1)],
    "_softmax_backward_data.default": [through(_softmax_backward, X, t(N, 5), 1)],
    "_log_softmax_backward_data.default": [through(_log_softmax_backward, X, t(N, 5), 1)],
    "nll_loss_forward.default": [
        c(X, i(N, high=5), None, 1, -100),
        c(X, i(N, high=5), t(5, kind="positive"), 1, 2),
        c(X, i(N, high=5), None, 0, -100),
        c(X, i(N, high=5), None, 2, -100),
    ],
    "nll_loss_backward.default": [
        through(_nll_backward, X, i(N, high=5), None, 1, -100),
        through(_nll_backward, X, i(N, high=5), t(5, kind="positive"), 0, 2),
    ],
    # normalisation
    "native_layer_norm.default": [c(X, [5], t(5), t(5), 1e-5), c(t(2, N, 4), [N, 4], None, None, 1e-5)],
    "native_layer_norm_backward.default": [
        through(_layer_norm_backward, X, t(N, 5), [5], t(5), t(5), [True, True, True]),
        through(_layer_norm_backward, X, t(N, 5), [5], None, None, [True, False, False]),
    ],
    "native_group_norm.default": [
        c(t(2, 4, 3), t(4), t(4), 2, 4, 3, 2, 1e-5),
        c(t(2, 4, 3), None, None, 2, 4, 3, 4, 1e-5),
    ],
    "native_group_norm_backward.default": [
        through(_group_norm_backward, t(2, 4, 3, 2), t(2, 4, 3, 2), t(4), [True, True, True]),
    ],
    "native_batch_norm.default": [
        c(t(4, N, 5), t(N), t(N), t(N), t(N, kind="positive"), True, 0.1, 1e-5),
        c(t(4, N, 5), t(N), t(N), t(N), t(N, kind="positive"), False, 0.1, 1e-5),
        c(t(4, N), None, None, None, None, True, 0.1, 1e-5),
    ],
    "native_batch_norm_backward.default": [
        through(_batch_norm_backward, t(4, N, 5), t(4, N, 5), t(N), t(N), t(N, kind="positive"), train)
        for train in (True, False)
    ],
    "_weight_norm_interface.default": [c(X, t(N, 1)), c(t(4, N, 2), t(1, 1, 2), 2)],
    "_weight_norm_interface_backward.default": [through(_weight_norm_backward, t(N, 5), X, t(N, 1), 0)],
    # convolution, pooling, resizing
    "convolution.default": [
        c(t(1, 2, 4, 5), t(4, 2, 3, 3), t(4), *_CONV2D),
        c(t(2, 4, 6), t(4, 1, 3), None, [2], [1], [1], False, [0], 4),
        c(t(1, 2, 4, 5), t(2, 3, 2, 2), t(3), [2, 2], [0, 0], [1, 1], True, [1, 0], 1),
    ],
    "convolution_backward.default": [
        c(t(1, 4, 4, 5), _IMAGE, t(4, 2, 3, 3), [4], *_CONV2D, [True, True, True]),
        c(t(1, 4, 4, 5), _IMAGE, t(4, 2, 3, 3), [4], *_CONV2D, [False, True, False]),
    ],
    "max_pool2d_with_indices.default": [
        c(t(1, 2, 4, 5, kind="distinct"), [2, 2]),
        c(t(1, 2, 4, 5, kind="distinct"), [3, 2], [1, 2], [1, 1], [1, 2], True),
    ],
    "max_pool2d_with_indices_backward.default": [
        through(_max_pool_backward, t(1, 2, 2, 2), t(1, 2, 4, 5, kind="distinct"), [2, 2], [2, 2], [0, 0], [1, 1]),
    ],
    "avg_pool2d.default": [c(_IMAGE, [2, 2]), c(_IMAGE, [3, 2], [1, 2], [1, 1], True, False)],
    "avg_pool2d_backward.default": [c(t(1, 2, 2, 2), _IMAGE, [2, 2], [2, 2], [0, 0], False, True, None)],
    "_adaptive_avg_pool2d.default": [c(_IMAGE, [3, 2]), c(_IMAGE, [1, 1])],
    "_adaptive_avg_pool2d_backward.default": [c(t(1, 2, 3, 2), _IMAGE)],
    "upsample_nearest2d.default": [c(_IMAGE, [8, 7])],
    "upsample_nearest2d_backward.default": [c(t(1, 2, 8, 7), [8, 7], [1, 2, 4, 5])],
    "upsample_linear1d.default": [c(t(1, 2, 5), [8], False), c(t(1, 2, 5), [3], True)],
    "upsample_linear1d_backward.default": [c(t(1, 2, 8), [8], [1, 2, 5], False)],
    "grid_sampler_2d.default": [
        c(_IMAGE, t(1, 3, 2, 2, kind="unit"), mode, pad, align)
        for mode, pad, align in ((0, 0, False), (1, 1, True), (0, 2, True))
    ],
    "grid_sampler_2d_backward.default": [
        c(t(1, 2, 3, 2), _IMAGE, t(1, 3, 2, 2, kind="unit"), 0, 0, False, [True, True]),
    ],
    "_upsample_bilinear2d_aa.default": [c(_IMAGE, [2, 3], False), c(_IMAGE, [7, 6], True)],
    "_upsample_bilinear2d_aa_backward.default": [c(t(1, 2, 2, 3), [2, 3], [1, 2, 4, 5], False)],
}

for _name in ("bilinear2d", "bicubic2d"):
    CASES[f"upsample_{_name}.default"] = [c(_IMAGE, [8, 7], False), c(_IMAGE, [3, 2], True)]
    CASES[f"upsample_{_name}_backward.default"] = [c(t(1, 2, 8, 7), [8, 7], [1, 2, 4, 5], False)]
