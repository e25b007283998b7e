// Operators on lists of tensors (`_foreach_*`): each is one node, its elements are lowered one after another.
#include <cmath>
#include <iterator>
#include <map>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::is_complex;
using stablehlo::is_float;
using stablehlo::opmath;
using stablehlo::real_of;

using UnaryFn = Value (*)(Builder& b, Value x);
using BinaryFn = Value (*)(Builder& b, Value x, Value y);

Value convert(Call& c, Value x, DType t) { return c.b.convert(x, t); }

// -- One list ----------------------------------------------------------------------------------------------------------

template <UnaryFn function>
Values in_own_type(Call& c) {
  Values results;
  for (const Value& x : c.tensors("self")) results.push_back(function(c.b, x));
  return results;
}

template <UnaryFn function>
Values in_float(Call& c) {
  Values results;
  for (const Value& x : c.tensors("self")) {
    DType t = compute_type(c.out(results.size()).dtype);
    results.push_back(function(c.b, convert(c, x, t)));
  }
  return results;
}

template <Unary op>
Value unary(Builder& b, Value x) {
  return b.unary(op, x);
}

template <UnaryFn function>
Value rounding(Builder& b, Value x) {
  return is_float(x.dtype()) ? function(b, x) : x;
}

Value itself(Builder&, Value x) { return x; }
Value zeros_of(Builder& b, Value x) { return b.zeros(x.type()); }

std::vector<int64_t> all_dims(const Value& x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}

Value largest(Builder& b, Value x) {
  return b.reduce(x.dtype() == DType::kPred ? Monoid::kOr : Monoid::kMaximum, x, all_dims(x));
}

Values lower_max(Call& c) {
  for (const Value& x : c.tensors("self")) {
    bool empty = x.numel().is_static() && x.numel().fixed() == 0;
    c.check(!empty,
            "max(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument.");
  }
  return in_own_type<largest>(c);
}

// sum(|x| ** ord), or the extreme of |x| for infinite orders.
Value power_sum(Builder& b, Value x, double ord) {
  Value size = absolute(b, x);
  if (std::isinf(ord))
    return b.reduce(ord > 0 ? Monoid::kMaximum : Monoid::kMinimum, size, all_dims(x));
  if (ord == 0.0) size = b.convert(b.ne(size, b.like(size, 0.0)), size.dtype());
  if (ord == 2.0) size = b.mul(size, size);
  if (ord != 0.0 && ord != 1.0 && ord != 2.0) size = b.pow(size, b.like(size, ord));
  return b.reduce(Monoid::kAdd, size, all_dims(x));
}

template <bool root>
Values lower_norm(Call& c) {
  Builder& b = c.b;
  double ord = c.number("ord");
  Values results;
  for (const Value& x : c.tensors("self")) {
    DType wanted = c.dtype("dtype").value_or(x.dtype());
    Value norm = power_sum(b, convert(c, x, opmath(wanted)), ord);
    bool finite_order = !std::isinf(ord) && ord != 0.0 && ord != 1.0;
    if (root && finite_order)
      norm = ord == 2.0 ? b.sqrt(norm) : b.pow(norm, b.like(norm, 1.0 / ord));
    results.push_back(b.convert(norm, real_of(wanted)));
  }
  return results;
}

Values lower_copy(Call& c) {
  Values self = c.tensors("self"), source = c.tensors("src"), results;
  c.check(self.size() == source.size(), "Tensor lists must have the same number of tensors, got " +
                                            std::to_string(self.size()) + " and " +
                                            std::to_string(source.size()));
  for (size_t i = 0; i < self.size(); ++i) {
    Value value = convert_like_torch(c.b, source[i], self[i].dtype());
    results.push_back(c.b.broadcast_to(value, self[i].dims()));
  }
  return results;
}

// -- A list and a second operand ------------------------------------------------------------------------------------------

// The second operand of each element: a list's tensor, one tensor, one number, or a list's number.
enum class Form { kList, kTensor, kScalar, kScalarList };

class Second {
 public:
  Second(Call& c, Form form, const char* name) : c_(c), form_(form), name_(name) {
    if (form == Form::kList) list_ = c.tensors(name);
  }

  Value at(size_t i, DType t) {
    switch (form_) {
      case Form::kList:
        return c_.b.convert(list_.at(i), t);
      case Form::kTensor:
        return c_.tensor(name_, t);
      case Form::kScalar:
        return c_.scalar(name_, t);
      default:
        break;
    }
    auto [found, fresh] = numbers_.try_emplace(t);
    if (fresh) found->second = c_.scalars(name_, t);
    return found->second.at(i);
  }

 private:
  Call& c_;
  Form form_;
  const char* name_;
  Values list_;
  std::map<DType, Values> numbers_;
};

constexpr const char* operand_name(Form form) {
  switch (form) {
    case Form::kScalar:
      return "scalar";
    case Form::kScalarList:
      return "scalars";
    default:
      return "other";
  }
}

// `exact`: in the result's own type (maxima); else in f32 where that is a short float.
template <BinaryFn function, Form form, bool exact = false>
Values binary(Call& c) {
  Values results;
  Second second(c, form, operand_name(form));
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType out = c.out(i).dtype;
    DType t = exact ? out : opmath(out);
    results.push_back(function(c.b, convert(c, x, t), second.at(i, t)));
  }
  return results;
}

Value subtract(Builder& b, Value x, Value y) { return b.sub(x, y); }

template <BinaryFn function, Form form>
Values binary_alpha(Call& c) {
  Values results;
  Second second(c, form, operand_name(form));
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType t = opmath(c.out(i).dtype);
    Value y = second.at(i, t);
    if (!c.is_one("alpha")) y = times(c.b, c.scalar("alpha", t), y);
    results.push_back(function(c.b, convert(c, x, t), y));
  }
  return results;
}

template <Form form>
Values divide(Call& c) {
  Values results;
  Second second(c, form, operand_name(form));
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType t = compute_type(c.out(i).dtype);
    results.push_back(c.b.div(convert(c, x, t), second.at(i, t)));
  }
  return results;
}

template <Form form>
Values lower_pow(Call& c) {
  Values results;
  Second second(c, form, "exponent");
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType t = opmath(c.out(i).dtype);
    Value base = convert(c, x, t);
    bool known = form == Form::kScalar && c.is_static("exponent");
    results.push_back(known ? power_static(c.b, base, c.number("exponent"))
                            : power(c.b, base, second.at(i, t)));
  }
  return results;
}

Values lower_pow_scalar_base(Call& c) {
  Values results;
  for (const Value& exponent : c.tensors("exponent")) {
    DType t = opmath(c.out(results.size()).dtype);
    results.push_back(power(c.b, c.scalar("self", t), convert(c, exponent, t)));
  }
  return results;
}

// -- Three lists -----------------------------------------------------------------------------------------------------------

template <Form form>
Values lower_lerp(Call& c) {
  Values results, end = c.tensors("tensors1");
  Second weight(c, form, form == Form::kList ? "weights" : "weight");
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType t = opmath(c.out(i).dtype);
    results.push_back(lerp(c.b, convert(c, x, t), convert(c, end.at(i), t), weight.at(i, t)));
  }
  return results;
}

// The i-th number of a one-dimensional tensor.
Value element(Call& c, Value x, size_t i, DType t) {
  if (x.rank() == 0) return c.b.convert(x, t);
  int64_t at = static_cast<int64_t>(i);
  return c.b.convert(c.b.reshape(c.b.slice(x, {at}, {at + 1}), {}), t);
}

// self + value * tensor1 * tensor2, or with a quotient.
template <Form form, bool quotient>
Values lower_addc(Call& c) {
  Builder& b = c.b;
  Values results, first = c.tensors("tensor1"), second = c.tensors("tensor2");
  Second value(c, form, form == Form::kScalar ? "value" : "scalars");
  for (const Value& x : c.tensors("self")) {
    size_t i = results.size();
    DType t = opmath(c.out(i).dtype);
    Value y = convert(c, first.at(i), t);
    bool plain = form == Form::kScalar && c.is_one("value");
    if (!plain)
      y = b.mul(form == Form::kTensor ? element(c, c.tensor("scalars"), i, t) : value.at(i, t), y);
    Value z = convert(c, second.at(i), t);
    results.push_back(b.add(convert(c, x, t), quotient ? b.div(y, z) : b.mul(y, z)));
  }
  return results;
}

// -- Mixed precision ---------------------------------------------------------------------------------------------------------

// Unscales the gradients and raises found_inf to 1 where one of them is not finite.
Values lower_unscale(Call& c) {
  Builder& b = c.b;
  Value inverse = c.tensor("inv_scale", DType::kF32);
  Value found = c.tensor("found_inf");
  DType found_type = found.dtype();
  Value any = b.constant_bool(false);
  Values results;
  for (const Value& x : c.tensors("self")) {
    any = b.logical_or(any, b.reduce(Monoid::kOr, b.logical_not(is_finite(b, x)), all_dims(x)));
    DType t = opmath(x.dtype());
    Value scaled = b.mul(b.convert(x, t), b.reshape(b.convert(inverse, t), {}));
    results.push_back(b.convert(scaled, x.dtype()));
  }
  results.push_back(b.select(any, b.constant(1.0, found_type), found));
  return results;
}

Values lower_update_scale(Call& c) {
  Builder& b = c.b;
  Value scale = c.tensor("self");
  Value tracker = c.tensor("growth_tracker");
  Value zero = b.constant_int(0, tracker.dtype());
  Value infinite = b.reshape(b.convert(c.tensor("found_inf"), DType::kPred), {});
  Value successes = b.add(tracker, b.constant_int(1, tracker.dtype()));
  Value due = b.eq(successes, b.constant_int(c.integer("growth_interval"), tracker.dtype()));
  Value grown = b.mul(scale, c.scalar("scale_growth_factor", scale.dtype()));
  Value backed_off = b.mul(scale, c.scalar("scale_backoff_factor", scale.dtype()));
  Value grow = b.logical_and(b.reshape(due, {}), b.reshape(is_finite(b, grown), {}));
  Value next_scale = b.select(infinite, backed_off, b.select(grow, grown, scale));
  Value next_tracker = b.select(b.logical_or(infinite, b.reshape(due, {})), zero, successes);
  return {next_scale, next_tracker};
}

constexpr Infer kComposite = Infer::kComposite;
constexpr Tolerance kExact = Tolerance::kExact;
constexpr Tolerance kFunction = Tolerance::kTranscendental;
constexpr Tolerance kReduction = Tolerance::kReduction;

}  // namespace

const OpRow kForeachRows[] = {
    {"_foreach_add.List", binary_alpha<plus, Form::kList>, "alpha=1"},
    {"_foreach_add.Tensor", binary_alpha<plus, Form::kTensor>, "alpha=1"},
    {"_foreach_add.Scalar", binary<plus, Form::kScalar>},
    {"_foreach_add.ScalarList", binary<plus, Form::kScalarList>},
    {"_foreach_sub.List", binary_alpha<subtract, Form::kList>, "alpha=1"},
    {"_foreach_sub.Scalar", binary<subtract, Form::kScalar>},
    {"_foreach_sub.ScalarList", binary<subtract, Form::kScalarList>},
    {"_foreach_mul.List", binary<times, Form::kList>},
    {"_foreach_mul.Tensor", binary<times, Form::kTensor>},
    {"_foreach_mul.Scalar", binary<times, Form::kScalar>},
    {"_foreach_mul.ScalarList", binary<times, Form::kScalarList>},
    {"_foreach_div.List", divide<Form::kList>},
    {"_foreach_div.Tensor", divide<Form::kTensor>},
    {"_foreach_div.Scalar", divide<Form::kScalar>},
    {"_foreach_div.ScalarList", divide<Form::kScalarList>},
    {"_foreach_maximum.List", binary<maximum, Form::kList, true>, "", kComposite, kExact},
    {"_foreach_maximum.Scalar", binary<maximum, Form::kScalar, true>, "", kComposite, kExact},
    {"_foreach_maximum.ScalarList", binary<maximum, Form::kScalarList, true>, "", kComposite,
     kExact},
    {"_foreach_minimum.List", binary<minimum, Form::kList, true>, "", kComposite, kExact},
    {"_foreach_minimum.Scalar", binary<minimum, Form::kScalar, true>, "", kComposite, kExact},
    {"_foreach_minimum.ScalarList", binary<minimum, Form::kScalarList, true>, "", kComposite,
     kExact},
    {"_foreach_clamp_min.List", binary<maximum, Form::kList, true>, "", kComposite, kExact},
    {"_foreach_clamp_min.Scalar", binary<maximum, Form::kScalar, true>, "", kComposite, kExact},
    {"_foreach_clamp_min.ScalarList", binary<maximum, Form::kScalarList, true>, "", kComposite,
     kExact},
    {"_foreach_clamp_max.List", binary<minimum, Form::kList, true>, "", kComposite, kExact},
    {"_foreach_clamp_max.Scalar", binary<minimum, Form::kScalar, true>, "", kComposite, kExact},
    {"_foreach_clamp_max.ScalarList", binary<minimum, Form::kScalarList, true>, "", kComposite,
     kExact},
    {"_foreach_pow.List", lower_pow<Form::kList>, "", kComposite, kFunction},
    {"_foreach_pow.Scalar", lower_pow<Form::kScalar>, "exponent:small", kComposite, kFunction},
    {"_foreach_pow.ScalarList", lower_pow<Form::kScalarList>, "", kComposite, kFunction},
    {"_foreach_pow.ScalarAndTensor", lower_pow_scalar_base, "", kComposite, kFunction},
    {"_foreach_lerp.List", lower_lerp<Form::kList>},
    {"_foreach_lerp.Scalar", lower_lerp<Form::kScalar>},
    {"_foreach_lerp.ScalarList", lower_lerp<Form::kScalarList>},
    {"_foreach_addcmul.Scalar", lower_addc<Form::kScalar, false>, "value=1"},
    {"_foreach_addcmul.ScalarList", lower_addc<Form::kScalarList, false>},
    {"_foreach_addcmul.Tensor", lower_addc<Form::kTensor, false>},
    {"_foreach_addcdiv.Scalar", lower_addc<Form::kScalar, true>, "value=1"},
    {"_foreach_addcdiv.ScalarList", lower_addc<Form::kScalarList, true>},
    {"_foreach_addcdiv.Tensor", lower_addc<Form::kTensor, true>},

    {"_foreach_abs", in_own_type<absolute>, "", Infer::kLowering, kExact},
    {"_foreach_neg", in_own_type<negate>, "", kComposite, kExact},
    {"_foreach_sign", in_own_type<sign>, "", kComposite, kExact},
    {"_foreach_floor", in_own_type<rounding<unary<Unary::kFloor>>>, "", kComposite, kExact},
    {"_foreach_ceil", in_own_type<rounding<unary<Unary::kCeil>>>, "", kComposite, kExact},
    {"_foreach_round", in_own_type<rounding<unary<Unary::kRoundNearestEven>>>, "", kComposite,
     kExact},
    {"_foreach_trunc", in_own_type<rounding<trunc>>, "", kComposite, kExact},
    {"_foreach_frac", in_own_type<rounding<frac>>},
    {"_foreach_reciprocal", in_float<reciprocal>},
    {"_foreach_sqrt", in_float<unary<Unary::kSqrt>>},
    {"_foreach_rsqrt", in_float<unary<Unary::kRsqrt>>},
    {"_foreach_exp", in_float<unary<Unary::kExp>>, "", kComposite, kFunction},
    {"_foreach_expm1", in_float<unary<Unary::kExpm1>>, "", kComposite, kFunction},
    {"_foreach_log", in_float<unary<Unary::kLog>>, "", kComposite, kFunction},
    {"_foreach_log1p", in_float<unary<Unary::kLog1p>>, "", kComposite, kFunction},
    {"_foreach_log2", in_float<log2>, "", kComposite, kFunction},
    {"_foreach_log10", in_float<log10>, "", kComposite, kFunction},
    {"_foreach_sin", in_float<unary<Unary::kSin>>, "", kComposite, kFunction},
    {"_foreach_cos", in_float<unary<Unary::kCos>>, "", kComposite, kFunction},
    {"_foreach_tan", in_float<unary<Unary::kTan>>, "", kComposite, kFunction},
    {"_foreach_asin", in_float<unary<Unary::kAsin>>, "", kComposite, kFunction},
    {"_foreach_acos", in_float<unary<Unary::kAcos>>, "", kComposite, kFunction},
    {"_foreach_atan", in_float<unary<Unary::kAtan>>, "", kComposite, kFunction},
    {"_foreach_sinh", in_float<unary<Unary::kSinh>>, "", kComposite, kFunction},
    {"_foreach_cosh", in_float<unary<Unary::kCosh>>, "", kComposite, kFunction},
    {"_foreach_tanh", in_float<unary<Unary::kTanh>>, "", kComposite, kFunction},
    {"_foreach_sigmoid", in_float<unary<Unary::kLogistic>>, "", kComposite, kFunction},
    {"_foreach_erf", in_float<unary<Unary::kErf>>, "", kComposite, kFunction},
    {"_foreach_erfc", in_float<unary<Unary::kErfc>>, "", kComposite, kFunction},
    {"_foreach_lgamma", in_float<unary<Unary::kLgamma>>, "", kComposite, kFunction},

    {"_foreach_norm.Scalar", lower_norm<true>, "ord", kComposite, kReduction},
    {"_foreach_powsum.Scalar", lower_norm<false>, "ord", Infer::kLowering, kReduction},
    {"_foreach_max", lower_max, "", Infer::kLowering, kExact},
    {"_foreach_copy", lower_copy, "", Infer::kLowering, kExact},
    {"_foreach_clone", in_own_type<itself>, "", Infer::kLowering, kExact},
    {"_foreach_zero", in_own_type<zeros_of>, "", Infer::kLowering, kExact},
    {"_amp_foreach_non_finite_check_and_unscale", lower_unscale, "", Infer::kLowering},
    {"_amp_update_scale", lower_update_scale, "", Infer::kLowering},
};
const size_t kForeachRowCount = std::size(kForeachRows);

}  // namespace torch_tpu::lowering
