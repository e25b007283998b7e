// Static numbers as constants.
#include "lowering/number.h"

#include <cmath>
#include <limits>

namespace torch_tpu::lowering {
namespace {

using ir::Number;
using stablehlo::Builder;
using stablehlo::DType;
using stablehlo::Value;

bool is_integral(const Number& number) {
  return number.kind == Number::Kind::kInt || number.kind == Number::Kind::kBool;
}

// Saturates where C++ leaves the cast undefined.
int64_t truncate(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

double real_value(const Number& number) {
  return is_integral(number) ? static_cast<double>(number.i) : number.f;
}

Value constant_number(Builder& b, const Number& number, DType dtype) {
  if (number.kind == Number::Kind::kComplex && stablehlo::is_complex(dtype)) {
    DType part = stablehlo::real_of(dtype);
    return b.binary(stablehlo::Binary::kComplex, b.constant(number.f, part),
                    b.constant(number.im, part));
  }
  if (dtype == DType::kPred) return b.constant_bool(real_value(number) != 0.0 || number.im != 0.0);
  if (stablehlo::is_int(dtype))
    return b.constant_int(is_integral(number) ? number.i : truncate(number.f), dtype);
  return b.constant(real_value(number), dtype);
}

}  // namespace torch_tpu::lowering
