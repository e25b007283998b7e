#include "lowering/checks.h"

#include <functional>
#include <numeric>
#include <string>

namespace torch_tpu::lowering {
namespace {

using stablehlo::Monoid;

std::vector<int64_t> all_dims(const Value& x) {
  std::vector<int64_t> dims(x.rank());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Value any(Builder& b, Value flags) { return b.reduce(Monoid::kOr, flags, all_dims(flags)); }

Value is_nan(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return b.is_nan(x);
  return b.logical_or(b.is_nan(b.unary(stablehlo::Unary::kReal, x)),
                      b.is_nan(b.unary(stablehlo::Unary::kImag, x)));
}

Value is_inf(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return b.eq(b.abs(x), b.highest(x.dtype()));
  return b.logical_or(is_inf(b, b.unary(stablehlo::Unary::kReal, x)),
                      is_inf(b, b.unary(stablehlo::Unary::kImag, x)));
}

using Test = std::function<Value(Builder& b, Value x)>;

bool has_values(const Value& x) {
  if (!x || !(stablehlo::is_float(x.dtype()) || stablehlo::is_complex(x.dtype()))) return false;
  for (const Size& d : x.dims()) {
    if (d.is_static() && d.bound() == 0) return false;
  }
  return true;
}

void check_class(Builder& b, const ir::Node& node, const std::vector<Value>& operands,
                 const Values& results, const Test& test, const std::string& what,
                 std::vector<PendingCheck>& checks) {
  Value given = b.constant_bool(false);
  for (const Value& operand : operands) {
    if (has_values(operand)) given = b.logical_or(given, any(b, test(b, operand)));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (!has_values(results[i])) continue;
    const Value fine = b.logical_or(given, b.logical_not(any(b, test(b, results[i]))));
    checks.push_back({{ArgumentError::Kind::kValue, node.op,
                       "the operator '" + node.op + "' returned " + what + " in its output " +
                           std::to_string(i) + ", and none of its inputs has one",
                       /*of_results=*/true},
                      fine,
                      {}});
  }
}

}  // namespace

void check_anomalies(Builder& b, const ir::Node& node, const std::vector<Value>& operands,
                     const Values& results, const ModuleOptions& options,
                     std::vector<PendingCheck>& checks) {
  if (options.check_nan) check_class(b, node, operands, results, is_nan, "NaN", checks);
  if (options.check_inf) check_class(b, node, operands, results, is_inf, "Inf", checks);
}

Value pack_checks(Builder& b, const std::vector<PendingCheck>& checks) {
  Values words;
  for (const PendingCheck& pending : checks) {
    Value ok = b.flatten(pending.ok);
    const Value zero = b.constant_int(0, DType::kI64), one = b.constant_int(1, DType::kI64);
    if (!pending.offending) {
      const Value failed = any(b, b.logical_not(ok));
      words.push_back(b.reshape(b.convert(failed, DType::kI64), {1}));
      words.push_back(b.reshape(zero, {1}));
      continue;
    }
    const Value place = b.iota(DType::kI64, ok.dims(), 0);
    const Value first =
        b.reduce(Monoid::kMinimum, b.select(ok, b.highest(DType::kI64), place), {0});
    const Value offending = b.convert(b.flatten(pending.offending), DType::kI64);
    const Value at_first = b.logical_and(b.logical_not(ok), b.eq(place, first));
    const Value value = b.reduce(Monoid::kAdd, b.select(at_first, offending, zero), {0});
    const Value failed = b.select(b.eq(first, b.highest(DType::kI64)), zero, one);
    words.push_back(b.reshape(failed, {1}));
    words.push_back(b.reshape(value, {1}));
  }
  return b.concatenate(words, 0);
}

}  // namespace torch_tpu::lowering
