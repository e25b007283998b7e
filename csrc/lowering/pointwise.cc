// Elementwise operators of two and more operands: arithmetic, comparison, logic, selection.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::is_float;
using stablehlo::is_unsigned_int;
using stablehlo::opmath;

using BinaryFn = Value (*)(Builder& b, Value x, Value y);
using Pair = std::pair<Value, Value>;

// Which of `self` and `other` is a number of the schema.
enum class Form { kTensors, kOtherNumber, kSelfNumber };

template <Form form>
Pair operands(Call& c, DType t) {
  if constexpr (form == Form::kOtherNumber) return {c.tensor("self", t), c.scalar("other", t)};
  if constexpr (form == Form::kSelfNumber) return {c.scalar("self", t), c.tensor("other", t)};
  return {c.tensor("self", t), c.tensor("other", t)};
}

// In the promoted type, in f32 where that is a short float: a number operand then is not rounded first.
template <BinaryFn function, Form form = Form::kTensors>
Values arithmetic(Call& c) {
  auto [x, y] = operands<form>(c, opmath(c.promoted()));
  return {function(c.b, x, y)};
}

// The same with operands rounded to the promoted type first, as PyTorch's remainders do.
template <BinaryFn function, Form form = Form::kTensors>
Values rounded_arithmetic(Call& c) {
  auto [x, y] = operands<form>(c, c.promoted());
  DType t = opmath(c.promoted());
  return {function(c.b, c.b.convert(x, t), c.b.convert(y, t))};
}

// In the promoted type itself: comparisons and bits see rounded operands.
template <BinaryFn function, Form form = Form::kTensors>
Values in_promoted(Call& c) {
  auto [x, y] = operands<form>(c, c.promoted());
  return {function(c.b, x, y)};
}

// Integers become floating point.
template <BinaryFn function, Form form = Form::kTensors>
Values in_float(Call& c) {
  auto [x, y] = operands<form>(c, compute_type(c.out().dtype));
  return {function(c.b, x, y)};
}

template <Compare direction, Form form = Form::kTensors>
Values comparison(Call& c) {
  auto [x, y] = operands<form>(c, c.promoted());
  return {c.b.compare(direction, x, y)};
}

Value scaled_by_alpha(Call& c, Value x) {
  return c.is_one("alpha") ? x : times(c.b, c.scalar("alpha", x.dtype()), x);
}

template <Form form = Form::kTensors>
Values lower_add(Call& c) {
  auto [x, y] = operands<form>(c, opmath(c.out().dtype));
  return {plus(c.b, x, scaled_by_alpha(c, y))};
}

template <Form form = Form::kTensors>
Values lower_sub(Call& c) {
  auto [x, y] = operands<form>(c, opmath(c.out().dtype));
  return {c.b.sub(x, scaled_by_alpha(c, y))};
}

template <Form form = Form::kTensors>
Values lower_rsub(Call& c) {
  auto [x, y] = operands<form>(c, opmath(c.out().dtype));
  return {c.b.sub(y, scaled_by_alpha(c, x))};
}

Value true_divide(Builder& b, Value x, Value y) { return b.div(x, y); }

template <Form form = Form::kTensors>
Values lower_div_mode(Call& c) {
  std::string mode = c.str("rounding_mode");
  if (mode.empty()) return in_float<true_divide, form>(c);
  if (mode == "trunc") return arithmetic<trunc_divide, form>(c);
  return arithmetic<floor_divide, form>(c);
}

Value modulo_c(Builder& b, Value x, Value y) { return b.rem(x, y); }

// -- Powers ---------------------------------------------------------------------------------------------------------

Values lower_pow_tensor(Call& c) {
  DType t = opmath(c.out().dtype);
  return {power(c.b, c.tensor("self", t), c.tensor("exponent", t))};
}

Values lower_pow_tensor_scalar(Call& c) {
  DType t = opmath(c.out().dtype);
  Value x = c.tensor("self", t);
  if (c.is_static("exponent")) return {power_static(c.b, x, c.number("exponent"))};
  return {power(c.b, x, c.scalar("exponent", t))};
}

Values lower_pow_scalar(Call& c) {
  DType t = opmath(c.out().dtype);
  return {power(c.b, c.scalar("self", t), c.tensor("exponent", t))};
}

// -- Maxima and minima ------------------------------------------------------------------------------------------------

template <BinaryFn function>
Value ignoring_nan(Builder& b, Value x, Value y) {
  if (!is_float(x.dtype())) return function(b, x, y);
  return b.select(b.is_nan(x), y, b.select(b.is_nan(y), x, function(b, x, y)));
}

Values lower_clamp(Call& c) {
  DType t = c.out().dtype;
  Value low = c.optional_scalar("min", t).value_or(Value());
  Value high = c.optional_scalar("max", t).value_or(Value());
  return {clamp_between(c.b, c.tensor("self", t), low, high)};
}

Values lower_clamp_tensor(Call& c) {
  DType t = c.out().dtype;
  Value low = c.has("min") ? c.tensor("min", t) : Value();
  Value high = c.has("max") ? c.tensor("max", t) : Value();
  return {clamp_between(c.b, c.tensor("self", t), low, high)};
}

Values lower_clamp_min(Call& c) {
  DType t = c.out().dtype;
  return {maximum(c.b, c.tensor("self", t), c.scalar("min", t))};
}

Values lower_clamp_max(Call& c) {
  DType t = c.out().dtype;
  return {minimum(c.b, c.tensor("self", t), c.scalar("max", t))};
}

Values lower_clamp_min_tensor(Call& c) {
  DType t = c.out().dtype;
  return {maximum(c.b, c.tensor("self", t), c.tensor("min", t))};
}

Values lower_clamp_max_tensor(Call& c) {
  DType t = c.out().dtype;
  return {minimum(c.b, c.tensor("self", t), c.tensor("max", t))};
}

// -- Bits and logic ----------------------------------------------------------------------------------------------------

template <Binary op>
Value bits(Builder& b, Value x, Value y) {
  return b.binary(op, x, y);
}

// A count that is negative or too large shifts everything out.
Value shift_left(Builder& b, Value x, Value y) { return b.binary(Binary::kShiftLeft, x, y); }

Value shift_right(Builder& b, Value x, Value y) {
  bool logical = is_unsigned_int(x.dtype());
  return b.binary(logical ? Binary::kShiftRightLogical : Binary::kShiftRightArithmetic, x, y);
}

template <Binary op>
Values logical(Call& c) {
  return {c.b.binary(op, c.tensor("self", DType::kPred), c.tensor("other", DType::kPred))};
}

// -- Functions of two numbers ---------------------------------------------------------------------------------------------

Value atan2(Builder& b, Value x, Value y) { return b.binary(Binary::kAtan2, x, y); }
Value nextafter(Builder& b, Value x, Value y) { return b.binary(Binary::kNextAfter, x, y); }
Value zeta(Builder& b, Value x, Value y) { return b.binary(Binary::kZeta, x, y); }

Value hypot(Builder& b, Value x, Value y) {
  x = b.abs(x);
  y = b.abs(y);
  Value large = b.max(x, y);
  Value ratio = b.div(b.min(x, y), large);
  Value length = b.mul(large, b.sqrt(b.add(b.like(x, 1.0), b.mul(ratio, ratio))));
  length = b.select(b.eq(large, b.like(x, 0.0)), large, length);
  Value infinite = b.logical_or(is_inf(b, x), is_inf(b, y));
  return b.select(infinite, b.like(x, std::numeric_limits<double>::infinity()), length);
}

// log(exp(x) + exp(y)) from the larger operand and log(1 + exp(-|x - y|)).
Value logaddexp(Builder& b, Value x, Value y) {
  Value rest = b.unary(Unary::kLog1p, b.exp(b.neg(b.abs(b.sub(x, y)))));
  Value same_infinity = b.logical_and(b.eq(x, y), is_inf(b, x));
  return b.select(same_infinity, x, b.add(b.max(x, y), rest));
}

Value logaddexp2(Builder& b, Value x, Value y) {
  Value power_of_two = b.pow(b.like(x, 2.0), b.neg(b.abs(b.sub(x, y))));
  Value rest = b.div(b.unary(Unary::kLog1p, power_of_two), b.like(x, std::log(2.0)));
  Value same_infinity = b.logical_and(b.eq(x, y), is_inf(b, x));
  return b.select(same_infinity, x, b.add(b.max(x, y), rest));
}

Value zero_times(Builder& b, Value x, Value y, Value product) {
  Value result = b.select(b.eq(x, b.like(x, 0.0)), b.like(x, 0.0), product);
  return b.select(b.is_nan(y), y, result);
}

Value xlogy(Builder& b, Value x, Value y) { return zero_times(b, x, y, b.mul(x, b.log(y))); }
Value xlog1py(Builder& b, Value x, Value y) {
  return zero_times(b, x, y, b.mul(x, b.unary(Unary::kLog1p, y)));
}

Values lower_heaviside(Call& c) {
  DType t = c.promoted();
  Value x = c.tensor("self", t);
  Value zero = c.b.constant(0.0, t);
  Value step = c.b.convert(c.b.gt(x, zero), t);
  return {c.b.select(c.b.eq(x, zero), c.tensor("values", t), step)};
}

// Euclid's algorithm on all elements at once, until every remainder is zero.
Value greatest_common_divisor(Builder& b, Value x, Value y) {
  DType t = x.dtype();
  Value zero = b.constant_int(0, t);
  x = b.add(absolute(b, x), b.mul(y, zero));
  y = b.add(absolute(b, y), b.mul(x, zero));
  auto unfinished = [&](const Values& v) -> Values {
    Value pending = b.ne(v[1], b.constant_int(0, t));
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < pending.rank(); ++d) dims.push_back(d);
    return {b.reduce(Monoid::kOr, pending, dims)};
  };
  auto step = [&](const Values& v) -> Values {
    Value done = b.eq(v[1], b.constant_int(0, t));
    Value rest = b.rem(v[0], b.select(done, b.constant_int(1, t), v[1]));
    return {b.select(done, v[0], v[1]), b.select(done, v[1], rest)};
  };
  return absolute(b, b.while_loop({x, y}, unfinished, step)[0]);
}

Value least_common_multiple(Builder& b, Value x, Value y) {
  DType t = x.dtype();
  Value divisor = greatest_common_divisor(b, x, y);
  Value zero = b.constant_int(0, t);
  Value none = b.eq(divisor, zero);
  Value multiple = absolute(b, b.mul(b.div(x, b.select(none, b.constant_int(1, t), divisor)), y));
  return b.select(none, zero, multiple);
}

// -- Three operands --------------------------------------------------------------------------------------------------------

// How PyTorch's messages call an element type: its ScalarType, or (masked_fill's) its C++ type.
std::string scalar_type_name(DType t) {
  switch (t) {
    case DType::kI8:
      return "Char";
    case DType::kI16:
      return "Short";
    case DType::kI32:
      return "Int";
    case DType::kI64:
      return "Long";
    case DType::kF16:
      return "Half";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF32:
      return "Float";
    case DType::kF64:
      return "Double";
    case DType::kC64:
      return "ComplexFloat";
    case DType::kC128:
      return "ComplexDouble";
    default:
      return stablehlo::mlir_name(t);
  }
}

Values lower_where(Call& c) {
  DType t = c.out().dtype;
  Value condition = c.tensor("condition");
  c.check(condition.dtype() == DType::kPred || condition.dtype() == DType::kU8,
          "where expected condition to be a boolean tensor, but got a tensor with dtype " +
              scalar_type_name(condition.dtype()));
  return {
      c.b.select(c.b.convert(condition, DType::kPred), c.tensor("self", t), c.tensor("other", t))};
}

std::string cpp_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "bool";
    case DType::kI8:
      return "signed char";
    case DType::kI16:
      return "short int";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long int";
    case DType::kU8:
      return "unsigned char";
    case DType::kF16:
      return "c10::Half";
    case DType::kBF16:
      return "c10::BFloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    default:
      return stablehlo::mlir_name(t);
  }
}

// PyTorch's message where the sizes of self and mask do not broadcast.
void check_broadcast(Call& c, const Value& x, const Value& y) {
  for (int64_t d = 1; d <= std::min(x.rank(), y.rank()); ++d) {
    const Size &a = x.dim(-d), &m = y.dim(-d);
    if (!a.is_static() || !m.is_static() || a == m || a == Size(1) || m == Size(1)) continue;
    c.check(false, "The size of tensor a (" + a.str() + ") must match the size of tensor b (" +
                       m.str() + ") at non-singleton dimension " +
                       std::to_string(std::max(x.rank(), y.rank()) - d));
  }
}

// Serves the in-place forms too, which have no shape rule of their own: result types are not asked for.
template <bool number>
Values lower_masked_fill(Call& c) {
  Value self = c.tensor("self");
  Value mask = c.tensor("mask");
  DType t = self.dtype();
  c.check(mask.dtype() == DType::kPred,
          "masked_fill_ only supports boolean masks, but got mask with dtype " +
              cpp_name(mask.dtype()));
  check_broadcast(c, self, mask);
  if (number) return {c.b.select(mask, c.scalar("value", t), self)};
  Value value = c.tensor("value");
  c.check(value.rank() == 0,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
              std::to_string(value.rank()) + " dimension(s).");
  return {c.b.select(mask, c.b.convert(value, t), self)};
}

template <bool number>
Values lower_lerp(Call& c) {
  DType t = opmath(c.out().dtype);
  Value weight = number ? c.scalar("weight", t) : c.tensor("weight", t);
  return {lerp(c.b, c.tensor("self", t), c.tensor("end", t), weight)};
}

Value scaled_tensor1(Call& c, DType t) {
  Value x = c.tensor("tensor1", t);
  return c.is_one("value") ? x : times(c.b, c.scalar("value", t), x);
}

Values lower_addcmul(Call& c) {
  DType t = opmath(c.out().dtype);
  return {plus(c.b, c.tensor("self", t), times(c.b, scaled_tensor1(c, t), c.tensor("tensor2", t)))};
}

Values lower_addcdiv(Call& c) {
  DType t = opmath(c.out().dtype);
  return {c.b.add(c.tensor("self", t), c.b.div(scaled_tensor1(c, t), c.tensor("tensor2", t)))};
}

// -- Complex numbers made of two real ones -----------------------------------------------------------------------------------

Values lower_complex(Call& c) {
  return {c.b.binary(Binary::kComplex, c.tensor("real"), c.tensor("imag"))};
}

Values lower_polar(Call& c) {
  Value magnitude = c.tensor("abs");
  Value angle = c.tensor("angle");
  Value real = c.b.mul(magnitude, c.b.unary(Unary::kCos, angle));
  Value imaginary = c.b.mul(magnitude, c.b.unary(Unary::kSin, angle));
  return {c.b.binary(Binary::kComplex, real, imaginary)};
}

constexpr Form kTensorNumber = Form::kOtherNumber;
constexpr Form kNumberTensor = Form::kSelfNumber;
constexpr Tolerance kExact = Tolerance::kExact;
constexpr Tolerance kFunction = Tolerance::kTranscendental;

}  // namespace

const OpRow kPointwiseRows[] = {
    {"add.Tensor", lower_add<>, "alpha=1"},
    {"add.Scalar", lower_add<kTensorNumber>, "alpha=1"},
    {"sub.Tensor", lower_sub<>, "alpha=1"},
    {"sub.Scalar", lower_sub<kTensorNumber>, "alpha=1"},
    {"rsub.Tensor", lower_rsub<>, "alpha=1", Infer::kPointwise},
    {"rsub.Scalar", lower_rsub<kTensorNumber>, "alpha=1"},
    {"mul.Tensor", arithmetic<times>},
    {"mul.Scalar", arithmetic<times, kTensorNumber>},
    {"div.Tensor", in_float<true_divide>},
    {"div.Scalar", in_float<true_divide, kTensorNumber>},
    {"div.Tensor_mode", lower_div_mode<>},
    {"div.Scalar_mode", lower_div_mode<kTensorNumber>},
    {"floor_divide", arithmetic<floor_divide>, "", Infer::kPointwise},
    {"floor_divide.Scalar", arithmetic<floor_divide, kTensorNumber>, "", Infer::kPointwise},
    {"remainder.Tensor", rounded_arithmetic<remainder>},
    {"remainder.Scalar", rounded_arithmetic<remainder, kTensorNumber>},
    {"remainder.Scalar_Tensor", rounded_arithmetic<remainder, kNumberTensor>, "",
     Infer::kPointwise},
    {"fmod.Tensor", rounded_arithmetic<modulo_c>},
    {"fmod.Scalar", rounded_arithmetic<modulo_c, kTensorNumber>},
    {"pow.Tensor_Tensor", lower_pow_tensor, "", Infer::kComposite, kFunction},
    {"pow.Tensor_Scalar", lower_pow_tensor_scalar, "exponent:small", Infer::kComposite, kFunction},
    {"pow.Scalar", lower_pow_scalar, "", Infer::kComposite, kFunction},

    {"eq.Tensor", comparison<Compare::kEq>, "", Infer::kComposite, kExact},
    {"ne.Tensor", comparison<Compare::kNe>, "", Infer::kComposite, kExact},
    {"lt.Tensor", comparison<Compare::kLt>, "", Infer::kComposite, kExact},
    {"le.Tensor", comparison<Compare::kLe>, "", Infer::kComposite, kExact},
    {"gt.Tensor", comparison<Compare::kGt>, "", Infer::kComposite, kExact},
    {"ge.Tensor", comparison<Compare::kGe>, "", Infer::kComposite, kExact},
    {"eq.Scalar", comparison<Compare::kEq, kTensorNumber>, "", Infer::kComposite, kExact},
    {"ne.Scalar", comparison<Compare::kNe, kTensorNumber>, "", Infer::kComposite, kExact},
    {"lt.Scalar", comparison<Compare::kLt, kTensorNumber>, "", Infer::kComposite, kExact},
    {"le.Scalar", comparison<Compare::kLe, kTensorNumber>, "", Infer::kComposite, kExact},
    {"gt.Scalar", comparison<Compare::kGt, kTensorNumber>, "", Infer::kComposite, kExact},
    {"ge.Scalar", comparison<Compare::kGe, kTensorNumber>, "", Infer::kComposite, kExact},

    {"maximum", in_promoted<maximum>, "", Infer::kComposite, kExact},
    {"minimum", in_promoted<minimum>, "", Infer::kComposite, kExact},
    {"fmax", in_promoted<ignoring_nan<maximum>>, "", Infer::kComposite, kExact},
    {"fmin", in_promoted<ignoring_nan<minimum>>, "", Infer::kComposite, kExact},
    {"clamp", lower_clamp, "", Infer::kComposite, kExact},
    {"clamp.Tensor", lower_clamp_tensor, "", Infer::kComposite, kExact},
    {"clamp_min", lower_clamp_min, "", Infer::kComposite, kExact},
    {"clamp_max", lower_clamp_max, "", Infer::kComposite, kExact},
    {"clamp_min.Tensor", lower_clamp_min_tensor, "", Infer::kComposite, kExact},
    {"clamp_max.Tensor", lower_clamp_max_tensor, "", Infer::kComposite, kExact},

    {"bitwise_and.Tensor", in_promoted<bits<Binary::kAnd>>, "", Infer::kComposite, kExact},
    {"bitwise_or.Tensor", in_promoted<bits<Binary::kOr>>, "", Infer::kComposite, kExact},
    {"bitwise_xor.Tensor", in_promoted<bits<Binary::kXor>>, "", Infer::kComposite, kExact},
    {"bitwise_and.Scalar", in_promoted<bits<Binary::kAnd>, kTensorNumber>, "", Infer::kComposite,
     kExact},
    {"bitwise_or.Scalar", in_promoted<bits<Binary::kOr>, kTensorNumber>, "", Infer::kComposite,
     kExact},
    {"bitwise_xor.Scalar", in_promoted<bits<Binary::kXor>, kTensorNumber>, "", Infer::kComposite,
     kExact},
    {"bitwise_and.Scalar_Tensor", in_promoted<bits<Binary::kAnd>, kNumberTensor>, "",
     Infer::kComposite, kExact},
    {"bitwise_or.Scalar_Tensor", in_promoted<bits<Binary::kOr>, kNumberTensor>, "",
     Infer::kComposite, kExact},
    {"bitwise_xor.Scalar_Tensor", in_promoted<bits<Binary::kXor>, kNumberTensor>, "",
     Infer::kComposite, kExact},
    {"bitwise_left_shift.Tensor", in_promoted<shift_left>, "", Infer::kComposite, kExact},
    {"bitwise_left_shift.Tensor_Scalar", in_promoted<shift_left, kTensorNumber>, "",
     Infer::kComposite, kExact},
    {"bitwise_left_shift.Scalar_Tensor", in_promoted<shift_left, kNumberTensor>, "",
     Infer::kComposite, kExact},
    {"bitwise_right_shift.Tensor", in_promoted<shift_right>, "", Infer::kComposite, kExact},
    {"bitwise_right_shift.Tensor_Scalar", in_promoted<shift_right, kTensorNumber>, "",
     Infer::kComposite, kExact},
    {"bitwise_right_shift.Scalar_Tensor", in_promoted<shift_right, kNumberTensor>, "",
     Infer::kComposite, kExact},
    {"__lshift__.Tensor", in_promoted<shift_left>, "", Infer::kPointwise, kExact},
    {"__lshift__.Scalar", in_promoted<shift_left, kTensorNumber>, "", Infer::kPointwise, kExact},
    {"__rshift__.Tensor", in_promoted<shift_right>, "", Infer::kPointwise, kExact},
    {"__rshift__.Scalar", in_promoted<shift_right, kTensorNumber>, "", Infer::kPointwise, kExact},
    {"logical_and", logical<Binary::kAnd>, "", Infer::kCompare, kExact},
    {"logical_or", logical<Binary::kOr>, "", Infer::kCompare, kExact},
    {"logical_xor", logical<Binary::kXor>, "", Infer::kCompare, kExact},

    {"atan2", in_float<atan2>, "", Infer::kComposite, kFunction},
    {"copysign.Tensor", in_float<copysign>, "", Infer::kComposite, kExact},
    {"copysign.Scalar", in_float<copysign, kTensorNumber>, "", Infer::kComposite, kExact},
    {"nextafter", in_promoted<nextafter>, "", Infer::kComposite, kExact},
    {"hypot", arithmetic<hypot>, "", Infer::kComposite, kFunction},
    {"logaddexp", arithmetic<logaddexp>, "", Infer::kComposite, kFunction},
    {"logaddexp2", arithmetic<logaddexp2>, "", Infer::kComposite, kFunction},
    {"xlogy.Tensor", in_float<xlogy>, "", Infer::kComposite, kFunction},
    {"xlogy.Scalar_Other", in_float<xlogy, kTensorNumber>, "", Infer::kComposite, kFunction},
    {"xlogy.Scalar_Self", in_float<xlogy, kNumberTensor>, "", Infer::kComposite, kFunction},
    {"special_xlog1py", in_float<xlog1py>, "", Infer::kComposite, kFunction},
    {"special_xlog1py.other_scalar", in_float<xlog1py, kTensorNumber>, "", Infer::kComposite,
     kFunction},
    {"special_xlog1py.self_scalar", in_float<xlog1py, kNumberTensor>, "", Infer::kComposite,
     kFunction},
    {"special_zeta", in_float<zeta>, "", Infer::kComposite, kFunction},
    {"special_zeta.other_scalar", in_float<zeta, kTensorNumber>, "", Infer::kComposite, kFunction},
    {"special_zeta.self_scalar", in_float<zeta, kNumberTensor>, "", Infer::kComposite, kFunction},
    {"heaviside", lower_heaviside, "", Infer::kComposite, kExact},
    {"gcd", in_promoted<greatest_common_divisor>, "", Infer::kComposite, kExact},
    {"lcm", in_promoted<least_common_multiple>, "", Infer::kComposite, kExact},

    {"where.self", lower_where, "", Infer::kPointwise, kExact},
    {"masked_fill.Scalar", lower_masked_fill<true>, "", Infer::kComposite, kExact},
    {"masked_fill.Tensor", lower_masked_fill<false>, "", Infer::kComposite, kExact},
    {"lerp.Scalar", lower_lerp<true>},
    {"lerp.Tensor", lower_lerp<false>},
    {"addcmul", lower_addcmul, "value=1"},
    {"addcdiv", lower_addcdiv, "value=1"},
    {"complex", lower_complex, "", Infer::kLowering, kExact},
    {"polar", lower_polar, "", Infer::kLowering, kFunction},
};
const size_t kPointwiseRowCount = std::size(kPointwiseRows);

}  // namespace torch_tpu::lowering
