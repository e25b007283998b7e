// Softmax, its logarithm, its form that gives zeros for fully masked rows, and their gradients.
#include <cmath>

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using Kind = ArgumentError::Kind;

std::vector<int64_t> axis_of(const Call& c, const Value& x) {
  return c.wrap_dims({c.integer("dim")}, x.rank());
}

// x minus the largest element of its row.
Value shifted(Builder& b, Value x, const std::vector<int64_t>& axes) {
  return b.sub(x, max_over(b, x, axes, true));
}

Value softmax(Builder& b, Value x, const std::vector<int64_t>& axes) {
  const Value e = b.exp(shifted(b, x, axes));
  return b.div(e, sum_over(b, e, axes, true));
}

Values lower_softmax(Call& c) {
  const Value x = wide(c.b, c.tensor("self"));
  return {c.b.convert(softmax(c.b, x, axis_of(c, x)), c.out().dtype)};
}

Values lower_log_softmax(Call& c) {
  Builder& b = c.b;
  Value x = wide(b, c.tensor("self"));
  const std::vector<int64_t> axes = axis_of(c, x);
  x = shifted(b, x, axes);
  return {b.convert(b.sub(x, b.log(sum_over(b, b.exp(x), axes, true))), c.out().dtype)};
}

Values lower_safe_softmax(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  const std::vector<int64_t> axes = axis_of(c, x);
  if (auto dtype = c.dtype("dtype")) x = b.convert(x, *dtype);
  c.check(stablehlo::is_float(x.dtype()),
          std::string("\"softmax_kernel_impl\" not implemented for '") +
              scalar_type_name(x.dtype()) + "'",
          Kind::kNotImplemented);
  const DType out = x.dtype();
  x = wide(b, x);
  const Value masked = b.eq(x, b.like(x, -HUGE_VAL));
  const Value row_masked = reduce_over(b, stablehlo::Monoid::kAnd, masked, axes, true);
  return {b.convert(b.select(row_masked, b.like(x, 0), softmax(b, x, axes)), out)};
}

Values lower_softmax_backward(Call& c) {
  Builder& b = c.b;
  const Value grad = wide(b, c.tensor("grad_output")), output = wide(b, c.tensor("output"));
  const Value weighted = b.mul(grad, output);
  const Value total = sum_over(b, weighted, axis_of(c, output), true);
  return {b.convert(b.sub(weighted, b.mul(output, total)), c.out().dtype)};
}

Values lower_log_softmax_backward(Call& c) {
  Builder& b = c.b;
  const Value grad = wide(b, c.tensor("grad_output")), output = wide(b, c.tensor("output"));
  const Value total = sum_over(b, grad, axis_of(c, output), true);
  return {b.convert(b.sub(grad, b.mul(b.exp(output), total)), c.out().dtype)};
}

}  // namespace

const OpRow kSoftmaxRows[] = {
    {"_softmax", lower_softmax, "", Infer::kComposite, Tolerance::kReduction},
    {"_log_softmax", lower_log_softmax, "", Infer::kComposite, Tolerance::kReduction},
    {"_safe_softmax", lower_safe_softmax, "", Infer::kLowering, Tolerance::kReduction},
    {"_softmax_backward_data", lower_softmax_backward, "", Infer::kComposite,
     Tolerance::kReduction},
    {"_log_softmax_backward_data", lower_log_softmax_backward, "", Infer::kComposite,
     Tolerance::kReduction},
};
const size_t kSoftmaxRowCount = std::size(kSoftmaxRows);

}  // namespace torch_tpu::lowering
