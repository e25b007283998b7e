// Interpolation, padding by reflection and replication, unfolding into columns, grid sampling, and their gradients.
// Positions and weights follow from sizes alone (but for grid sampling), so they are constants of the program.
#include <algorithm>
#include <cmath>

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/grid_sample.h"
#include "lowering/taps.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Unary;
using Ints = std::vector<int64_t>;

// -- Interpolation --------------------------------------------------------------------------------------------------

enum class Filter { kNearest, kNearestExact, kLinear, kCubic, kLinearAntialias, kCubicAntialias };

struct Resampling {
  int64_t in, out;
  bool align_corners = false;
  std::optional<double> scale;  // the user's output / input ratio
};

// Input pixels per output pixel. T is the type PyTorch computes it in: positions at rounding boundaries depend on it.
template <typename T>
T pixel_scale(const Resampling& r) {
  if (r.align_corners)
    return r.out > 1 ? static_cast<T>(r.in - 1) / static_cast<T>(r.out - 1) : T(0);
  if (r.scale && *r.scale > 0) return static_cast<T>(1.0 / *r.scale);
  return static_cast<T>(r.in) / static_cast<T>(r.out);
}

template <typename T>
T source_position(const Resampling& r, T scale, int64_t o, bool cubic) {
  if (r.align_corners) return scale * static_cast<T>(o);
  const T position = scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
  return !cubic && position < 0 ? T(0) : position;
}

template <typename T>
Taps nearest_taps(const Resampling& r, bool exact) {
  Taps taps{.outputs = r.out, .index = {}, .weight = {}};
  const T scale = pixel_scale<T>(r);
  for (int64_t o = 0; o < r.out; ++o) {
    const T position =
        exact ? source_position(r, scale, o, false) + T(0.5) : scale * static_cast<T>(o);
    taps.index.push_back(std::min(static_cast<int64_t>(std::floor(position)), r.in - 1));
  }
  return taps;
}

template <typename T>
Taps linear_taps(const Resampling& r) {
  Taps taps{.outputs = r.out, .width = 2, .index = {}, .weight = {}};
  const T scale = pixel_scale<T>(r);
  for (int64_t o = 0; o < r.out; ++o) {
    const T position = source_position(r, scale, o, false);
    const int64_t low = std::min(static_cast<int64_t>(std::floor(position)), r.in - 1);
    const T weight = std::clamp<T>(position - static_cast<T>(low), T(0), T(1));
    taps.index.insert(taps.index.end(), {low, std::min(low + 1, r.in - 1)});
    taps.weight.insert(taps.weight.end(), {T(1) - weight, weight});
  }
  return taps;
}

template <typename T>
T cubic_near(T x, T a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename T>
T cubic_far(T x, T a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <typename T>
Taps cubic_taps(const Resampling& r) {
  Taps taps{.outputs = r.out, .width = 4, .index = {}, .weight = {}};
  const T scale = pixel_scale<T>(r), a = T(-0.75);
  for (int64_t o = 0; o < r.out; ++o) {
    const T position = source_position(r, scale, o, true);
    const int64_t low = std::min(static_cast<int64_t>(std::floor(position)), r.in - 1);
    const T t = std::clamp<T>(position - static_cast<T>(low), T(0), T(1));
    for (int64_t k = -1; k <= 2; ++k)
      taps.index.push_back(std::clamp<int64_t>(low + k, 0, r.in - 1));
    taps.weight.insert(taps.weight.end(), {cubic_far(t + 1, a), cubic_near(t, a),
                                           cubic_near(1 - t, a), cubic_far(2 - t, a)});
  }
  return taps;
}

template <typename T>
T antialias_weight(T x, bool cubic) {
  x = std::abs(x);
  if (!cubic) return x < 1 ? 1 - x : T(0);
  const T a = T(-0.5);
  if (x < 1) return cubic_near(x, a);
  return x < 2 ? cubic_far(x, a) : T(0);
}

template <typename T>
Taps antialias_taps(const Resampling& r, bool cubic) {
  const T scale = pixel_scale<T>(r), stretch = std::max<T>(scale, T(1));
  const T support = (cubic ? T(2) : T(1)) * stretch;
  std::vector<std::pair<int64_t, std::vector<T>>> rows;
  Taps taps{.outputs = r.out, .index = {}, .weight = {}};
  for (int64_t o = 0; o < r.out; ++o) {
    const T center = scale * (static_cast<T>(o) + T(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + T(0.5)), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(center + support + T(0.5)), r.in);
    std::vector<T> weights;
    T total = 0;
    for (int64_t i = first; i < last; ++i) {
      weights.push_back(
          antialias_weight<T>((static_cast<T>(i) - center + T(0.5)) / stretch, cubic));
      total += weights.back();
    }
    for (T& weight : weights) weight = total == 0 ? weight : weight / total;
    taps.width = std::max<int64_t>(taps.width, weights.size());
    rows.push_back({first, weights});
  }
  for (const auto& [first, weights] : rows) {
    for (int64_t k = 0; k < taps.width; ++k) {
      const bool present = k < static_cast<int64_t>(weights.size());
      taps.index.push_back(present ? first + k : -1);
      taps.weight.push_back(present ? static_cast<double>(weights[k]) : 1);
    }
  }
  return taps;
}

template <typename T>
Taps make_taps(const Resampling& r, Filter filter) {
  switch (filter) {
    case Filter::kNearest:
      return nearest_taps<T>(r, false);
    case Filter::kNearestExact:
      return nearest_taps<T>(r, true);
    case Filter::kLinear:
      return linear_taps<T>(r);
    case Filter::kCubic:
      return cubic_taps<T>(r);
    case Filter::kLinearAntialias:
      return antialias_taps<T>(r, false);
    case Filter::kCubicAntialias:
      return antialias_taps<T>(r, true);
  }
  return {};
}

// The taps of spatial dimension i; an unchanged size without a scale of its own is the identity.
Taps taps_of(const Call& c, Filter filter, int64_t spatial, int64_t i, int64_t in, int64_t out,
             DType dtype) {
  static constexpr const char* kNames[] = {"scales_d", "scales_h", "scales_w"};
  Resampling r{in, out, false,
               c.optional_number(spatial == 1 ? "scales" : kNames[3 - spatial + i])};
  if (filter != Filter::kNearest && filter != Filter::kNearestExact)
    r.align_corners = c.boolean("align_corners");
  return dtype == DType::kF64 ? make_taps<double>(r, filter) : make_taps<float>(r, filter);
}

// Rounds a value computed in floating point to an integer type.
Value rounded(Builder& b, Value x, DType dtype) {
  if (!stablehlo::is_int(dtype)) return b.convert(x, dtype);
  x = b.unary(Unary::kRoundNearestAfz, x);
  return b.convert(
      b.clamp(b.convert(b.lowest(dtype), x.dtype()), x, b.convert(b.highest(dtype), x.dtype())),
      dtype);
}

template <Filter filter, int64_t spatial>
Values lower_upsample(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("self");
  const Ints out = c.ints("output_size");
  const bool copies = filter == Filter::kNearest || filter == Filter::kNearestExact;
  const DType type = stablehlo::is_int(x.dtype()) ? DType::kF32 : stablehlo::opmath(x.dtype());
  Value y = copies ? x : b.convert(x, type);
  for (int64_t i = spatial - 1; i >= 0; --i) {
    const int64_t in = x.dim(2 + i).fixed();
    y = apply_taps(b, y, 2 + i, taps_of(c, filter, spatial, i, in, out.at(i), type));
  }
  return {copies ? y : rounded(b, y, x.dtype())};
}

template <Filter filter, int64_t spatial>
Values lower_upsample_backward(Call& c) {
  Builder& b = c.b;
  const Value grad = c.tensor("grad_output");
  const Ints in = c.ints("input_size");
  Value y = wide(b, grad);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t out = grad.dim(2 + i).fixed();
    const Taps taps = taps_of(c, filter, spatial, i, in.at(2 + i), out, y.dtype());
    y = apply_taps(b, y, 2 + i, adjoint(taps, in.at(2 + i)));
  }
  return {b.convert(y, grad.dtype())};
}

// -- Padding --------------------------------------------------------------------------------------------------------

Taps padding_taps(int64_t in, int64_t low, int64_t high, bool reflect) {
  Taps taps{.outputs = in + low + high, .index = {}, .weight = {}};
  for (int64_t o = 0; o < taps.outputs; ++o) {
    int64_t i = o - low;
    if (reflect) {
      i = std::abs(i);
      if (i >= in) i = 2 * (in - 1) - i;
    }
    taps.index.push_back(std::clamp<int64_t>(i, 0, in - 1));
  }
  return taps;
}

// PyTorch lists the padding from the last dimension: {left, right, top, bottom, front, back}.
struct Side {
  int64_t axis, low, high;
};

std::vector<Side> sides_of(const Call& c, const Value& x, bool reflect) {
  const Ints padding = c.ints("padding");
  const int64_t spatial = static_cast<int64_t>(padding.size()) / 2;
  c.check(x.rank() == spatial + 1 || x.rank() == spatial + 2,
          "Expected " + std::to_string(spatial + 1) + "D or " + std::to_string(spatial + 2) +
              "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
              "input, but got: " +
              sizes_text(x.dims()));
  std::vector<Side> sides;
  for (int64_t i = 0; i < spatial; ++i) {
    const Side s{x.rank() - 1 - i, padding[2 * i], padding[2 * i + 1]};
    const int64_t in = x.dim(s.axis).fixed();
    c.check(!reflect || (s.low < in && s.high < in),
            "Argument #" + std::to_string(4 + 2 * i) +
                ": Padding size should be less than the corresponding input dimension, but got: "
                "padding (" +
                std::to_string(s.low) + ", " + std::to_string(s.high) + ") at dimension " +
                std::to_string(s.axis) + " of input " + sizes_text(x.dims()));
    c.check(in + s.low + s.high >= 1,
            "input (size " + std::to_string(in) + ") is too small for the padding (" +
                std::to_string(s.low) + ", " + std::to_string(s.high) + ")");
    sides.push_back(s);
  }
  return sides;
}

template <bool reflect>
Values lower_pad(Call& c) {
  Value x = c.tensor("self");
  for (const Side& s : sides_of(c, x, reflect)) {
    x = apply_taps(c.b, x, s.axis, padding_taps(x.dim(s.axis).fixed(), s.low, s.high, reflect));
  }
  return {x};
}

template <bool reflect>
Values lower_pad_backward(Call& c) {
  const Value x = c.tensor("self");
  Value grad = wide(c.b, c.tensor("grad_output"));
  for (const Side& s : sides_of(c, x, reflect)) {
    const int64_t in = x.dim(s.axis).fixed();
    const Taps taps = padding_taps(in, s.low, s.high, reflect);
    c.check(grad.dim(s.axis) == Size(taps.outputs),
            "grad_output has size " + grad.dim(s.axis).str() + " at dimension " +
                std::to_string(s.axis) + ", expected " + std::to_string(taps.outputs));
    grad = apply_taps(c.b, grad, s.axis, adjoint(taps, in));
  }
  return {c.b.convert(grad, x.dtype())};
}

// -- Columns --------------------------------------------------------------------------------------------------------

struct Sliding {
  Ints kernel, dilation, padding, stride, blocks;
};

std::string pair_text(const Ints& v) {
  return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ")";
}

Sliding read_sliding(const Call& c, const Ints& plane) {
  auto two = [&](const char* name) {
    Ints list = c.ints(name);
    if (list.size() == 1) list.push_back(list[0]);
    c.check(list.size() == 2, std::string("It is expected ") + name +
                                  " equals to 2, but got size " + std::to_string(list.size()));
    return list;
  };
  Sliding s{two("kernel_size"), two("dilation"), two("padding"), two("stride"), {}};
  for (int i = 0; i < 2; ++i) {
    c.check(s.kernel[i] > 0,
            "kernel size should be greater than zero, but got kernel_size=" + pair_text(s.kernel));
    c.check(s.dilation[i] > 0,
            "dilation should be greater than zero, but got dilation=" + pair_text(s.dilation));
    c.check(s.padding[i] >= 0,
            "padding should be non-negative, but got padding=" + pair_text(s.padding));
    c.check(s.stride[i] > 0,
            "stride should be greater than zero, but got stride=" + pair_text(s.stride));
    const int64_t free = plane[i] + 2 * s.padding[i] - s.dilation[i] * (s.kernel[i] - 1) - 1;
    s.blocks.push_back(free < 0 ? 0 : free / s.stride[i] + 1);
  }
  c.check(s.blocks[0] >= 1 && s.blocks[1] >= 1,
          "Given input with spatial size " + pair_text(plane) +
              ", kernel_size=" + pair_text(s.kernel) + ", dilation=" + pair_text(s.dilation) +
              ", padding=" + pair_text(s.padding) +
              ", calculated shape of the array of sliding blocks as " + pair_text(s.blocks) +
              ", but its components must be at least one.");
  return s;
}

// One output for each (block, kernel position) of dimension i; -1 in the padding.
Taps sliding_taps(const Sliding& s, int i, int64_t in) {
  Taps taps{.outputs = s.blocks[i] * s.kernel[i], .index = {}, .weight = {}};
  for (int64_t block = 0; block < s.blocks[i]; ++block) {
    for (int64_t k = 0; k < s.kernel[i]; ++k) {
      const int64_t position = block * s.stride[i] + k * s.dilation[i] - s.padding[i];
      taps.index.push_back(position >= 0 && position < in ? position : -1);
    }
  }
  return taps;
}

Values lower_im2col(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("self");
  c.check(x.rank() > 0, "Dimension specified as 1 but tensor has no dimensions",
          ArgumentError::Kind::kIndex);
  c.check(x.rank() == 3 || x.rank() == 4,
          "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
          "non-zero dimensions for input, but got: " +
              sizes_text(x.dims()));
  const int64_t h = x.rank() - 2;
  const Ints plane = {x.dim(h).fixed(), x.dim(h + 1).fixed()};
  const Sliding s = read_sliding(c, plane);
  Value y = apply_taps(b, x, h + 1, sliding_taps(s, 1, plane[1]));
  y = apply_taps(b, y, h, sliding_taps(s, 0, plane[0]));
  const Size batch = x.rank() == 4 ? x.dim(0) : Size(1), channels = x.dim(h - 1);
  y = b.reshape(y, {batch, channels, s.blocks[0], s.kernel[0], s.blocks[1], s.kernel[1]});
  y = b.transpose(y, {0, 1, 3, 5, 2, 4});
  Dims dims = {channels * Size(s.kernel[0] * s.kernel[1]), s.blocks[0] * s.blocks[1]};
  if (x.rank() == 4) dims.insert(dims.begin(), batch);
  return {b.reshape(y, dims)};
}

Values lower_col2im(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("self");
  c.check(x.rank() == 2 || x.rank() == 3,
          "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size "
          "and non-zero dimensions for input, but got: " +
              sizes_text(x.dims()));
  Ints plane = c.ints("output_size");
  if (plane.size() == 1) plane.push_back(plane[0]);
  c.check(plane.size() == 2,
          "output_size must be of size 2, but got " + std::to_string(plane.size()));
  const Sliding s = read_sliding(c, plane);
  const int64_t rows = x.dim(-2).fixed(), window = s.kernel[0] * s.kernel[1];
  c.check(rows % window == 0,
          "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
          "got input.size(1)=" +
              std::to_string(rows) + " and kernel_size=" + pair_text(s.kernel) + ".");
  c.check(x.dim(-1) == Size(s.blocks[0] * s.blocks[1]),
          "Given output_size=" + pair_text(plane) + ", kernel_size=" + pair_text(s.kernel) +
              ", dilation=" + pair_text(s.dilation) + ", padding=" + pair_text(s.padding) +
              ", stride=" + pair_text(s.stride) +
              ", expected size of input's dimension 2 to match the calculated number of sliding "
              "blocks " +
              std::to_string(s.blocks[0]) + " * " + std::to_string(s.blocks[1]) + " = " +
              std::to_string(s.blocks[0] * s.blocks[1]) +
              ", but got input.size(2)=" + x.dim(-1).str() + ".");
  const Size batch = x.rank() == 3 ? x.dim(0) : Size(1);
  const int64_t channels = rows / window;
  Value y =
      b.reshape(wide(b, x), {batch, channels, s.kernel[0], s.kernel[1], s.blocks[0], s.blocks[1]});
  y = b.transpose(y, {0, 1, 4, 2, 5, 3});
  y = b.reshape(y, {batch, channels, s.blocks[0] * s.kernel[0], s.blocks[1] * s.kernel[1]});
  y = apply_taps(b, y, 2, adjoint(sliding_taps(s, 0, plane[0]), plane[0]));
  y = apply_taps(b, y, 3, adjoint(sliding_taps(s, 1, plane[1]), plane[1]));
  if (x.rank() == 2) y = b.reshape(y, {channels, plane[0], plane[1]});
  return {b.convert(y, x.dtype())};
}

constexpr std::string_view k1d = "scales", k2d = "scales_h,scales_w",
                           k3d = "scales_d,scales_h,scales_w";
using enum Filter;
constexpr Infer kC = Infer::kComposite, kL = Infer::kLowering;
constexpr Tolerance kExact = Tolerance::kExact, kSum = Tolerance::kReduction;

}  // namespace

const OpRow kResizeRows[] = {
    {"upsample_nearest1d", lower_upsample<kNearest, 1>, k1d, kC, kExact},
    {"upsample_nearest2d", lower_upsample<kNearest, 2>, k2d, kC, kExact},
    {"upsample_nearest3d", lower_upsample<kNearest, 3>, k3d, kC, kExact},
    {"_upsample_nearest_exact1d", lower_upsample<kNearestExact, 1>, k1d, kC, kExact},
    {"_upsample_nearest_exact2d", lower_upsample<kNearestExact, 2>, k2d, kC, kExact},
    {"_upsample_nearest_exact3d", lower_upsample<kNearestExact, 3>, k3d, kC, kExact},
    {"upsample_linear1d", lower_upsample<kLinear, 1>, k1d, kC, kSum},
    {"upsample_bilinear2d", lower_upsample<kLinear, 2>, k2d, kC, kSum},
    {"upsample_trilinear3d", lower_upsample<kLinear, 3>, k3d, kC, kSum},
    {"upsample_bicubic2d", lower_upsample<kCubic, 2>, k2d, kC, kSum},
    {"_upsample_bilinear2d_aa", lower_upsample<kLinearAntialias, 2>, k2d, kC, kSum},
    {"_upsample_bicubic2d_aa", lower_upsample<kCubicAntialias, 2>, k2d, kC, kSum},
    {"upsample_nearest1d_backward", lower_upsample_backward<kNearest, 1>, k1d, kC, kSum},
    {"upsample_nearest2d_backward", lower_upsample_backward<kNearest, 2>, k2d, kC, kSum},
    {"upsample_nearest3d_backward", lower_upsample_backward<kNearest, 3>, k3d, kC, kSum},
    {"_upsample_nearest_exact1d_backward", lower_upsample_backward<kNearestExact, 1>, k1d, kC,
     kSum},
    {"_upsample_nearest_exact2d_backward", lower_upsample_backward<kNearestExact, 2>, k2d, kC,
     kSum},
    {"_upsample_nearest_exact3d_backward", lower_upsample_backward<kNearestExact, 3>, k3d, kC,
     kSum},
    {"upsample_linear1d_backward", lower_upsample_backward<kLinear, 1>, k1d, kC, kSum},
    {"upsample_bilinear2d_backward", lower_upsample_backward<kLinear, 2>, k2d, kC, kSum},
    {"upsample_trilinear3d_backward", lower_upsample_backward<kLinear, 3>, k3d, kC, kSum},
    {"upsample_bicubic2d_backward", lower_upsample_backward<kCubic, 2>, k2d, kC, kSum},
    {"_upsample_bilinear2d_aa_backward", lower_upsample_backward<kLinearAntialias, 2>, k2d, kC,
     kSum},
    {"_upsample_bicubic2d_aa_backward", lower_upsample_backward<kCubicAntialias, 2>, k2d, kC, kSum},
    {"reflection_pad1d", lower_pad<true>, "", kC, kExact},
    {"reflection_pad2d", lower_pad<true>, "", kL, kExact},
    {"reflection_pad3d", lower_pad<true>, "", kC, kExact},
    {"reflection_pad1d_backward", lower_pad_backward<true>, "", kC, kSum},
    {"reflection_pad2d_backward", lower_pad_backward<true>, "", kL, kSum},
    {"reflection_pad3d_backward", lower_pad_backward<true>, "", kC, kSum},
    {"replication_pad1d", lower_pad<false>, "", kC, kExact},
    {"replication_pad2d", lower_pad<false>, "", kC, kExact},
    {"replication_pad3d", lower_pad<false>, "", kC, kExact},
    {"replication_pad1d_backward", lower_pad_backward<false>, "", kC, kSum},
    {"replication_pad2d_backward", lower_pad_backward<false>, "", kL, kSum},
    {"replication_pad3d_backward", lower_pad_backward<false>, "", kL, kSum},
    {"im2col", lower_im2col, "", kL, kExact},
    {"col2im", lower_col2im, "", kL, kSum},
    {"grid_sampler_2d", lower_grid_sample, "", kL, kSum},
    {"grid_sampler_3d", lower_grid_sample, "", kL, kSum},
    {"grid_sampler_2d_backward", lower_grid_sample_backward, "", kL, kSum},
    {"grid_sampler_3d_backward", lower_grid_sample_backward, "", kL, kSum},
};
const size_t kResizeRowCount = std::size(kResizeRows);

}  // namespace torch_tpu::lowering
