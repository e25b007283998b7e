// Random numbers. Every draw comes from Call::random_bits, so it is the same in all modes; PyTorch's CPU generator gives
// other numbers of the same distribution.
#include <iterator>
#include <limits>
#include <numbers>
#include <string>

#include "lowering/families.h"
#include "lowering/pointwise_math.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::is_complex;
using stablehlo::is_float;
using stablehlo::is_int;
using stablehlo::is_unsigned_int;
using stablehlo::opmath;
using stablehlo::real_of;

// The type a distribution is computed in for results of type `out`.
DType draw_type(DType out) { return out == DType::kF64 ? DType::kF64 : DType::kF32; }

void check_real_float(Call& c, DType t, const std::string& message) {
  c.check(is_float(t), message, ArgumentError::Kind::kNotImplemented);
}

std::string scalar_type_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "Bool";
    case DType::kU8:
      return "Byte";
    case DType::kI8:
      return "Char";
    case DType::kI16:
      return "Short";
    case DType::kI32:
      return "Int";
    case DType::kI64:
      return "Long";
    case DType::kC64:
      return "ComplexFloat";
    case DType::kC128:
      return "ComplexDouble";
    default:
      return stablehlo::mlir_name(t);
  }
}

// -- Uniform and normal -----------------------------------------------------------------------------------------------

// [low, high) in dtype: a sum that rounds up to high becomes low, as on CUDA.
Value uniform_between(Call& c, const Dims& dims, DType dtype, const char* low_name,
                      const char* high_name, int stream) {
  Builder& b = c.b;
  DType t = opmath(dtype);
  Value low = c.scalar(low_name, t);
  Value high = c.scalar(high_name, t);
  Value u = b.convert(c.random_uniform(dims, dtype, stream), t);
  Value x = b.convert(b.add(low, b.mul(u, b.sub(high, low))), dtype);
  Value from = b.convert(low, dtype);
  return b.select(b.ge(x, b.convert(high, dtype)), from, x);
}

Values lower_uniform(Call& c) {
  Value self = c.tensor("self");
  DType t = self.dtype();
  if (is_complex(t)) {
    Value real = uniform_between(c, self.dims(), real_of(t), "from", "to", 0);
    Value imaginary = uniform_between(c, self.dims(), real_of(t), "from", "to", 1);
    return {c.b.binary(Binary::kComplex, real, imaginary)};
  }
  check_real_float(c, t,
                   "\"check_uniform_bounds\" not implemented for '" + scalar_type_name(t) + "'");
  return {uniform_between(c, self.dims(), t, "from", "to", 0)};
}

Values lower_rand(Call& c) {
  Type out = c.out();
  if (is_complex(out.dtype)) {
    DType part = real_of(out.dtype);
    return {c.b.binary(Binary::kComplex, c.random_uniform(out.dims, part, 0),
                       c.random_uniform(out.dims, part, 1))};
  }
  check_real_float(
      c, out.dtype,
      "\"check_uniform_bounds\" not implemented for '" + scalar_type_name(out.dtype) + "'");
  return {c.random_uniform(out.dims, out.dtype)};
}

// Standard normal numbers by Box and Muller; complex ones have independent parts of variance one half.
Value standard_normal(Call& c, const Dims& dims, DType dtype) {
  Builder& b = c.b;
  DType t = draw_type(real_of(dtype));
  Value u = c.random_uniform(dims, t, 0);
  Value angle = b.mul(c.random_uniform(dims, t, 1), b.constant(2 * std::numbers::pi, t));
  Value exponent = b.neg(b.unary(Unary::kLog1p, b.neg(u)));
  Value cosine = b.unary(Unary::kCos, angle);
  if (!is_complex(dtype)) return b.mul(b.sqrt(b.mul(b.like(u, 2.0), exponent)), cosine);
  Value radius = b.sqrt(exponent);
  return b.binary(Binary::kComplex, b.mul(radius, cosine),
                  b.mul(radius, b.unary(Unary::kSin, angle)));
}

void check_normal(Call& c, DType t) {
  c.check(is_float(t) || is_complex(t),
          "\"normal_kernel_cpu\" not implemented for '" + scalar_type_name(t) + "'",
          ArgumentError::Kind::kNotImplemented);
}

Value normal_with(Call& c, const Dims& dims, DType dtype, Value mean, Value std) {
  check_normal(c, dtype);
  Value z = standard_normal(c, dims, dtype);
  return c.b.add(c.b.convert(mean, z.dtype()), c.b.mul(c.b.convert(std, z.dtype()), z));
}

Values lower_randn(Call& c) {
  check_normal(c, c.out().dtype);
  return {standard_normal(c, c.out().dims, c.out().dtype)};
}

// `self` gives the shape; mean and std are numbers.
Values lower_normal(Call& c) {
  Value self = c.tensor("self");
  DType t = draw_type(real_of(self.dtype()));
  return {normal_with(c, self.dims(), self.dtype(), c.scalar("mean", t), c.scalar("std", t))};
}

template <bool mean_is_number, bool std_is_number>
Values lower_normal_of(Call& c) {
  DType t = draw_type(real_of(c.out().dtype));
  Value mean = mean_is_number ? c.scalar("mean", t) : c.tensor("mean");
  Value std = std_is_number ? c.scalar("std", t) : c.tensor("std", t);
  if (c.checks_values() && !std_is_number) {
    c.check_values(c.b.ge(std, c.b.constant(0, t)), {},
                   "normal expects all elements of std >= 0.0");
  }
  return {normal_with(c, c.out().dims, c.out().dtype, mean, std)};
}

Values lower_log_normal(Call& c) {
  DType t = c.tensor("self").dtype();
  check_real_float(c, t, "\"log_normal_cpu\" not implemented for '" + scalar_type_name(t) + "'");
  return {c.b.exp(lower_normal(c)[0])};
}

// -- Other continuous distributions -----------------------------------------------------------------------------------

// Standard exponential numbers, never zero.
Value standard_exponential(Call& c, const Dims& dims, DType t, int stream = 0) {
  Builder& b = c.b;
  double half_epsilon = t == DType::kF64 ? 0x1p-53 : 0x1p-24;
  Value x = b.neg(b.unary(Unary::kLog1p, b.neg(c.random_uniform(dims, t, stream))));
  return b.max(x, b.constant(half_epsilon, t));
}

Values lower_exponential(Call& c) {
  Value self = c.tensor("self");
  DType own = self.dtype();
  c.check(is_float(own),
          "Exponential distribution is a continuous probability distribution. "
          "dtype must be a floating point but you specified " +
              scalar_type_name(own));
  DType t = draw_type(own);
  return {c.b.div(standard_exponential(c, self.dims(), t), c.scalar("lambd", t))};
}

Values lower_cauchy(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  DType own = self.dtype();
  c.check(is_float(own),
          "Cauchy distribution is a continuous probability distribution. "
          "dtype must be a floating point but you specified " +
              scalar_type_name(own));
  DType t = draw_type(own);
  Value u = c.random_uniform(self.dims(), t);
  Value angle = b.mul(b.sub(u, b.constant(0.5, t)), b.constant(std::numbers::pi, t));
  return {b.add(c.scalar("median", t), b.mul(c.scalar("sigma", t), b.unary(Unary::kTan, angle)))};
}

// -- Discrete distributions -----------------------------------------------------------------------------------------------

Value below(Call& c, const Dims& dims, Value probability) {
  DType t = draw_type(probability.dtype());
  return c.b.lt(c.random_uniform(dims, t), c.b.convert(probability, t));
}

Values lower_bernoulli_p(Call& c) {
  Value self = c.tensor("self");
  return {c.b.convert(below(c, self.dims(), c.scalar("p", DType::kF32)), self.dtype())};
}

void check_probability(Call& c, Value p) {
  if (!c.checks_values()) return;
  Builder& b = c.b;
  c.check_values(b.logical_and(b.ge(p, b.like(p, 0)), b.le(p, b.like(p, 1))), {},
                 "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                 "message be improved?  If so, please report an enhancement request to PyTorch.)");
}

Values lower_bernoulli_tensor(Call& c) {
  Value self = c.tensor("self");
  Value p = c.tensor("p");
  check_real_float(
      c, p.dtype(),
      "\"bernoulli_tensor_cpu_p_\" not implemented for '" + scalar_type_name(p.dtype()) + "'");
  check_probability(c, p);
  return {c.b.convert(below(c, self.dims(), p), self.dtype())};
}

Values lower_bernoulli(Call& c) {
  Value p = c.tensor("self");
  check_real_float(
      c, p.dtype(),
      "\"bernoulli_tensor_cpu_p_\" not implemented for '" + scalar_type_name(p.dtype()) + "'");
  check_probability(c, p);
  return {c.b.convert(below(c, p.dims(), p), p.dtype())};
}

// The number of trials up to the first success: ceil(log(u) / log(1 - p)).
Values lower_geometric(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  DType own = self.dtype();
  c.check(own != DType::kPred && !is_complex(own),
          "\"geometric_cpu\" not implemented for '" + scalar_type_name(own) + "'",
          ArgumentError::Kind::kNotImplemented);
  DType t = draw_type(own);
  Value failure = b.unary(Unary::kLog1p, b.neg(c.scalar("p", t)));
  Value trials = b.div(b.neg(standard_exponential(c, self.dims(), t)), failure);
  return {b.convert(b.max(b.unary(Unary::kCeil, trials), b.constant(1.0, t)), own)};
}

// Bits modulo `range` (0: all of them) from `base` up, as i64.
Value integers_from(Call& c, const Dims& dims, int64_t base, uint64_t range) {
  Builder& b = c.b;
  bool narrow = range != 0 && range <= (uint64_t{1} << 32);
  DType word = narrow ? DType::kU32 : DType::kU64;
  Value bits = c.random_bits(dims, word);
  bool power_of_two = (range & (range - 1)) == 0;
  bool everything = range == 0 || (narrow && range == (uint64_t{1} << 32));
  if (!everything && power_of_two) {
    bits = b.logical_and(bits, b.constant_int(static_cast<int64_t>(range - 1), word));
  } else if (!everything) {
    bits = b.rem(bits, b.constant_int(static_cast<int64_t>(range), word));
  }
  return b.add(b.convert(bits, DType::kI64), b.constant_int(base, DType::kI64));
}

// Largest integer that random_() draws for a type, and the type's smallest.
int64_t largest_integer(DType t) {
  switch (t) {
    case DType::kPred:
      return 1;
    case DType::kI8:
      return std::numeric_limits<int8_t>::max();
    case DType::kI16:
      return std::numeric_limits<int16_t>::max();
    case DType::kI32:
      return std::numeric_limits<int32_t>::max();
    case DType::kU8:
      return std::numeric_limits<uint8_t>::max();
    case DType::kU16:
      return std::numeric_limits<uint16_t>::max();
    case DType::kU32:
      return std::numeric_limits<uint32_t>::max();
    case DType::kF16:
      return int64_t{1} << 11;
    case DType::kBF16:
      return int64_t{1} << 8;
    case DType::kF32:
      return int64_t{1} << 24;
    case DType::kF64:
      return int64_t{1} << 53;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

int64_t smallest_integer(DType t) {
  if (t == DType::kPred || is_unsigned_int(t)) return 0;
  if (is_int(t)) return -largest_integer(t) - 1;
  return std::numeric_limits<int64_t>::min();
}

std::string cpp_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "bool";
    case DType::kI8:
      return "signed char";
    case DType::kI16:
      return "short";
    case DType::kI32:
      return "int";
    case DType::kU8:
      return "unsigned char";
    default:
      return "long";
  }
}

// [from, to), with random_'s checks.
Values integers_between(Call& c, const Dims& dims, DType dtype, int64_t from, int64_t to) {
  c.check(from < to, "random_ expects 'from' to be less than 'to', but got from=" +
                         std::to_string(from) + " >= to=" + std::to_string(to));
  if (!is_float(dtype)) {
    auto fits = [&](int64_t x) {
      return x >= smallest_integer(dtype) && x <= largest_integer(dtype);
    };
    c.check(fits(from), "from is out of bounds for " + cpp_name(dtype));
    c.check(fits(to - 1), "to - 1 is out of bounds for " + cpp_name(dtype));
  }
  uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  return {c.b.convert(integers_from(c, dims, from, range), dtype)};
}

Values lower_random(Call& c) {
  Value self = c.tensor("self");
  uint64_t range = static_cast<uint64_t>(largest_integer(self.dtype())) + 1;
  return {c.b.convert(integers_from(c, self.dims(), 0, range), self.dtype())};
}

Values lower_random_to(Call& c) {
  Value self = c.tensor("self");
  return integers_between(c, self.dims(), self.dtype(), 0, c.integer("to"));
}

// Without `to`, up to the largest integer of the type, that one included.
Values lower_random_from(Call& c) {
  Value self = c.tensor("self");
  int64_t from = c.integer("from");
  if (c.has("to")) return integers_between(c, self.dims(), self.dtype(), from, c.integer("to"));
  uint64_t range =
      static_cast<uint64_t>(largest_integer(self.dtype())) - static_cast<uint64_t>(from) + 1;
  return {c.b.convert(integers_from(c, self.dims(), from, range), self.dtype())};
}

Values lower_randint(Call& c) {
  return integers_between(c, c.out().dims, c.out().dtype, 0, c.integer("high"));
}

Values lower_randint_low(Call& c) {
  return integers_between(c, c.out().dims, c.out().dtype, c.integer("low"), c.integer("high"));
}

// A permutation of 0 .. n-1: the numbers sorted by 64 random bits each.
Values lower_randperm(Call& c) {
  Builder& b = c.b;
  int64_t n = c.integer("n");
  c.check(n >= 0, "n must be non-negative, got" + std::to_string(n));
  Value keys = c.random_bits({n}, DType::kU64);
  Value numbers =
      b.iota(n <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64, {n}, 0);
  auto less = [&](const Values& v) -> Values { return {b.lt(v[0], v[1])}; };
  Values sorted = b.sort({keys, numbers}, 0, true, less);
  return {b.convert(sorted[1], c.dtype("dtype").value_or(DType::kI64))};
}

// -- Dropout ---------------------------------------------------------------------------------------------------------------

Values lower_native_dropout(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("input");
  DType own = x.dtype();
  bool train = !c.has("train") || c.boolean("train");
  if (!train) return {x, b.constant_bool(true, x.dims())};
  c.check(is_float(own) || is_complex(own),
          "result type Float can't be cast to the desired output type " + scalar_type_name(own));
  DType t = draw_type(real_of(own));
  Value p = c.scalar("p", t);
  Value keep = b.ge(c.random_uniform(x.dims(), t), p);
  Value one = b.constant(1.0, t);
  Value scale = b.select(b.eq(p, one), b.constant(0.0, t), b.div(one, b.sub(one, p)));
  Value factor = b.mul(b.convert(keep, t), scale);
  Value wide = b.convert(x, opmath(own));
  return {b.convert(b.mul(wide, b.convert(factor, wide.dtype())), own), keep};
}

Values lower_native_dropout_backward(Call& c) {
  DType t = opmath(c.tensor("grad_output").dtype());
  Value factor = c.b.mul(c.tensor("mask", t), c.scalar("scale", t));
  return {c.b.mul(c.tensor("grad_output", t), factor)};
}

// -- Multinomial --------------------------------------------------------------------------------------------------------------

// Positions (i64) of the largest element along the last dimension.
Value argmax_last(Builder& b, Value x) {
  Value index = b.iota(DType::kI64, x.dims(), x.rank() - 1);
  auto larger = [&](const Values& v) -> Values {
    Value first_wins =
        b.logical_or(b.gt(v[0], v[2]), b.logical_and(b.eq(v[0], v[2]), b.lt(v[1], v[3])));
    return {b.select(first_wins, v[0], v[2]), b.select(first_wins, v[1], v[3])};
  };
  Values inits = {b.lowest(x.dtype()), b.constant_int(0, DType::kI64)};
  return b.reduce({x, index}, inits, {x.rank() - 1}, larger)[1];
}

// The largest p / E over exponential E is category i with probability p_i; the k largest are k draws without replacement.
Values lower_multinomial(Call& c) {
  Builder& b = c.b;
  Value p = c.tensor("self");
  int64_t samples = c.integer("num_samples");
  bool replacement = c.boolean("replacement");
  c.check(is_float(p.dtype()), "multinomial only supports floating-point dtypes for input, got: " +
                                   scalar_type_name(p.dtype()));
  c.check(p.rank() == 1 || p.rank() == 2, "prob_dist must be 1 or 2 dim");
  c.check(samples > 0, "cannot sample n_sample <= 0 samples");
  int64_t categories = p.dim(-1).fixed();
  c.check(categories <= (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  c.check(replacement || samples <= categories,
          "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  DType t = draw_type(p.dtype());
  p = b.convert(p, t);
  if (c.checks_values()) {
    const Value zero = b.constant(0, t), finite = b.lt(b.abs(p), b.highest(t));
    if (replacement && samples > 1) {
      c.check_values(b.logical_or(b.ge(p, zero), b.logical_not(finite)), {},
                     "invalid multinomial distribution (encountering probability entry < 0)");
      c.check_values(
          finite, {},
          "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    }
    c.check_values(b.logical_and(b.ge(p, zero), finite), {},
                   "probability tensor contains either `inf`, `nan` or element < 0");
    c.check_values(b.gt(b.reduce(Monoid::kAdd, p, {p.rank() - 1}), zero), {},
                   "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  if (replacement && samples > 1) {
    Dims dims = p.dims();
    dims.insert(dims.end() - 1, Size(samples));
    std::vector<int64_t> positions =
        p.rank() == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 2};
    p = b.broadcast_in_dim(p, dims, positions);
    return {argmax_last(b, b.div(p, standard_exponential(c, dims, t)))};
  }
  Value race = b.div(p, standard_exponential(c, p.dims(), t));
  if (samples > 1) return {b.convert(b.top_k(race, samples).second, DType::kI64)};
  Dims dims = p.dims();
  dims.back() = 1;
  return {b.reshape(argmax_last(b, race), dims)};
}

// -- Randomised leaky ReLU --------------------------------------------------------------------------------------------------

// Results: the output and the slopes drawn (the `noise` argument's new value).
Values lower_rrelu(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  DType own = x.dtype();
  DType t = opmath(own);
  Value wide = b.convert(x, t);
  Value low = c.scalar("lower", t), high = c.scalar("upper", t);
  Value positive = b.gt(wide, b.like(wide, 0.0));
  if (!c.boolean("training")) {
    Value slope = b.mul(b.add(low, high), b.constant(0.5, t));
    return {b.convert(b.select(positive, wide, b.mul(wide, slope)), own), c.tensor("noise")};
  }
  Value drawn =
      b.add(low, b.mul(b.convert(c.random_uniform(x.dims(), draw_type(own)), t), b.sub(high, low)));
  Value noise = b.select(positive, b.constant(1.0, t), drawn);
  return {b.convert(b.mul(wide, noise), own), b.convert(noise, c.tensor("noise").dtype())};
}

constexpr Tolerance kRandom = Tolerance::kRandom;

constexpr OpRow random_row(std::string_view name, LowerFn lower, Infer infer) {
  return {name, lower, "", infer, kRandom, "", true};
}

}  // namespace

const OpRow kRandomRows[] = {
    random_row("rand", lower_rand, Infer::kComposite),
    random_row("rand.generator", lower_rand, Infer::kComposite),
    random_row("rand_like", lower_rand, Infer::kComposite),
    random_row("rand_like.generator", lower_rand, Infer::kComposite),
    random_row("randn", lower_randn, Infer::kComposite),
    random_row("randn.generator", lower_randn, Infer::kComposite),
    random_row("randn_like", lower_randn, Infer::kComposite),
    random_row("randn_like.generator", lower_randn, Infer::kComposite),
    random_row("randint", lower_randint, Infer::kComposite),
    random_row("randint.generator", lower_randint, Infer::kComposite),
    random_row("randint.low", lower_randint_low, Infer::kComposite),
    random_row("randint.low_generator", lower_randint_low, Infer::kComposite),
    random_row("randint_like", lower_randint, Infer::kComposite),
    random_row("randint_like.generator", lower_randint, Infer::kComposite),
    random_row("randint_like.low_dtype", lower_randint_low, Infer::kComposite),
    random_row("randint_like.low_generator_dtype", lower_randint_low, Infer::kComposite),
    random_row("randperm", lower_randperm, Infer::kLowering),
    random_row("randperm.generator", lower_randperm, Infer::kLowering),
    random_row("uniform", lower_uniform, Infer::kLikeFirst),
    random_row("normal_functional", lower_normal, Infer::kLikeFirst),
    random_row("normal_", lower_normal, Infer::kLikeFirst),
    random_row("normal.float_float", lower_normal_of<true, true>, Infer::kComposite),
    random_row("normal.Tensor_float", lower_normal_of<false, true>, Infer::kPointwise),
    random_row("normal.float_Tensor", lower_normal_of<true, false>, Infer::kPointwise),
    random_row("normal.Tensor_Tensor", lower_normal_of<false, false>, Infer::kPointwise),
    random_row("log_normal", lower_log_normal, Infer::kLikeFirst),
    random_row("exponential", lower_exponential, Infer::kLikeFirst),
    random_row("cauchy", lower_cauchy, Infer::kLikeFirst),
    random_row("geometric", lower_geometric, Infer::kLikeFirst),
    random_row("bernoulli", lower_bernoulli, Infer::kLowering),
    random_row("bernoulli.p", lower_bernoulli_p, Infer::kLikeFirst),
    random_row("bernoulli.Tensor", lower_bernoulli_tensor, Infer::kLikeFirst),
    random_row("random", lower_random, Infer::kLikeFirst),
    random_row("random.to", lower_random_to, Infer::kLikeFirst),
    random_row("random.from", lower_random_from, Infer::kLikeFirst),
    random_row("multinomial", lower_multinomial, Infer::kLowering),
    random_row("native_dropout", lower_native_dropout, Infer::kLowering),
    {"native_dropout_backward", lower_native_dropout_backward, "", Infer::kLikeFirst},
    random_row("rrelu_with_noise", lower_rrelu, Infer::kLowering),
    random_row("rrelu_with_noise_", lower_rrelu, Infer::kLowering),
    random_row("rrelu_with_noise_functional", lower_rrelu, Infer::kLowering),
};
const size_t kRandomRowCount = std::size(kRandomRows);

}  // namespace torch_tpu::lowering
