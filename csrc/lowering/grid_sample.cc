// Sampling an image or volume at run-time coordinates: a weighted sum over the product of each dimension's taps.
#include "lowering/grid_sample.h"

#include "lowering/axes.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Unary;

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum PaddingMode : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct Sampler {
  Value input,
      grid;  // in the type computed in; input [n, c, sizes...], grid [n, places..., dimensions]
  int64_t spatial;
  std::vector<int64_t> sizes;
  Dims places;  // [n, places...]
  int64_t interpolation, padding;
  bool align_corners;
};

// One tap of one dimension: its coordinate (whole, not yet checked), its weight, and the weight's slope.
struct Tap {
  Value coordinate, weight, slope;
};

Sampler read_sampler(Call& c) {
  Sampler s;
  const Value input = c.tensor("input"), grid = c.tensor("grid");
  s.spatial = input.rank() - 2;
  c.check(input.rank() > 0, "Dimension specified as 0 but tensor has no dimensions",
          ArgumentError::Kind::kIndex);
  c.check(input.dtype() == grid.dtype(),
          std::string("grid_sampler(): expected input and grid to have same dtype, but "
                      "input has ") +
              scalar_type_name(input.dtype()) + " and grid has " + scalar_type_name(grid.dtype()));
  c.check(grid.rank() == input.rank() && (s.spatial == 2 || s.spatial == 3),
          "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
          "got input with sizes " +
              sizes_text(input.dims()) + " and grid with sizes " + sizes_text(grid.dims()));
  c.check(input.dim(0) == grid.dim(0),
          "grid_sampler(): expected grid and input to have same batch size, but got input "
          "with sizes " +
              sizes_text(input.dims()) + " and grid with sizes " + sizes_text(grid.dims()));
  c.check(grid.dim(-1) == Size(s.spatial),
          "grid_sampler(): expected grid to have size " + std::to_string(s.spatial) +
              " in last dimension, but got grid with sizes " + sizes_text(grid.dims()));
  for (int64_t i = 0; i < s.spatial; ++i) {
    s.sizes.push_back(input.dim(2 + i).fixed());
    c.check(s.sizes.back() > 0,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            "sizes " +
                sizes_text(input.dims()) + " with dimension " + std::to_string(i + 2) +
                " being empty");
  }
  s.input = wide(c.b, input);
  s.grid = wide(c.b, grid);
  s.places = Dims(grid.dims().begin(), grid.dims().end() - 1);
  s.interpolation = c.integer("interpolation_mode");
  s.padding = c.integer("padding_mode");
  s.align_corners = c.boolean("align_corners");
  c.check(s.spatial == 2 || s.interpolation != kBicubic,
          "grid_sampler(): bicubic interpolation only supports 4D input");
  return s;
}

// A coordinate and its derivative by the grid's number.
struct Coordinate {
  Value at, slope;
};

Coordinate reflected(Builder& b, Coordinate x, double twice_low, double twice_high) {
  auto number = [&](double v) { return b.like(x.at, v); };
  if (twice_low == twice_high) return {b.mul(x.at, number(0)), b.mul(x.slope, number(0))};
  const double low = twice_low / 2, span = (twice_high - twice_low) / 2;
  const Value offset = b.sub(x.at, number(low)), distance = b.abs(offset);
  const Value flips = b.unary(Unary::kFloor, b.div(distance, number(span)));
  const Value extra = b.rem(distance, number(span));
  const Value even = b.eq(b.rem(flips, number(2)), number(0));
  const Value at = b.select(even, b.add(extra, number(low)), b.sub(number(span + low), extra));
  const Value sign = b.select(b.lt(offset, number(0)), number(-1), number(1));
  return {at, b.mul(x.slope, b.select(even, sign, b.neg(sign)))};
}

Coordinate clipped(Builder& b, Coordinate x, int64_t size) {
  const Value low = b.like(x.at, 0), high = b.like(x.at, static_cast<double>(size - 1));
  const Value inside = b.logical_and(b.gt(x.at, low), b.lt(x.at, high));
  // As fmin and fmax do: NaN becomes the border.
  const Value above = b.select(b.gt(x.at, low), x.at, low);
  return {b.select(b.lt(above, high), above, high), b.select(inside, x.slope, low)};
}

Coordinate padded(Builder& b, const Sampler& s, Coordinate x, int64_t size) {
  if (s.padding == kZeros) return x;
  if (s.padding == kReflection) {
    const double n = static_cast<double>(size);
    x = s.align_corners ? reflected(b, x, 0, 2 * (n - 1)) : reflected(b, x, -1, 2 * n - 1);
  }
  return clipped(b, x, size);
}

// From the grid's [-1, 1] to pixels along spatial dimension i (the grid's last dimension is in x, y, z order).
Coordinate pixel(Builder& b, const Sampler& s, int64_t i) {
  const int64_t column = s.spatial - 1 - i;
  const Value g = b.reshape(b.slice_dim(s.grid, s.grid.rank() - 1, column, column + 1), s.places);
  const double size = static_cast<double>(s.sizes[i]);
  const Value one = b.like(g, 1), half = b.like(g, 0.5);
  const Value shifted = b.add(g, one);
  if (s.align_corners) {
    const double factor = (size - 1) / 2;
    return {b.mul(b.mul(shifted, half), b.like(g, size - 1)), b.like(g, factor)};
  }
  return {b.mul(b.sub(b.mul(shifted, b.like(g, size)), one), half), b.like(g, size / 2)};
}

// -0.75's cubic kernel, its two pieces and their derivatives.
Value polynomial(Builder& b, Value x, const std::vector<double>& from_highest) {
  Value r = b.like(x, from_highest[0]);
  for (size_t i = 1; i < from_highest.size(); ++i)
    r = b.add(b.mul(r, x), b.like(x, from_highest[i]));
  return r;
}

std::vector<Tap> cubic_taps(Builder& b, const Sampler& s, const Coordinate& x, int64_t size) {
  constexpr double a = -0.75;
  const std::vector<double> near = {a + 2, -(a + 3), 0, 1},
                            near_slope = {3 * (a + 2), -2 * (a + 3), 0};
  const std::vector<double> far = {a, -5 * a, 8 * a, -4 * a}, far_slope = {3 * a, -10 * a, 8 * a};
  const Value base = b.unary(Unary::kFloor, x.at), t = b.sub(x.at, base);
  std::vector<Tap> taps;
  for (int k = -1; k <= 2; ++k) {
    const bool right = k > 0, outer = k == -1 || k == 2;
    // The distance to the tap; it grows with x on the left of it and shrinks on the right.
    const Value distance = right ? b.sub(b.like(t, k), t) : b.add(t, b.like(t, -k));
    Value slope = b.mul(polynomial(b, distance, outer ? far_slope : near_slope), x.slope);
    if (right) slope = b.neg(slope);
    const Coordinate place = padded(b, s, {b.add(base, b.like(t, k)), x.slope}, size);
    taps.push_back(
        {b.unary(Unary::kFloor, place.at), polynomial(b, distance, outer ? far : near), slope});
  }
  return taps;
}

std::vector<Tap> taps_along(Builder& b, const Sampler& s, int64_t i) {
  Coordinate x = pixel(b, s, i);
  if (s.interpolation == kBicubic) return cubic_taps(b, s, x, s.sizes[i]);
  x = padded(b, s, x, s.sizes[i]);
  if (s.interpolation == kNearest) {
    return {{b.unary(Unary::kRoundNearestEven, x.at), b.like(x.at, 1), b.like(x.at, 0)}};
  }
  const Value low = b.unary(Unary::kFloor, x.at), one = b.like(x.at, 1), t = b.sub(x.at, low);
  return {{low, b.sub(one, t), b.neg(x.slope)}, {b.add(low, one), t, x.slope}};
}

// One element of the product of the dimensions' taps.
struct Corner {
  Value row;                 // i32 [n, places...]: row of the flattened image, 0 where outside
  Value inside;              // bool [n, places...]
  std::vector<Tap> factors;  // one a dimension
};

std::vector<Corner> corners_of(Builder& b, const Sampler& s) {
  const Value batch = b.iota(DType::kI32, s.places, 0);
  std::vector<Corner> corners = {{batch, b.constant_bool(true, s.places), {}}};
  for (int64_t i = 0; i < s.spatial; ++i) {
    std::vector<Corner> next;
    const Value size = b.constant_int(s.sizes[i], DType::kI32);
    for (const Tap& tap : taps_along(b, s, i)) {
      const Value high = b.like(tap.coordinate, static_cast<double>(s.sizes[i] - 1));
      const Value inside =
          b.logical_and(b.ge(tap.coordinate, b.like(high, 0)), b.le(tap.coordinate, high));
      const Value safe = b.convert(b.select(inside, tap.coordinate, b.like(high, 0)), DType::kI32);
      for (const Corner& corner : corners) {
        Corner more = corner;
        more.row = b.add(b.mul(corner.row, size), safe);
        more.inside = b.logical_and(corner.inside, inside);
        more.factors.push_back(tap);
        next.push_back(more);
      }
    }
    corners = next;
  }
  return corners;
}

// The product of the weights, with dimension `slope_of`'s slope in place of its weight (-1: none).
Value factor(Builder& b, const Corner& corner, int64_t slope_of) {
  Value r;
  for (size_t i = 0; i < corner.factors.size(); ++i) {
    const Tap& tap = corner.factors[i];
    const Value f = static_cast<int64_t>(i) == slope_of ? tap.slope : tap.weight;
    r = r ? b.mul(r, f) : f;
  }
  return r;
}

std::vector<int64_t> channels_last(int64_t rank) {
  std::vector<int64_t> order = axes_from(2, rank);
  order.insert(order.begin(), 0);
  order.push_back(1);
  return order;
}

std::vector<int64_t> channels_first(int64_t rank) {
  std::vector<int64_t> order = axes_from(1, rank - 1);
  order.insert(order.begin(), {0, rank - 1});
  return order;
}

Value column_of(Builder& b, Value v, const Dims& places) {
  Dims dims = places;
  dims.push_back(1);
  return b.reshape(b.broadcast_to(v, places), dims);
}

// The image as one row of channels for each pixel, [n * pixels, c].
Value pixel_rows(Builder& b, const Sampler& s) {
  const Value last = b.transpose(s.input, channels_last(s.input.rank()));
  const Size channels = s.input.dim(1);
  Size rows = s.input.dim(0);
  for (int64_t size : s.sizes) rows = rows * Size(size);
  return b.reshape(last, {rows, channels});
}

// The corner's pixels, [n, places..., c], zero where outside.
Value fetch(Builder& b, const Sampler& s, Value rows, const Corner& corner) {
  stablehlo::GatherDims dims;
  const int64_t rank = static_cast<int64_t>(s.places.size());
  dims.offset_dims = {rank};
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = rank;
  dims.slice_sizes = {1, rows.dim(1).fixed()};
  const Value pixels = b.gather(rows, column_of(b, corner.row, s.places), dims);
  return b.select(column_of(b, corner.inside, s.places), pixels, b.like(pixels, 0));
}

}  // namespace

Values lower_grid_sample(Call& c) {
  Builder& b = c.b;
  const Sampler s = read_sampler(c);
  Dims result = s.places;
  result.insert(result.begin() + 1, s.input.dim(1));
  if (stablehlo::product(result) == Size(0)) return {b.zeros({c.tensor("input").dtype(), result})};
  const Value rows = pixel_rows(b, s);
  Value total;
  for (const Corner& corner : corners_of(b, s)) {
    const Value v = b.mul(fetch(b, s, rows, corner), column_of(b, factor(b, corner, -1), s.places));
    total = total ? b.add(total, v) : v;
  }
  return {b.convert(b.transpose(total, channels_first(total.rank())), c.tensor("input").dtype())};
}

Values lower_grid_sample_backward(Call& c) {
  Builder& b = c.b;
  const Sampler s = read_sampler(c);
  const std::vector<bool> mask = c.bools("output_mask");
  if (stablehlo::product(c.tensor("grad_output").dims()) == Size(0)) {
    const Value zero = b.zeros(c.tensor("input").type()), still = b.zeros(c.tensor("grid").type());
    return {mask[0] ? zero : Value(), mask[1] ? still : Value()};
  }
  Value grad = wide(b, c.tensor("grad_output"));
  grad = b.transpose(grad, channels_last(grad.rank()));
  const Value rows = pixel_rows(b, s);
  const std::vector<Corner> corners = corners_of(b, s);
  Values r(2);
  if (mask[0]) {
    stablehlo::ScatterDims dims;
    const int64_t rank = static_cast<int64_t>(s.places.size());
    dims.update_window_dims = {rank};
    dims.inserted_window_dims = {0};
    dims.scatter_dims_to_operand_dims = {0};
    dims.index_vector_dim = rank;
    Value sum = b.zeros(rows.type());
    for (const Corner& corner : corners) {
      const Value weight = column_of(b, factor(b, corner, -1), s.places);
      const Value share =
          b.select(column_of(b, corner.inside, s.places), b.mul(grad, weight), b.like(grad, 0));
      sum = b.scatter(sum, column_of(b, corner.row, s.places), share, dims,
                      [&b](const Values& v) -> Values { return {b.add(v[0], v[1])}; });
    }
    Dims last = {s.input.dim(0)};
    last.insert(last.end(), s.sizes.begin(), s.sizes.end());
    last.push_back(s.input.dim(1));
    const Value image = b.transpose(b.reshape(sum, last), channels_first(s.input.rank()));
    r[0] = b.convert(image, c.tensor("input").dtype());
  }
  if (mask[1]) {
    Values columns(s.spatial);
    for (const Corner& corner : corners) {
      const Value pixels = fetch(b, s, rows, corner);
      const Value match = sum_over(b, b.mul(pixels, grad), {pixels.rank() - 1});
      for (int64_t i = 0; i < s.spatial; ++i) {
        const Value v = b.mul(match, factor(b, corner, i));
        Value& column = columns[s.spatial - 1 - i];
        column = column ? b.add(column, v) : v;
      }
    }
    for (Value& column : columns) column = column_of(b, column, s.places);
    r[1] = b.convert(b.concatenate(columns, s.grid.rank() - 1), c.tensor("grid").dtype());
  }
  return r;
}

}  // namespace torch_tpu::lowering
