// Operators whose result sizes depend on values: one counting program, one host read, then programs of that size.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

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

// Runs of equal neighbours in a 1-d tensor.
Groups group_runs(const at::Tensor& flat) {
  const int64_t n = flat.numel();
  const auto longs = flat.options().dtype(at::kLong);
  if (n == 0) return {flat.clone(), at::empty({0}, longs), at::empty({0}, longs)};
  at::Tensor starts = at::ones({n}, flat.options().dtype(at::kBool));
  if (n > 1) starts.slice(0, 1).copy_(flat.slice(0, 1).ne(flat.slice(0, 0, n - 1)));
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

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_consecutive(const at::Tensor& self,
                                                                  bool return_inverse,
                                                                  bool return_counts,
                                                                  std::optional<int64_t> dim) {
  need_values("unique_consecutive");
  TORCH_CHECK_NOT_IMPLEMENTED(!dim || self.dim() == 1,
                              "unique_consecutive with dim is not implemented for the tpu device");
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
  m.impl("bincount", &bincount);
  m.impl("equal", &equal);
}

}  // namespace
}  // namespace torch_tpu::aten
