// Scans: cumsum, cumprod, logcumsumexp, cummax, cummin. Work O(n log kBlock), depth O(log n), exact for integers.
#include "lowering/scan.h"

#include <limits>

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Unary;

// Longer axes are cut into blocks of this many elements; the blocks' totals are scanned in turn.
constexpr int64_t kBlock = 16;

Values map(const Values& xs, const std::function<Value(const Value&)>& f) {
  Values results;
  for (const Value& x : xs) results.push_back(f(x));
  return results;
}

Values join(Builder& b, const Values& first, const Values& second, int64_t dim) {
  Values results;
  for (size_t i = 0; i < first.size(); ++i) {
    results.push_back(b.concatenate({first[i], second[i]}, dim));
  }
  return results;
}

// Hillis and Steele: after the round of shift s every element holds the combination of the 2s elements up to it.
Values scan_short(Builder& b, Values xs, int64_t dim, const ScanStep& step) {
  const int64_t n = xs[0].dim(dim).fixed();
  for (int64_t shift = 1; shift < n; shift *= 2) {
    Values head = map(xs, [&](const Value& x) { return b.slice_dim(x, dim, 0, shift); });
    Values before = map(xs, [&](const Value& x) { return b.slice_dim(x, dim, 0, n - shift); });
    Values after = map(xs, [&](const Value& x) { return b.slice_dim(x, dim, shift, n); });
    xs = join(b, head, step(before, after), dim);
  }
  return xs;
}

Values scan_static(Builder& b, const Values& xs, int64_t dim, const ScanStep& step) {
  const Dims dims = xs[0].dims();
  const int64_t n = dims[dim].fixed();
  if (n <= 4 * kBlock) return scan_short(b, xs, dim, step);

  const int64_t blocks = (n + kBlock - 1) / kBlock;
  Dims split = dims, totals = dims, padded = dims;
  split[dim] = blocks;
  split.insert(split.begin() + dim + 1, Size(kBlock));
  totals[dim] = blocks;
  padded[dim] = blocks * kBlock;

  // The filling of the last block lies after every element that is kept.
  std::vector<int64_t> low(dims.size(), 0), high(dims.size(), 0);
  high[dim] = blocks * kBlock - n;
  Values within = map(xs, [&](const Value& x) {
    return b.reshape(b.pad(x, b.zeros({x.dtype(), {}}), low, high), split);
  });
  within = scan_short(b, within, dim + 1, step);
  Values ends = map(within, [&](const Value& x) {
    return b.reshape(b.slice_dim(x, dim + 1, kBlock - 1, kBlock), totals);
  });
  ends = map(ends, [&](const Value& x) { return b.slice_dim(x, dim, 0, blocks - 1); });
  const Values before = scan_static(b, ends, dim, step);

  Dims rest = split;
  rest[dim] = blocks - 1;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < static_cast<int64_t>(rest.size()); ++i) {
    if (i != dim + 1) kept.push_back(i);
  }
  Values spread = map(before, [&](const Value& x) { return b.broadcast_in_dim(x, rest, kept); });
  Values first = map(within, [&](const Value& x) { return b.slice_dim(x, dim, 0, 1); });
  Values others = map(within, [&](const Value& x) { return b.slice_dim(x, dim, 1, blocks); });
  Values joined = join(b, first, step(spread, others), dim);
  return map(joined, [&](const Value& x) { return b.slice_dim(b.reshape(x, padded), dim, 0, n); });
}

Value restore_sizes(Builder& b, Value x, const Dims& dims) {
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!dims[i].is_static()) {
      x = b.set_dimension_size(x, b.size(dims[i], DType::kI32), i, dims[i]);
    }
  }
  return x;
}

Value scan_one(Builder& b, Value x, int64_t dim, const std::function<Value(Value, Value)>& step) {
  return inclusive_scan(b, {x}, dim, [&](const Values& before, const Values& after) {
    return Values{step(before[0], after[0])};
  })[0];
}

// -- Operators ----------------------------------------------------------------------------------

Values lower_running(Call& c, Binary op) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  const DType result = c.out().dtype;
  x = wide(b, b.convert(x, result));
  if (x.dtype() == DType::kPred) x = b.convert(x, DType::kI32);
  const int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  Value y =
      scan_one(b, x, dim, [&](Value before, Value after) { return b.binary(op, before, after); });
  return {b.convert(y, result)};
}

Values lower_cumsum(Call& c) { return lower_running(c, Binary::kAdd); }
Values lower_cumprod(Call& c) { return lower_running(c, Binary::kMultiply); }

// log(exp(x) + exp(y)); infinities of one sign meet as themselves.
Value log_add_exp(Builder& b, Value x, Value y) {
  Value high = b.max(x, y);
  Value gap = b.neg(b.abs(b.sub(x, y)));
  Value sum = b.add(high, b.unary(Unary::kLog1p, b.exp(gap)));
  Value same_infinity =
      b.logical_and(b.eq(x, y), b.eq(b.abs(x), b.like(x, std::numeric_limits<double>::infinity())));
  return b.select(same_infinity, x, sum);
}

Values lower_logcumsumexp(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  c.check(
      stablehlo::is_float(x.dtype()),
      std::string("\"logcumsumexp_out\" not implemented for '") + scalar_type_name(x.dtype()) + "'",
      ArgumentError::Kind::kNotImplemented);
  const int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  const DType result = x.dtype();
  Value y = scan_one(b, wide(b, x), dim,
                     [&](Value before, Value after) { return log_add_exp(b, before, after); });
  return {b.convert(y, result)};
}

// Of equal values the later one counts; a NaN wins over everything before it and loses only to a later NaN.
Values lower_extreme(Call& c, bool largest) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  const std::string name = largest ? "cummax" : "cummin";
  c.check(!stablehlo::is_complex(x.dtype()),
          "\"" + name + "\" not implemented for '" + scalar_type_name(x.dtype()) + "'",
          ArgumentError::Kind::kNotImplemented);
  const int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  if (x.rank() == 0) return {x, b.constant_int(0, DType::kI64)};
  const DType result = x.dtype();
  if (result == DType::kPred) x = b.convert(x, DType::kU8);
  const bool nans = stablehlo::is_float(x.dtype());
  Values y = inclusive_scan(
      b, {x, b.iota(DType::kI32, x.dims(), dim)}, dim,
      [&](const Values& before, const Values& after) {
        Value later = largest ? b.ge(after[0], before[0]) : b.le(after[0], before[0]);
        if (nans) later = b.logical_or(later, b.is_nan(after[0]));
        return Values{b.select(later, after[0], before[0]), b.select(later, after[1], before[1])};
      });
  return {b.convert(y[0], result), b.convert(y[1], DType::kI64)};
}

Values lower_cummax(Call& c) { return lower_extreme(c, true); }
Values lower_cummin(Call& c) { return lower_extreme(c, false); }

}  // namespace

Values inclusive_scan(Builder& b, const Values& xs, int64_t dim, const ScanStep& step) {
  if (xs[0].rank() == 0 || xs[0].numel().bound() == 0) return xs;
  const Dims dims = xs[0].dims();
  if (all_static(dims)) return scan_static(b, xs, dim, step);
  // What lies past a true size comes after every element that counts.
  Values padded = map(xs, [&](const Value& x) { return b.pad_to_bound(x); });
  Values scanned = scan_static(b, padded, dim, step);
  return map(scanned, [&](const Value& x) { return restore_sizes(b, x, dims); });
}

Value running_sum(Builder& b, Value x, int64_t dim) {
  return scan_one(b, x, dim, [&](Value before, Value after) { return b.add(before, after); });
}

Value places_of_true(Builder& b, Value mask) {
  const bool narrow = mask.numel().bound() < std::numeric_limits<int32_t>::max();
  const DType type = narrow ? DType::kI32 : DType::kI64;
  if (mask.rank() == 0) {
    return b.select(mask, b.constant_int(0, type), b.constant_int(-1, type));
  }
  Value flat = b.flatten(mask);
  Value place = b.sub(running_sum(b, b.convert(flat, type), 0), b.constant_int(1, type));
  return b.reshape(b.select(flat, place, b.constant_int(-1, type)), mask.dims());
}

const OpRow kScanRows[] = {
    {"cumsum", lower_cumsum, "", Infer::kComposite, Tolerance::kReduction},
    {"cumprod", lower_cumprod, "", Infer::kComposite, Tolerance::kReduction},
    {"logcumsumexp", lower_logcumsumexp, "", Infer::kLowering, Tolerance::kReduction},
    {"_logcumsumexp", lower_logcumsumexp, "", Infer::kLowering, Tolerance::kReduction},
    {"cummax", lower_cummax, "", Infer::kLowering, Tolerance::kExact},
    {"cummin", lower_cummin, "", Infer::kLowering, Tolerance::kExact},
};
const size_t kScanRowCount = std::size(kScanRows);

}  // namespace torch_tpu::lowering
