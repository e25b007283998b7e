// sort, topk, kthvalue. All of them are stable and count NaN as the largest value.
#include "lowering/sort.h"

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {

Values sort_by(Builder& b, const Values& xs, int64_t dim, bool descending) {
  const bool nans = stablehlo::is_float(xs[0].dtype());
  const bool flags = xs[0].dtype() == DType::kPred;
  Values operands = xs;
  if (flags) operands[0] = b.convert(operands[0], DType::kU8);
  Values sorted = b.sort(operands, dim, true, [&](const Values& pairs) -> Values {
    Value x = pairs[0], y = pairs[1];
    Value larger = descending ? x : y, smaller = descending ? y : x;
    Value first = b.gt(larger, smaller);
    if (nans) {
      Value by_nan = b.logical_and(b.is_nan(larger), b.logical_not(b.is_nan(smaller)));
      first = b.logical_or(first, by_nan);
    }
    return {first};
  });
  if (flags) sorted[0] = b.convert(sorted[0], DType::kPred);
  return sorted;
}

namespace {

std::vector<int64_t> dim_last(int64_t rank, int64_t dim) {
  std::vector<int64_t> order = axes_except(rank, dim);
  order.push_back(dim);
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[order[i]] = static_cast<int64_t>(i);
  return result;
}

// Values and i32 positions along dim, sorted.
Values sort_with_positions(Builder& b, Value x, int64_t dim, bool descending) {
  return sort_by(b, {x, b.iota(DType::kI32, x.dims(), dim)}, dim, descending);
}

void check_sortable(const Call& c, const Value& self, const std::string& what) {
  c.check(!stablehlo::is_complex(self.dtype()), what + " does not support complex dtypes");
}

Values lower_sort(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  check_sortable(c, self, "Sort");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  if (self.rank() == 0) return {self, b.constant_int(0, DType::kI64)};
  if (self.numel().bound() == 0) return {self, b.zeros({DType::kI64, self.dims()})};
  Values sorted = sort_with_positions(b, self, dim, c.boolean("descending"));
  return {sorted[0], b.convert(sorted[1], DType::kI64)};
}

Values lower_topk(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  check_sortable(c, self, "topk");
  c.check(self.dtype() != DType::kPred, "topk does not support bool dtypes");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank()), k = c.integer("k");
  if (self.rank() == 0) {
    if (k == 1) return {self, b.constant_int(0, DType::kI64)};
    return {b.zeros({self.dtype(), {Size(k)}}), b.zeros({DType::kI64, {Size(k)}})};
  }
  Dims result = self.dims();
  result[dim] = k;
  const Size count = product(result);
  if (count.is_static() && count.bound() == 0) {
    return {b.zeros({self.dtype(), result}), b.zeros({DType::kI64, result})};
  }
  if (!c.boolean("largest")) {
    Values sorted = sort_with_positions(b, self, dim, false);
    return {b.slice_dim(sorted[0], dim, 0, k),
            b.convert(b.slice_dim(sorted[1], dim, 0, k), DType::kI64)};
  }
  const bool last = dim == self.rank() - 1;
  const std::vector<int64_t> order = dim_last(self.rank(), dim);
  auto [values, indices] = b.top_k(last ? self : b.transpose(self, order), k);
  if (!last) {
    values = b.transpose(values, inverse(order));
    indices = b.transpose(indices, inverse(order));
  }
  return {values, b.convert(indices, DType::kI64)};
}

Values lower_kthvalue(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  check_sortable(c, self, "kthvalue()");
  const int64_t k = c.integer("k");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  if (self.rank() == 0) {
    c.check(k == 1, "kthvalue(): selected number k out of range for dimension 0");
    return {self, b.constant_int(0, DType::kI64)};
  }
  const int64_t n = self.dim(dim).fixed();
  c.check(n > 0,
          "kthvalue(): Expected reduction dim " + std::to_string(dim) + " to have non-zero size.",
          ArgumentError::Kind::kIndex);
  c.check(k >= 1 && k <= n,
          "kthvalue(): selected number k out of range for dimension " + std::to_string(dim));
  Dims result = self.dims();
  if (c.boolean("keepdim")) {
    result[dim] = 1;
  } else {
    result.erase(result.begin() + dim);
  }
  if (self.numel().bound() == 0) {
    return {b.zeros({self.dtype(), result}), b.zeros({DType::kI64, result})};
  }
  Values sorted = sort_with_positions(b, self, dim, false);
  return {b.reshape(b.slice_dim(sorted[0], dim, k - 1, k), result),
          b.convert(b.reshape(b.slice_dim(sorted[1], dim, k - 1, k), result), DType::kI64)};
}

}  // namespace

const OpRow kSortRows[] = {
    {"sort", lower_sort, "", Infer::kComposite, Tolerance::kExact},
    {"sort.stable", lower_sort, "", Infer::kComposite, Tolerance::kExact},
    {"topk", lower_topk, "", Infer::kComposite, Tolerance::kExact},
    {"kthvalue", lower_kthvalue, "", Infer::kLowering, Tolerance::kExact},
};
const size_t kSortRowCount = std::size(kSortRows);

}  // namespace torch_tpu::lowering
