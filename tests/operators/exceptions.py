"""What the operator tests leave out or loosen, each with its reason."""

import torch

_CRASH = "the CPU kernel ends the process"
_INSIDE = "the CPU's error is one of its inside (an index, a vector's size), ours says what is wrong"
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
FIRST_RESULT: dict[str, str] = dict.fromkeys(
    ("native_layer_norm.default", "native_group_norm.default", "native_batch_norm.default"),
    "statistics are float32 for half types, as on all devices but the CPU",
)

# operator: reason
BACKWARD: dict[str, str] = {}

# (operator, layout): reason
LAYOUTS: dict[tuple[str, str], str] = {
    ("mkldnn_rnn_layer.default", "0-d"): _CRASH,
    ("mkldnn_rnn_layer_backward.default", "0-d"): _CRASH,
    ("_weight_norm_interface.default", "zero size"): _CRASH,
    ("_weight_norm_interface_backward.default", "zero size"): _CRASH,
    ("_weight_norm_interface.default", "0-d"): "there is no dimension to normalise over: any answer will do",
    ("_weight_norm_interface_backward.default", "0-d"): "there is no dimension to normalise over",
    **{
        (name, layout): "the CPU kernel reads its inputs as if they were contiguous"
        for name in ("_weight_norm_interface.default", "_weight_norm_interface_backward.default")
        for layout in ("transposed", "strided")
    },
    ("_fft_c2c.default", "zero size"): "the CPU's library refuses an empty batch",
    ("_fft_c2r.default", "zero size"): "the CPU's library refuses an empty batch",
    ("_fft_r2c.default", "zero size"): "the CPU's library refuses an empty batch",
    ("native_batch_norm.default", "zero size"): "only the CPU kernel refuses it",
    ("native_batch_norm_backward.default", "zero size"): "only the CPU kernel refuses it",
    ("native_batch_norm.default", "0-d"): _INSIDE,
    ("native_batch_norm_backward.default", "0-d"): _INSIDE,
    ("grid_sampler_2d.default", "0-d"): _INSIDE,
    ("grid_sampler_2d_backward.default", "0-d"): _INSIDE,
    ("im2col.default", "0-d"): _INSIDE,
    ("masked_scatter_backward.default", "0-d"): "only autograd calls it, with a mask of the gradient's shape",
    ("unfold_backward.default", "0-d"): "only autograd calls it, with a gradient of the windows' shape",
    ("masked_scatter.default", "0-d"): "the CPU counts the mask's elements first; the device does not wait for a count",
    ("log_sigmoid_forward.default", "transposed"): "the CPU kernel alone makes its result contiguous",
}

# (operator, form): reason
FORMS: dict[tuple[str, str], str] = {
    (f"{name}.default", "out= strided"): "the CPU kernel writes its output as if it were contiguous"
    for name in ("_softmax", "_log_softmax", "gelu", "col2im", "im2col")
}

# (operator, mistake): reason
MISTAKES: dict[tuple[str, str], str] = {
    **{
        (f"{name}.default", what): _CRASH
        for name in ("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward")
        for what in ("shape", "rank", "dtype")
    },
    **{
        (f"{name}.default", "dtype"): "each operand is converted to the type that the device computes in"
        for name in (
            "_adaptive_avg_pool2d_backward", "_prelu_kernel", "_prelu_kernel_backward", "_weight_norm_interface",
            "_weight_norm_interface_backward", "avg_pool2d_backward", "glu_backward", "native_batch_norm",
            "native_batch_norm_backward", "native_group_norm", "native_group_norm_backward", "native_layer_norm",
            "native_layer_norm_backward", "reflection_pad1d_backward", "replication_pad1d_backward",
        )
    },
    **{
        (f"{name}.default", what): "the CPU kernel does not look at it and reads other memory"
        for name in ("_weight_norm_interface", "_weight_norm_interface_backward")
        for what in ("shape", "rank")
    },
    **{
        (f"{name}.default", "shape"): "the CPU kernel does not check the running variance"
        for name in ("native_batch_norm", "native_batch_norm_backward")
    },
    ("_log_softmax_backward_data.default", "shape"): "the CPU kernel reads other memory",
    ("_log_softmax_backward_data.default", "rank"): "the CPU kernel reads other memory",
    ("_softmax_backward_data.default", "shape"): "the CPU kernel reads other memory",
    ("_softmax_backward_data.default", "rank"): "the CPU kernel reads other memory",
    ("convolution_backward.default", "shape"): "only autograd calls it; the bias gradient asks for no weight",
    ("glu_backward.default", "rank"): "only autograd calls it, with shapes that belong together",
    ("masked_scatter_backward.default", "rank"): "only autograd calls it, with a mask of the gradient's shape",
    ("unfold_backward.default", "rank"): "only autograd calls it, with a gradient of the windows' shape",
    ("linalg_solve_triangular.default", "dtype"): "the CPU kernel takes the integers' bits for floats",
    ("im2col.default", "rank"): _INSIDE,
}  # fmt: skip
