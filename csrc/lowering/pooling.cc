// Maximum and average pooling over the last two or three dimensions, fixed and adaptive, and their gradients.
// Indices are flat positions in the input plane.
#include <algorithm>

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/taps.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::fixed;
using stablehlo::Monoid;
using stablehlo::Window;
using Ints = std::vector<int64_t>;

// The gradient of max pooling is one padded sum for each kernel position up to this many, else a scatter.
constexpr int64_t kMaxUnrolledWindow = 36;

struct Pool {
  int64_t spatial, lead;  // pooled dimensions (the last ones), dimensions in front
  Ints in, out, kernel, stride, padding, dilation;
};

Ints spread(Ints list, int64_t n, const Ints& fallback) {
  if (list.empty()) return fallback;
  if (list.size() == 1) list.assign(n, list[0]);
  return list;
}

int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                    bool ceil_mode) {
  const int64_t free = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = (free >= 0 ? free / stride : -((-free + stride - 1) / stride)) + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

Ints spatial_sizes(const Value& x, int64_t spatial) {
  Ints sizes;
  for (int64_t i = x.rank() - spatial; i < x.rank(); ++i) sizes.push_back(x.dim(i).fixed());
  return sizes;
}

std::string by_x(const std::string& front, const Ints& sizes) {
  std::string text = front;
  for (int64_t size : sizes) text += "x" + std::to_string(size);
  return text;
}

Pool read_pool(const Call& c, const Value& x, int64_t spatial) {
  Pool p;
  p.spatial = spatial;
  p.lead = x.rank() - spatial;
  c.check(p.lead == 1 || p.lead == 2, "Expected " + std::to_string(spatial + 1) + "D or " +
                                          std::to_string(spatial + 2) + "D tensor, but got " +
                                          sizes_text(x.dims()));
  p.in = spatial_sizes(x, spatial);
  p.kernel = spread(c.ints("kernel_size"), spatial, Ints(spatial, 1));
  p.stride = spread(c.ints("stride"), spatial, p.kernel);
  p.padding = spread(c.ints("padding"), spatial, Ints(spatial, 0));
  p.dilation =
      c.has("dilation") ? spread(c.ints("dilation"), spatial, Ints(spatial, 1)) : Ints(spatial, 1);
  for (int64_t i = 0; i < spatial; ++i) {
    c.check(p.stride[i] != 0, "stride should not be zero");
    c.check(p.padding[i] >= 0,
            "pad must be non-negative, but got pad: " + std::to_string(p.padding[i]));
    const int64_t reach = (p.kernel[i] - 1) * p.dilation[i] + 1;
    c.check(p.padding[i] <= reach / 2,
            "pad should be at most half of effective kernel size, but got pad=" +
                std::to_string(p.padding[i]) + ", kernel_size=" + std::to_string(p.kernel[i]) +
                " and dilation=" + std::to_string(p.dilation[i]));
    p.out.push_back(pooled_size(p.in[i], p.kernel[i], p.stride[i], p.padding[i], p.dilation[i],
                                c.boolean("ceil_mode")));
  }
  const bool positive = std::all_of(p.out.begin(), p.out.end(), [](int64_t n) { return n >= 1; });
  const std::string planes = x.dim(p.lead - 1).str();
  c.check(positive, "Given input size: (" + by_x(planes, p.in) + "). Calculated output size: (" +
                        by_x(planes, p.out) + "). Output size is too small");
  return p;
}

Window window_of(const Pool& p) {
  Window w;
  const int64_t rank = p.lead + p.spatial;
  w.sizes = w.strides = w.window_dilations = w.base_dilations = Ints(rank, 1);
  w.padding.assign(rank, {0, 0});
  for (int64_t i = 0; i < p.spatial; ++i) {
    const int64_t d = p.lead + i, reach = (p.kernel[i] - 1) * p.dilation[i] + 1;
    w.sizes[d] = p.kernel[i];
    w.strides[d] = p.stride[i];
    w.window_dilations[d] = p.dilation[i];
    const int64_t high = (p.out[i] - 1) * p.stride[i] + reach - p.in[i] - p.padding[i];
    w.padding[d] = {p.padding[i], std::max<int64_t>(high, 0)};
  }
  return w;
}

Dims with_plane(const Value& x, const Ints& plane) {
  Dims dims(x.dims().begin(), x.dims().end() - static_cast<int64_t>(plane.size()));
  dims.insert(dims.end(), plane.begin(), plane.end());
  return dims;
}

int64_t volume(const Ints& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// i32 flat positions of a plane's elements.
Value plane_positions(Builder& b, const Ints& plane) {
  return b.reshape(b.iota(DType::kI32, {volume(plane)}, 0), Dims(plane.begin(), plane.end()));
}

// -- Maximum --------------------------------------------------------------------------------------------------------

Values max_pool(Call& c, int64_t spatial) {
  Builder& b = c.b;
  const Value x = c.tensor("self");
  const Pool p = read_pool(c, x, spatial);
  const Value positions = b.broadcast_to(plane_positions(b, p.in), x.dims());
  const Values r = b.reduce_window({x, positions}, arg_inits(b, x.dtype(), true), window_of(p),
                                   arg_body(b, true));
  return {r[0], b.convert(r[1], DType::kI64)};
}

// Adds grad's elements to a zero tensor of the shape of x, at the plane positions `indices`.
Value scatter_to_planes(Builder& b, Value grad, Value indices, const Value& x, int64_t spatial) {
  const int64_t plane = volume(spatial_sizes(x, spatial));
  const int64_t planes =
      stablehlo::product(Dims(x.dims().begin(), x.dims().end() - spatial)).fixed();
  const DType index =
      plane * planes > std::numeric_limits<int32_t>::max() ? DType::kI64 : DType::kI32;
  const int64_t updates = grad.numel().fixed();
  const Value rows =
      b.reshape(b.convert(indices, index), {planes, planes == 0 ? 0 : updates / planes});
  const Value base = b.mul(b.iota(index, {planes, 1}, 0), b.constant_int(plane, index));
  stablehlo::ScatterDims dims;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  const Value zeros = b.zeros({grad.dtype(), {planes * plane}});
  const Value flat =
      b.scatter(zeros, b.reshape(b.add(rows, base), {updates, 1}), b.flatten(grad), dims,
                [&b](const Values& v) -> Values { return {b.add(v[0], v[1])}; });
  return b.reshape(flat, x.dims());
}

// Sums, over the kernel's positions, the gradients of the windows whose maximum is at that position.
Value unrolled_max_gradient(Builder& b, Value grad, Value indices, const Pool& p) {
  const Value zero = b.like(grad, 0);
  const int64_t rank = grad.rank();
  Value total;
  for (int64_t k = 0; k < volume(p.kernel); ++k) {
    Ints low(rank, 0), high(rank, 0), interior(rank, 0);
    Value position = b.constant_int(0, DType::kI64);
    int64_t rest = k, plane_stride = 1;
    for (int64_t i = p.spatial - 1; i >= 0; --i) {
      const int64_t d = p.lead + i;
      low[d] = (rest % p.kernel[i]) * p.dilation[i] - p.padding[i];
      rest /= p.kernel[i];
      interior[d] = p.stride[i] - 1;
      high[d] = p.in[i] - low[d] - ((p.out[i] - 1) * p.stride[i] + 1);
      const Value step = b.constant_int(p.stride[i] * plane_stride, DType::kI64);
      const Value along = b.mul(b.iota(DType::kI64, {p.out[i]}, 0), step);
      position = b.add(
          position,
          along_axis(b, b.add(along, b.constant_int(low[d] * plane_stride, DType::kI64)), rank, d));
      plane_stride *= p.in[i];
    }
    // Windows that reach outside put their share outside too, where the padding crops it.
    const Value share =
        b.pad(b.select(b.eq(indices, position), grad, zero), zero, low, high, interior);
    total = total ? b.add(total, share) : share;
  }
  return total;
}

Values max_pool_backward(Call& c, int64_t spatial) {
  Builder& b = c.b;
  const Value x = c.tensor("self"), grad = wide(b, c.tensor("grad_output")),
              indices = c.tensor("indices");
  const Pool p = read_pool(c, x, spatial);
  c.check(grad.dims() == with_plane(x, p.out), "max_pool backward: expected grad_output of shape " +
                                                   sizes_text(with_plane(x, p.out)) + ", but got " +
                                                   sizes_text(grad.dims()));
  const Value dx = volume(p.kernel) <= kMaxUnrolledWindow
                       ? unrolled_max_gradient(b, grad, indices, p)
                       : scatter_to_planes(b, grad, indices, x, spatial);
  return {b.convert(dx, x.dtype())};
}

Values lower_max_pool2d(Call& c) { return max_pool(c, 2); }
Values lower_max_pool3d(Call& c) { return max_pool(c, 3); }
Values lower_max_pool2d_backward(Call& c) { return max_pool_backward(c, 2); }
Values lower_max_pool3d_backward(Call& c) { return max_pool_backward(c, 3); }

// -- Average --------------------------------------------------------------------------------------------------------

// What each window's sum is divided by.
Value window_divisor(const Call& c, const Pool& p, DType dtype) {
  Builder& b = c.b;
  if (const auto divisor = c.optional_integer("divisor_override")) {
    c.check(*divisor != 0, "divisor must be not zero");
    return b.constant(static_cast<double>(*divisor), dtype);
  }
  const bool with_padding = c.boolean("count_include_pad");
  Value divisor;
  for (int64_t i = 0; i < p.spatial; ++i) {
    std::vector<double> lengths;
    for (int64_t o = 0; o < p.out[i]; ++o) {
      int64_t start = o * p.stride[i] - p.padding[i];
      int64_t end = std::min(start + p.kernel[i], p.in[i] + p.padding[i]);
      if (!with_padding) {
        start = std::max<int64_t>(start, 0);
        end = std::min(end, p.in[i]);
      }
      lengths.push_back(static_cast<double>(std::max<int64_t>(end - start, 1)));
    }
    const Value along =
        along_axis(b, b.dense(lengths, dtype, {p.out[i]}), p.lead + p.spatial, p.lead + i);
    divisor = divisor ? b.mul(divisor, along) : along;
  }
  return divisor;
}

Values avg_pool(Call& c, int64_t spatial) {
  Builder& b = c.b;
  const Value input = c.tensor("self"), x = wide(b, input);
  const Pool p = read_pool(c, x, spatial);
  const Value sums = b.reduce_window(Monoid::kAdd, x, window_of(p));
  return {b.convert(b.div(sums, window_divisor(c, p, x.dtype())), input.dtype())};
}

Values avg_pool_backward(Call& c, int64_t spatial) {
  Builder& b = c.b;
  const Value input = c.tensor("self");
  const Pool p = read_pool(c, input, spatial);
  Value grad = wide(b, c.tensor("grad_output"));
  grad = b.div(grad, window_divisor(c, p, grad.dtype()));
  Ints low(grad.rank(), 0), high(grad.rank(), 0), interior(grad.rank(), 0);
  Window w;
  w.sizes = Ints(grad.rank(), 1);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t d = p.lead + i;
    low[d] = p.kernel[i] - 1 - p.padding[i];
    interior[d] = p.stride[i] - 1;
    high[d] = p.in[i] + p.kernel[i] - 1 - ((p.out[i] - 1) * p.stride[i] + 1) - low[d];
    w.sizes[d] = p.kernel[i];
  }
  const Value spread_grad = b.pad(grad, b.like(grad, 0), low, high, interior);
  return {b.convert(b.reduce_window(Monoid::kAdd, spread_grad, w), input.dtype())};
}

Values lower_avg_pool2d(Call& c) { return avg_pool(c, 2); }
Values lower_avg_pool3d(Call& c) { return avg_pool(c, 3); }
Values lower_avg_pool2d_backward(Call& c) { return avg_pool_backward(c, 2); }
Values lower_avg_pool3d_backward(Call& c) { return avg_pool_backward(c, 3); }

// -- Adaptive -------------------------------------------------------------------------------------------------------

// Window o of a dimension covers floor(o * in / out) .. ceil((o + 1) * in / out).
Taps adaptive_taps(int64_t in, int64_t out) {
  Taps t;
  t.outputs = out;
  auto start = [&](int64_t o) { return o * in / out; };
  auto end = [&](int64_t o) { return ((o + 1) * in + out - 1) / out; };
  for (int64_t o = 0; o < out; ++o) t.width = std::max(t.width, end(o) - start(o));
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t k = 0; k < t.width; ++k) {
      t.index.push_back(start(o) + k < end(o) ? start(o) + k : -1);
      t.weight.push_back(1.0 / static_cast<double>(end(o) - start(o)));
    }
  }
  return t;
}

void check_adaptive(const Call& c, const Value& x, int64_t spatial) {
  const std::string name = "adaptive_avg_pool" + std::to_string(spatial) + "d()";
  c.check(x.rank() == spatial + 1 || x.rank() == spatial + 2,
          name + ": Expected " + std::to_string(spatial + 1) + "D or " +
              std::to_string(spatial + 2) + "D tensor, but got " + sizes_text(x.dims()));
  for (int64_t i = 1; i <= spatial; ++i) {
    const int64_t d = x.rank() - spatial - 1 + i;
    c.check(x.dim(d) != Size(0), name +
                                     ": Expected input to have non-zero size for non-batch "
                                     "dimensions, but input has sizes " +
                                     sizes_text(x.dims()) + " with dimension " + std::to_string(d) +
                                     " being empty");
  }
}

Values adaptive_avg(Call& c, int64_t spatial) {
  const Value x = c.tensor("self");
  check_adaptive(c, x, spatial);
  const Ints in = spatial_sizes(x, spatial), out = spread(c.ints("output_size"), spatial, in);
  Value y = wide(c.b, x);
  for (int64_t i = spatial - 1; i >= 0; --i) {
    y = apply_taps(c.b, y, x.rank() - spatial + i, adaptive_taps(in[i], out[i]));
  }
  return {c.b.convert(y, x.dtype())};
}

Values adaptive_avg_backward(Call& c, int64_t spatial) {
  const Value x = c.tensor("self");
  check_adaptive(c, x, spatial);
  Value grad = wide(c.b, c.tensor("grad_output"));
  const Ints in = spatial_sizes(x, spatial), out = spatial_sizes(grad, spatial);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t axis = x.rank() - spatial + i;
    grad = apply_taps(c.b, grad, axis, adjoint(adaptive_taps(in[i], out[i]), in[i]));
  }
  return {c.b.convert(grad, x.dtype())};
}

Values lower_adaptive_avg_pool2d(Call& c) { return adaptive_avg(c, 2); }
Values lower_adaptive_avg_pool3d(Call& c) { return adaptive_avg(c, 3); }
Values lower_adaptive_avg_pool2d_backward(Call& c) { return adaptive_avg_backward(c, 2); }
Values lower_adaptive_avg_pool3d_backward(Call& c) { return adaptive_avg_backward(c, 3); }

// Windows as dimensions of their own: [lead..., out, width, out, width, ...] of values and of plane positions, then
// one (value, position) reduction over the widths. Taps that a window lacks have the reduction's initial pair.
Values adaptive_max(Call& c, int64_t spatial) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  const int64_t lead = x.rank() - spatial;
  const Ints in = spatial_sizes(x, spatial), out = spread(c.ints("output_size"), spatial, in);
  const Values inits = arg_inits(b, x.dtype(), true);
  Value position = plane_positions(b, in);
  Dims windows(x.dims().begin(), x.dims().begin() + lead), plane_windows;
  Ints widths;
  for (int64_t i = 0; i < spatial; ++i) {
    const Taps taps = adaptive_taps(in[i], out[i]);
    Ints safe = taps.index, present;
    for (int64_t& index : safe) {
      present.push_back(index >= 0);
      index = std::max<int64_t>(index, 0);
    }
    const Value mask =
        b.convert(b.dense(present, DType::kI32, {taps.outputs * taps.width}), DType::kPred);
    x = b.select(along_axis(b, mask, x.rank(), lead + i), take(b, x, lead + i, safe), inits[0]);
    position = b.select(along_axis(b, mask, spatial, i), take(b, position, i, safe), inits[1]);
    widths.push_back(lead + 2 * i + 1);
    for (int64_t size : {taps.outputs, taps.width}) {
      windows.push_back(size);
      plane_windows.push_back(size);
    }
  }
  const Value positions = b.broadcast_to(b.reshape(position, plane_windows), windows);
  const Values r = b.reduce({b.reshape(x, windows), positions}, inits, widths, arg_body(b, true));
  return {r[0], b.convert(r[1], DType::kI64)};
}

Values adaptive_max_backward(Call& c, int64_t spatial) {
  const Value x = c.tensor("self");
  const Value grad = wide(c.b, c.tensor("grad_output"));
  return {c.b.convert(scatter_to_planes(c.b, grad, c.tensor("indices"), x, spatial), x.dtype())};
}

Values lower_adaptive_max_pool2d(Call& c) { return adaptive_max(c, 2); }
Values lower_adaptive_max_pool3d(Call& c) { return adaptive_max(c, 3); }
Values lower_adaptive_max_pool2d_backward(Call& c) { return adaptive_max_backward(c, 2); }
Values lower_adaptive_max_pool3d_backward(Call& c) { return adaptive_max_backward(c, 3); }

}  // namespace

const OpRow kPoolingRows[] = {
    {"max_pool2d_with_indices", lower_max_pool2d, "", Infer::kComposite, Tolerance::kExact},
    {"max_pool3d_with_indices", lower_max_pool3d, "", Infer::kLowering, Tolerance::kExact},
    {"max_pool2d_with_indices_backward", lower_max_pool2d_backward, "", Infer::kComposite,
     Tolerance::kReduction},
    {"max_pool3d_with_indices_backward", lower_max_pool3d_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"avg_pool2d", lower_avg_pool2d, "", Infer::kComposite, Tolerance::kReduction},
    {"avg_pool3d", lower_avg_pool3d, "", Infer::kComposite, Tolerance::kReduction},
    {"avg_pool2d_backward", lower_avg_pool2d_backward, "", Infer::kComposite,
     Tolerance::kReduction},
    {"avg_pool3d_backward", lower_avg_pool3d_backward, "", Infer::kComposite,
     Tolerance::kReduction},
    {"_adaptive_avg_pool2d", lower_adaptive_avg_pool2d, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_adaptive_avg_pool3d", lower_adaptive_avg_pool3d, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_adaptive_avg_pool2d_backward", lower_adaptive_avg_pool2d_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"_adaptive_avg_pool3d_backward", lower_adaptive_avg_pool3d_backward, "", Infer::kLowering,
     Tolerance::kReduction},
    {"adaptive_max_pool2d", lower_adaptive_max_pool2d, "", Infer::kComposite, Tolerance::kExact},
    {"adaptive_max_pool3d", lower_adaptive_max_pool3d, "", Infer::kComposite, Tolerance::kExact},
    {"adaptive_max_pool2d_backward", lower_adaptive_max_pool2d_backward, "", Infer::kComposite,
     Tolerance::kReduction},
    {"adaptive_max_pool3d_backward", lower_adaptive_max_pool3d_backward, "", Infer::kComposite,
     Tolerance::kReduction},
};
const size_t kPoolingRowCount = std::size(kPoolingRows);

}  // namespace torch_tpu::lowering
