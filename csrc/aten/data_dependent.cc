// Operators whose results depend on a host read: where their sizes are values (one counting program, one read, then
// programs of that size), or where a value is an error.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/capture.h"
#include "aten/infer.h"
#include "aten/kernel.h"
#include "aten/op_cache.h"

namespace torch_tpu::aten {
namespace {

void need_values(const char* op) {
  if (InferScope::active() || CaptureScope::active() != nullptr) throw NeedsValue(op);
}

at::Tensor nonzero_positions(const at::Tensor& self) {
  need_values("nonzero");
  const int64_t count = at::count_nonzero(self).item<int64_t>();
  return at::nonzero_static(self, count);
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  const at::Tensor result = nonzero_positions(self);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// Index tensors as the index operators want them: on the device, masks as the positions that are true.
c10::List<std::optional<at::Tensor>> as_positions(
    const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices) {
  c10::List<std::optional<at::Tensor>> result;
  for (const std::optional<at::Tensor>& given : indices) {
    if (!given || !given->defined()) {
      result.push_back(std::nullopt);
      continue;
    }
    at::Tensor index = *given;
    const auto dtype = index.scalar_type();
    TORCH_CHECK_INDEX(
        dtype == at::kLong || dtype == at::kInt || dtype == at::kBool || dtype == at::kByte,
        "tensors used as indices must be long, int, byte or bool tensors");
    if (dtype == at::kBool || dtype == at::kByte) {
      const auto first = static_cast<int64_t>(result.size());
      for (int64_t d = 0; d < index.dim(); ++d) {
        TORCH_CHECK_INDEX(first + d < self.dim() && index.size(d) == self.size(first + d),
                          "The shape of the mask ", index.sizes(), " at index ", d,
                          " does not match the shape of the indexed tensor ", self.sizes(),
                          " at index ", first + d);
      }
      const at::Tensor positions =
          (index.device() == self.device() ? index.nonzero() : index.nonzero().to(self.device()));
      for (int64_t d = 0; d < index.dim(); ++d) result.push_back(positions.select(1, d));
      if (index.dim() ==
          0) {  // x[True]: handled by a dimension of its own in Python; only whole masks arrive here
        result.push_back(positions.select(0, 0));
      }
      continue;
    }
    if (index.device() != self.device()) {
      TORCH_CHECK(index.device().is_cpu(),
                  "indices should be either on cpu or on the same device as the indexed tensor (",
                  self.device(), ")");
      index = index.to(self.device());
    }
    result.push_back(index);
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(result.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    result.size(), ")");
  return result;
}

void run(const char* name, const char* overload, Stack& stack) {
  run_operator(op_info(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)), &stack);
}

at::Tensor index(const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices) {
  Stack stack{self, as_positions(self, indices)};
  run("aten::index", "Tensor", stack);
  return stack.front().toTensor();
}

at::Tensor& index_put_impl_(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices,
                            const at::Tensor& values, bool accumulate, bool) {
  if (InferScope::active()) return self;
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", values.scalar_type(),
              " for the source.");
  at::Tensor source = values;
  if (source.device() != self.device() && source.numel() == 1 && source.dim() == 0)
    source = source.to(self.device());
  // One mask and one value: a select, whose size depends on nothing.
  if (indices.size() == 1 && !accumulate && source.numel() == 1) {
    const std::optional<at::Tensor> mask = indices.get(0);
    if (mask && mask->defined() && mask->scalar_type() == at::kBool &&
        mask->device() == self.device() &&
        mask->sizes() ==
            self.sizes().slice(0, static_cast<size_t>(std::min(mask->dim(), self.dim())))) {
      at::Tensor wide = *mask;
      while (wide.dim() < self.dim()) wide = wide.unsqueeze(-1);
      return self.masked_fill_(wide, source.reshape({}));
    }
  }
  Stack stack{self, as_positions(self, indices), source, accumulate, false};
  run("aten::_index_put_impl_", "", stack);
  return self;
}

at::Tensor& index_put_(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices,
                       const at::Tensor& values, bool accumulate) {
  return index_put_impl_(self, indices, values, accumulate, false);
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device");
  const auto [wide_self, wide_mask] = at::expand_outplace(self, mask);
  need_values("masked_select");
  return wide_self->reshape({-1}).index_select(0, wide_mask->reshape({-1}).nonzero().squeeze(1));
}

at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  int64_t total = 0;
  if (output_size) {
    total = *output_size;
  } else {
    need_values("repeat_interleave");
    if (repeats.numel() > 0) {
      TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
      total = repeats.sum().item<int64_t>();
    }
  }
  const at::Tensor ends = repeats.cumsum(0);
  const at::Tensor positions = at::arange(total, ends.options());
  return at::searchsorted(ends, positions, /*out_int32=*/false, /*right=*/true)
      .to(repeats.scalar_type());
}

struct Groups {
  at::Tensor values, inverse, counts;
};

// Runs of equal neighbours among a tensor's elements or a matrix' rows.
Groups group_runs(const at::Tensor& flat) {
  const int64_t n = flat.size(0);
  const auto longs = flat.options().dtype(at::kLong);
  if (n == 0) return {flat.clone(), at::empty({0}, longs), at::empty({0}, longs)};
  at::Tensor starts = at::ones({n}, flat.options().dtype(at::kBool));
  if (n > 1) {
    const at::Tensor changes = flat.slice(0, 1).ne(flat.slice(0, 0, n - 1));
    starts.slice(0, 1).copy_(flat.dim() == 1 ? changes : changes.any(1));
  }
  const at::Tensor inverse = starts.to(at::kLong).cumsum(0).sub_(1);
  const at::Tensor first = starts.nonzero().squeeze(1);
  const at::Tensor ends = at::cat({first.slice(0, 1), at::full({1}, n, longs)});
  return {flat.index_select(0, first), inverse, ends.sub(first)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique2(const at::Tensor& self, bool,
                                                       bool return_inverse, bool return_counts) {
  need_values("unique");
  const at::Tensor flat = self.reshape({-1});
  const auto longs = self.options().dtype(at::kLong);
  const auto [sorted, order] = flat.sort(/*stable=*/true, 0, false);
  const Groups groups = group_runs(sorted);
  at::Tensor inverse = at::empty({0}, longs);
  if (return_inverse) {
    inverse =
        at::empty({flat.numel()}, longs).scatter_(0, order, groups.inverse).view(self.sizes());
  }
  return {groups.values, inverse, return_counts ? groups.counts : at::empty({0}, longs)};
}

// A permutation of the rows that puts them in lexicographic order: stable sorts from the last column to the first.
at::Tensor row_order(const at::Tensor& rows) {
  at::Tensor order = at::arange(rows.size(0), rows.options().dtype(at::kLong));
  for (int64_t column = rows.size(1); column-- > 0;) {
    const at::Tensor keys = rows.select(1, column).index_select(0, order);
    order = order.index_select(0, std::get<1>(keys.sort(/*stable=*/true, 0, false)));
  }
  return order;
}

// The distinct slices along a dimension: of equal neighbours, or of all where they are sorted first.
std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_slices(const at::Tensor& self, int64_t dim,
                                                             bool sort, bool return_inverse,
                                                             bool return_counts) {
  need_values("unique_dim");
  const auto longs = self.options().dtype(at::kLong);
  const at::Tensor none = at::empty({0}, longs);
  const int64_t zeros = std::ranges::count(self.sizes(), 0);
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() > 0 && self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1,
                "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return {at::empty(self.sizes(), self.options()), none, none};
  }
  TORCH_CHECK(
      zeros == 0,
      "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const int64_t dims = self.dim();
  const at::Tensor front = dims > 0 ? self.movedim(dim, 0) : self;
  at::Tensor rows = front.reshape({dims > 0 ? self.size(dim) : 1, -1});
  const at::Tensor order = sort ? row_order(rows) : at::Tensor();
  if (sort) rows = rows.index_select(0, order);
  const Groups groups = group_runs(rows);
  std::vector<int64_t> sizes = front.sizes().vec();
  if (dims > 0) sizes.front() = groups.values.size(0);
  at::Tensor values = groups.values.reshape(sizes);
  if (dims > 0) values = values.movedim(0, dim);
  at::Tensor inverse = none;
  if (return_inverse) {
    inverse =
        sort ? at::empty({rows.size(0)}, longs).scatter_(0, order, groups.inverse) : groups.inverse;
  }
  return {values, inverse, return_counts ? groups.counts : none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_dim(const at::Tensor& self, int64_t dim, bool,
                                                          bool return_inverse, bool return_counts) {
  return unique_slices(self, dim, /*sort=*/true, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_dim_consecutive(const at::Tensor& self,
                                                                      int64_t dim,
                                                                      bool return_inverse,
                                                                      bool return_counts) {
  return unique_slices(self, dim, /*sort=*/false, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_consecutive(const at::Tensor& self,
                                                                  bool return_inverse,
                                                                  bool return_counts,
                                                                  std::optional<int64_t> dim) {
  need_values("unique_consecutive");
  if (dim && !(*dim == 0 && self.dim() == 1))
    return unique_slices(self, *dim, /*sort=*/false, return_inverse, return_counts);
  const auto longs = self.options().dtype(at::kLong);
  const Groups groups = group_runs(self.reshape({-1}));
  return {groups.values, return_inverse ? groups.inverse.view(self.sizes()) : at::empty({0}, longs),
          return_counts ? groups.counts : at::empty({0}, longs)};
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights,
                    int64_t minlength) {
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1 && c10::isIntegralType(self.scalar_type(), true),
              "bincount only supports 1-d non-negative integral inputs.");
  need_values("bincount");
  const bool weighted = weights && weights->defined();
  const auto dtype = !weighted                              ? at::kLong
                     : weights->scalar_type() == at::kFloat ? at::kFloat
                                                            : at::kDouble;
  if (self.numel() == 0) return at::zeros({minlength}, self.options().dtype(at::kLong));
  TORCH_CHECK(self.min().item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  const int64_t bins = std::max(self.max().item<int64_t>() + 1, minlength);
  const at::Tensor ones =
      weighted ? weights->to(dtype) : at::ones({self.numel()}, self.options().dtype(dtype));
  return at::zeros({bins}, self.options().dtype(dtype)).index_add_(0, self.to(at::kLong), ones);
}

at::Tensor cholesky(const at::Tensor& self, bool upper) {
  at::native::squareCheckInputs(self, "cholesky");
  const auto [factor, info] = at::linalg_cholesky_ex(self, upper, /*check_errors=*/false);
  // A captured program cannot stop: there the factor is NaN.
  if (!InferScope::active() && CaptureScope::active() == nullptr)
    at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return self.eq(other).all().item<bool>();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", &nonzero_positions);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("index.Tensor", &index);
  m.impl("index_put_", &index_put_);
  m.impl("_index_put_impl_", &index_put_impl_);
  m.impl("masked_select", &masked_select);
  m.impl("repeat_interleave.Tensor", &repeat_interleave);
  m.impl("_unique2", &unique2);
  m.impl("unique_consecutive", &unique_consecutive);
  m.impl("unique_dim", &unique_dim);
  m.impl("unique_dim_consecutive", &unique_dim_consecutive);
  m.impl("bincount", &bincount);
  m.impl("cholesky", &cholesky);
  m.impl("equal", &equal);
}

}  // namespace
}  // namespace torch_tpu::aten
