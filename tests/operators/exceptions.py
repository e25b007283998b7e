"""What the operator tests leave out or loosen, each with its reason."""

import torch

_CRASH = "the CPU kernel ends the process"
_FIXED_POINT = "the CPU kernel computes uint8 with 16-bit weights"

# operator: (tolerance class, reason)
TOLERANCE_CLASS: dict[str, tuple[str, str]] = {}

# (operator, case): reason
VALUES: dict[tuple[str, int], str] = {}

# (operator, dtype or None for all): reason
DTYPES: dict[tuple[str, torch.dtype | None], str] = {
    ("upsample_bilinear2d.default", torch.uint8): _FIXED_POINT,
    ("upsample_bicubic2d.default", torch.uint8): _FIXED_POINT,
    ("_upsample_bilinear2d_aa.default", torch.uint8): _FIXED_POINT,
    ("hardsigmoid_backward.default", torch.float64): "the CPU kernel multiplies by 1/6 rounded to float32",
}

# operator: reason why only its first result is compared in dtypes other than float32
FIRST_RESULT: dict[str, str] = {
    name: "statistics are float32 for half types, as on all devices but the CPU"
    for name in ("native_layer_norm.default", "native_group_norm.default", "native_batch_norm.default")
}

# operator: reason
BACKWARD: dict[str, str] = {}

# (operator, layout): reason
LAYOUTS: dict[tuple[str, str], str] = {
    ("mkldnn_rnn_layer.default", "0-d"): _CRASH,
    ("mkldnn_rnn_layer_backward.default", "0-d"): _CRASH,
    ("_weight_norm_interface.default", "zero size"): _CRASH,
    ("_weight_norm_interface_backward.default", "zero size"): _CRASH,
}

# (operator, form): reason
FORMS: dict[tuple[str, str], str] = {}

# (operator, mistake): reason
MISTAKES: dict[tuple[str, str], str] = {
    (name, what): _CRASH
    for name in ("mkldnn_rnn_layer.default", "mkldnn_rnn_layer_backward.default")
    for what in ("shape", "rank", "dtype")
}
