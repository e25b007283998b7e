// Convolutions of any number of spatial dimensions, transposed and grouped, and their gradients.
// f16 and bf16 accumulate in f32 and round once.
#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::ConvolutionDims;
using stablehlo::opmath;
using Padding = std::vector<std::pair<int64_t, int64_t>>;

struct Geometry {
  int64_t spatial = 0;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

std::vector<int64_t> per_dimension(std::vector<int64_t> list, int64_t spatial) {
  if (list.size() == 1) list.assign(spatial, list[0]);
  return list;
}

Geometry read_geometry(const Call& c, const Value& input) {
  Geometry g;
  g.spatial = input.rank() - 2;
  g.stride = per_dimension(c.ints("stride"), g.spatial);
  g.padding = per_dimension(c.ints("padding"), g.spatial);
  g.dilation = per_dimension(c.ints("dilation"), g.spatial);
  g.output_padding = per_dimension(c.ints("output_padding"), g.spatial);
  g.transposed = c.boolean("transposed");
  g.groups = c.integer("groups");
  return g;
}

int64_t reach(const Value& weight, const Geometry& g, int64_t i) {
  return g.dilation[i] * (weight.dim(i + 2).fixed() - 1) + 1;
}

// Batch, feature, then space in all three operands.
ConvolutionDims plain_dims(int64_t spatial) {
  ConvolutionDims d;
  d.kernel_output_feature = 0;
  d.kernel_input_feature = 1;
  d.input_spatial = d.kernel_spatial = d.output_spatial = axes_from(2, spatial + 2);
  d.strides = d.lhs_dilation = d.rhs_dilation = std::vector<int64_t>(spatial, 1);
  d.padding = Padding(spatial, {0, 0});
  return d;
}

// Cross-correlation of x [n, c, ...] with weight [o, c / groups, ...].
Value correlate(Builder& b, Value x, Value weight, const Geometry& g, const Padding& padding) {
  ConvolutionDims d = plain_dims(g.spatial);
  d.strides = g.stride;
  d.rhs_dilation = g.dilation;
  d.padding = padding;
  d.feature_groups = g.groups;
  return b.convert(b.convolution(x, weight, d, opmath(x.dtype())), x.dtype());
}

// The adjoint: spreads x [n, i, ...] by the stride and correlates it with the flipped weight [i, o / groups, ...].
Value correlate_transposed(Builder& b, Value x, Value weight, const Geometry& g,
                           const Padding& padding) {
  const int64_t in = weight.dim(0).fixed(), out = weight.dim(1).fixed();
  Dims split = weight.dims(), merged = weight.dims();
  split[0] = in / g.groups;
  split.insert(split.begin(), Size(g.groups));
  merged[0] = in / g.groups;
  merged[1] = g.groups * out;
  Value kernel = b.reverse(weight, axes_from(2, weight.rank()));
  if (g.groups > 1) {
    std::vector<int64_t> order = all_axes(weight.rank() + 1);
    std::swap(order[0], order[1]);
    kernel = b.reshape(b.transpose(b.reshape(kernel, split), order), merged);
  }
  ConvolutionDims d = plain_dims(g.spatial);
  d.kernel_input_feature = 0;
  d.kernel_output_feature = 1;
  d.lhs_dilation = g.stride;
  d.rhs_dilation = g.dilation;
  d.padding = padding;
  d.feature_groups = g.groups;
  return b.convert(b.convolution(x, kernel, d, opmath(x.dtype())), x.dtype());
}

// x with a bounded batch filled up with zeros to its bound: a batch that is summed over must be static.
Value zero_filled(Builder& b, Value x) {
  if (x.dim(0).is_static()) return x;
  const Value position = along_axis(b, b.iota(DType::kI32, {x.dim(0).bound()}, 0), x.rank(), 0);
  const Value inside = b.lt(position, b.size(x.dim(0), DType::kI32));
  return b.select(inside, b.pad_to_bound(x), b.like(x, 0));
}

// The weight's gradient, [features of `small`, features of `big` / groups, ...]: `big` is what the kernel slides over
// with the stride, `small` has one element for each of its positions.
Value weight_gradient(Builder& b, Value big, Value small, const Value& weight, const Geometry& g) {
  big = zero_filled(b, big);
  small = zero_filled(b, small);
  ConvolutionDims d = plain_dims(g.spatial);
  d.input_batch = 1;
  d.input_feature = 0;
  d.kernel_input_feature = 0;
  d.kernel_output_feature = 1;
  d.output_batch = 1;
  d.output_feature = 0;
  d.strides = g.dilation;
  d.rhs_dilation = g.stride;
  d.batch_groups = g.groups;
  for (int64_t i = 0; i < g.spatial; ++i) {
    const int64_t spread = (small.dim(i + 2).fixed() - 1) * g.stride[i] + 1;
    const int64_t low = g.padding[i];
    const int64_t wanted = reach(weight, g, i) - 1 + spread;
    d.padding[i] = {low, wanted - big.dim(i + 2).fixed() - low};
  }
  return b.convert(b.convolution(big, small, d, opmath(big.dtype())), weight.dtype());
}

Padding symmetric(const Geometry& g) {
  Padding p;
  for (int64_t i = 0; i < g.spatial; ++i) p.push_back({g.padding[i], g.padding[i]});
  return p;
}

// Padding with which correlate_transposed(x, weight) has the spatial sizes `target`.
Padding adjoint_padding(const Value& x, const Value& weight, const Geometry& g,
                        const std::vector<int64_t>& target) {
  Padding p;
  for (int64_t i = 0; i < g.spatial; ++i) {
    const int64_t low = reach(weight, g, i) - 1 - g.padding[i];
    const int64_t spread = (x.dim(i + 2).fixed() - 1) * g.stride[i] + 1;
    p.push_back({low, target[i] + reach(weight, g, i) - 1 - spread - low});
  }
  return p;
}

Values lower_convolution(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("input"), weight = c.tensor("weight");
  const Geometry g = read_geometry(c, x);
  c.check(x.rank() >= 3 && weight.rank() == x.rank(),
          "convolution: expected input and weight of the same number of dimensions, at least 3, "
          "but got " +
              sizes_text(x.dims()) + " and " + sizes_text(weight.dims()));
  c.check(x.dtype() == weight.dtype(),
          std::string("Input type (") + scalar_type_name(x.dtype()) + ") and weight type (" +
              scalar_type_name(weight.dtype()) + ") should be the same");
  Value y;
  if (g.transposed) {
    std::vector<int64_t> target;
    for (int64_t i = 0; i < g.spatial; ++i) {
      target.push_back((x.dim(i + 2).fixed() - 1) * g.stride[i] - 2 * g.padding[i] +
                       reach(weight, g, i) + g.output_padding[i]);
      c.check(target.back() >= 0, "convolution: calculated output size is negative");
    }
    y = correlate_transposed(b, x, weight, g, adjoint_padding(x, weight, g, target));
  } else {
    y = correlate(b, x, weight, g, symmetric(g));
  }
  if (c.has("bias")) y = b.add(y, along_axis(b, c.tensor("bias", y.dtype()), y.rank(), 1));
  return {y};
}

Values lower_convolution_backward(Call& c) {
  Builder& b = c.b;
  const Value grad = c.tensor("grad_output"), x = c.tensor("input"), weight = c.tensor("weight");
  const Geometry g = read_geometry(c, x);
  c.check(grad.dtype() == x.dtype() && x.dtype() == weight.dtype(),
          std::string("expected scalar type ") + scalar_type_name(grad.dtype()) + " but found " +
              scalar_type_name(grad.dtype() == x.dtype() ? weight.dtype() : x.dtype()));
  const std::vector<bool> mask = c.bools("output_mask");
  Values r(3);
  if (mask[0] && g.transposed) {
    Padding padding;
    for (int64_t i = 0; i < g.spatial; ++i) {
      const int64_t wanted = (x.dim(i + 2).fixed() - 1) * g.stride[i] + reach(weight, g, i);
      padding.push_back({g.padding[i], wanted - grad.dim(i + 2).fixed() - g.padding[i]});
    }
    r[0] = correlate(b, grad, weight, g, padding);
  } else if (mask[0]) {
    std::vector<int64_t> target;
    for (int64_t i = 0; i < g.spatial; ++i) target.push_back(x.dim(i + 2).fixed());
    r[0] = correlate_transposed(b, grad, weight, g, adjoint_padding(grad, weight, g, target));
  }
  if (mask[1]) {
    r[1] = g.transposed ? weight_gradient(b, grad, x, weight, g)
                        : weight_gradient(b, x, grad, weight, g);
  }
  if (mask[2])
    r[2] = b.convert(sum_over(b, wide(b, grad), axes_except(grad.rank(), 1)), grad.dtype());
  return r;
}

}  // namespace

const OpRow kConvolutionRows[] = {
    {"convolution_overrideable", lower_convolution, "", Infer::kLowering, Tolerance::kContraction},
    {"convolution_backward_overrideable", lower_convolution_backward, "", Infer::kLowering,
     Tolerance::kContraction},
};
const size_t kConvolutionRowCount = std::size(kConvolutionRows);

}  // namespace torch_tpu::lowering
