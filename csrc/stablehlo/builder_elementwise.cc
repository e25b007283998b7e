// Elementwise operations: unary, binary with broadcasting, comparison, selection and conversions.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

// Groups of element types an operation takes.
enum Accepts : unsigned {
  kBool = 1,
  kSigned = 2,
  kUnsigned = 4,
  kReal = 8,
  kCplx = 16,
  kInts = kSigned | kUnsigned,
  kLogic = kBool | kInts,
  kInexact = kReal | kCplx,
  kNumbers = kInts | kInexact,
  kOrdered = kBool | kInts | kReal,
  kAny = kBool | kNumbers,
};

unsigned group_of(DType t) {
  if (t == DType::kPred) return kBool;
  if (is_signed_int(t)) return kSigned;
  if (is_unsigned_int(t)) return kUnsigned;
  return is_complex(t) ? kCplx : kReal;
}

struct OpInfo {
  const char* name;
  unsigned accepts;
};

OpInfo info(Unary op) {
  switch (op) {
    case Unary::kAbs:
      return {"stablehlo.abs", kNumbers};
    case Unary::kNegate:
      return {"stablehlo.negate", kNumbers};
    case Unary::kSign:
      return {"stablehlo.sign", kSigned | kInexact};
    case Unary::kExp:
      return {"stablehlo.exponential", kInexact};
    case Unary::kExpm1:
      return {"stablehlo.exponential_minus_one", kInexact};
    case Unary::kLog:
      return {"stablehlo.log", kInexact};
    case Unary::kLog1p:
      return {"stablehlo.log_plus_one", kInexact};
    case Unary::kSqrt:
      return {"stablehlo.sqrt", kInexact};
    case Unary::kRsqrt:
      return {"stablehlo.rsqrt", kInexact};
    case Unary::kCbrt:
      return {"stablehlo.cbrt", kReal};
    case Unary::kSin:
      return {"stablehlo.sine", kInexact};
    case Unary::kCos:
      return {"stablehlo.cosine", kInexact};
    case Unary::kTan:
      return {"stablehlo.tan", kInexact};
    case Unary::kTanh:
      return {"stablehlo.tanh", kInexact};
    case Unary::kLogistic:
      return {"stablehlo.logistic", kInexact};
    case Unary::kFloor:
      return {"stablehlo.floor", kReal};
    case Unary::kCeil:
      return {"stablehlo.ceil", kReal};
    case Unary::kRoundNearestEven:
      return {"stablehlo.round_nearest_even", kReal};
    case Unary::kRoundNearestAfz:
      return {"stablehlo.round_nearest_afz", kReal};
    case Unary::kNot:
      return {"stablehlo.not", kLogic};
    case Unary::kPopcnt:
      return {"stablehlo.popcnt", kInts};
    case Unary::kCountLeadingZeros:
      return {"stablehlo.count_leading_zeros", kInts};
    case Unary::kReal:
      return {"stablehlo.real", kInexact};
    case Unary::kImag:
      return {"stablehlo.imag", kInexact};
    case Unary::kIsFinite:
      return {"stablehlo.is_finite", kReal};
    case Unary::kErf:
      return {"chlo.erf", kReal};
    case Unary::kErfc:
      return {"chlo.erfc", kReal};
    case Unary::kErfInv:
      return {"chlo.erf_inv", kReal};
    case Unary::kLgamma:
      return {"chlo.lgamma", kReal};
    case Unary::kDigamma:
      return {"chlo.digamma", kReal};
    case Unary::kAsin:
      return {"chlo.asin", kInexact};
    case Unary::kAcos:
      return {"chlo.acos", kInexact};
    case Unary::kAtan:
      return {"chlo.atan", kInexact};
    case Unary::kSinh:
      return {"chlo.sinh", kInexact};
    case Unary::kCosh:
      return {"chlo.cosh", kInexact};
    case Unary::kAsinh:
      return {"chlo.asinh", kInexact};
    case Unary::kAcosh:
      return {"chlo.acosh", kInexact};
    case Unary::kAtanh:
      return {"chlo.atanh", kInexact};
  }
  return {"unary", 0};
}

OpInfo info(Binary op) {
  switch (op) {
    case Binary::kAdd:
      return {"stablehlo.add", kAny};
    case Binary::kSubtract:
      return {"stablehlo.subtract", kNumbers};
    case Binary::kMultiply:
      return {"stablehlo.multiply", kAny};
    case Binary::kDivide:
      return {"stablehlo.divide", kNumbers};
    case Binary::kRemainder:
      return {"stablehlo.remainder", kInts | kReal};
    case Binary::kPower:
      return {"stablehlo.power", kNumbers};
    case Binary::kMaximum:
      return {"stablehlo.maximum", kOrdered};
    case Binary::kMinimum:
      return {"stablehlo.minimum", kOrdered};
    case Binary::kAtan2:
      return {"stablehlo.atan2", kReal};
    case Binary::kAnd:
      return {"stablehlo.and", kLogic};
    case Binary::kOr:
      return {"stablehlo.or", kLogic};
    case Binary::kXor:
      return {"stablehlo.xor", kLogic};
    case Binary::kShiftLeft:
      return {"stablehlo.shift_left", kInts};
    case Binary::kShiftRightArithmetic:
      return {"stablehlo.shift_right_arithmetic", kInts};
    case Binary::kShiftRightLogical:
      return {"stablehlo.shift_right_logical", kInts};
    case Binary::kComplex:
      return {"stablehlo.complex", kReal};
    case Binary::kNextAfter:
      return {"chlo.next_after", kReal};
    case Binary::kPolygamma:
      return {"chlo.polygamma", kReal};
    case Binary::kZeta:
      return {"chlo.zeta", kReal};
  }
  return {"binary", 0};
}

const char* direction(Compare op) {
  switch (op) {
    case Compare::kEq:
      return "EQ";
    case Compare::kNe:
      return "NE";
    case Compare::kLt:
      return "LT";
    case Compare::kLe:
      return "LE";
    case Compare::kGt:
      return "GT";
    case Compare::kGe:
      return "GE";
  }
  return "EQ";
}

// The dimensions that a and b have in common after broadcasting.
Dims broadcast_dims(std::string_view op, const Value& a, const Value& b) {
  const int64_t rank = std::max(a.rank(), b.rank());
  Dims result;
  result.reserve(rank);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t ia = i - (rank - a.rank());
    const int64_t ib = i - (rank - b.rank());
    if (ia < 0) {
      result.push_back(b.dims()[ib]);
    } else if (ib < 0 || a.dims()[ia] == b.dims()[ib] || b.dims()[ib] == Size(1)) {
      result.push_back(a.dims()[ia]);
    } else if (a.dims()[ia] == Size(1)) {
      result.push_back(b.dims()[ib]);
    } else {
      fail(op, "cannot broadcast " + a.type().str() + " with " + b.type().str(),
           BuildError::Cause::kBroadcast, {a.type(), b.type()});
    }
  }
  return result;
}

[[noreturn]] void not_defined(std::string_view op, const Value& x) {
  std::vector<Type> operands;
  if (x) operands.push_back(x.type());
  fail(op, "not defined for " + describe({&x, 1}), BuildError::Cause::kDtype, std::move(operands));
}

void check_same_dtype(std::string_view op, const Value& x, const Value& y) {
  if (!x || !y || x.dtype() != y.dtype()) {
    const Value both[] = {x, y};
    fail(op, "operands must have one element type, got " + describe(both),
         BuildError::Cause::kMixedDtypes);
  }
}

}  // namespace

// CHLO operations are expanded by the plugin, which does not know bounded dimensions there: they
// run on the padding too.
Value Builder::Impl::elementwise(Builder& b, std::string_view op,
                                 std::initializer_list<Value> operands, Type result) {
  if (!op.starts_with("chlo.") || all_static(result.dims))
    return emit(op, operands, std::move(result));
  std::vector<Value> padded;
  for (const Value& v : operands) padded.push_back(b.pad_to_bound(v));
  return with_dims(b, emit(op, padded, Type{result.dtype, bounds_of(result.dims)}), result.dims);
}

Value Builder::unary(Unary op, Value x) {
  const OpInfo o = info(op);
  if (!x || (o.accepts & group_of(x.dtype())) == 0) not_defined(o.name, x);
  DType result = x.dtype();
  switch (op) {
    case Unary::kAbs:
      if (is_unsigned_int(result)) return x;
      result = real_of(result);
      break;
    case Unary::kReal:
    case Unary::kImag:
      if (is_float(result)) return op == Unary::kReal ? x : zeros(x.type());
      result = real_of(result);
      break;
    case Unary::kIsFinite:
      result = DType::kPred;
      break;
    default:
      break;
  }
  return impl_->elementwise(*this, o.name, {x}, Type{result, x.dims()});
}

Value Builder::binary(Binary op, Value x, Value y) {
  const OpInfo o = info(op);
  check_same_dtype(o.name, x, y);
  if ((o.accepts & group_of(x.dtype())) == 0) not_defined(o.name, x);
  DType result = x.dtype();
  if (op == Binary::kComplex) {
    if (result != DType::kF32 && result != DType::kF64) not_defined(o.name, x);
    result = result == DType::kF32 ? DType::kC64 : DType::kC128;
  }
  if (x.dims() != y.dims()) {
    const Dims dims = broadcast_dims(o.name, x, y);
    x = broadcast_to(x, dims);
    y = broadcast_to(y, dims);
  }
  return impl_->elementwise(*this, o.name, {x, y}, Type{result, x.dims()});
}

Value Builder::compare(Compare op, Value x, Value y) {
  static constexpr const char* kName = "stablehlo.compare";
  check_same_dtype(kName, x, y);
  if (is_complex(x.dtype()) && op != Compare::kEq && op != Compare::kNe) {
    fail(kName, "complex numbers have no order: " + describe({&x, 1}));
  }
  if (x.dims() != y.dims()) {
    const Dims dims = broadcast_dims(kName, x, y);
    x = broadcast_to(x, dims);
    y = broadcast_to(y, dims);
  }
  const char* kind = is_float(x.dtype()) || is_complex(x.dtype()) ? "FLOAT"
                     : is_signed_int(x.dtype())                   ? "SIGNED"
                                                                  : "UNSIGNED";
  std::string attributes = "comparison_direction = #stablehlo<comparison_direction ";
  attributes += direction(op);
  attributes += ">, compare_type = #stablehlo<comparison_type ";
  attributes += kind;
  attributes += '>';
  return impl_->emit(kName, {x, y}, Type{DType::kPred, x.dims()}, attributes);
}

Value Builder::select(Value pred, Value on_true, Value on_false) {
  static constexpr const char* kName = "stablehlo.select";
  check_same_dtype(kName, on_true, on_false);
  if (!pred || pred.dtype() != DType::kPred)
    fail(kName, "the predicate must be i1, got " + describe({&pred, 1}));
  Dims dims = broadcast_dims(kName, on_true, on_false);
  on_true = broadcast_to(on_true, dims);
  on_false = broadcast_to(on_false, dims);
  if (pred.rank() > 0 && pred.dims() != dims) {
    dims = broadcast_dims(kName, pred, on_true);
    pred = broadcast_to(pred, dims);
    on_true = broadcast_to(on_true, dims);
    on_false = broadcast_to(on_false, dims);
  }
  return impl_->emit(kName, {pred, on_true, on_false}, on_true.type());
}

Value Builder::clamp(Value low, Value x, Value high) {
  static constexpr const char* kName = "stablehlo.clamp";
  check_same_dtype(kName, low, x);
  check_same_dtype(kName, x, high);
  if ((kOrdered & group_of(x.dtype())) == 0) not_defined(kName, x);
  if (low.rank() > 0) low = broadcast_to(low, x.dims());
  if (high.rank() > 0) high = broadcast_to(high, x.dims());
  return impl_->emit(kName, {low, x, high}, x.type());
}

Value Builder::convert(Value x, DType dtype) {
  static constexpr const char* kName = "stablehlo.convert";
  if (!x) fail(kName, "no operand");
  if (x.dtype() == dtype) return x;
  if (dtype == DType::kPred) return ne(x, constant_int(0, x.dtype()));
  return impl_->emit(kName, {x}, Type{dtype, x.dims()});
}

Value Builder::bitcast_convert(Value x, DType dtype) {
  static constexpr const char* kName = "stablehlo.bitcast_convert";
  if (!x) fail(kName, "no operand");
  const DType from = x.dtype();
  if (from == dtype) return x;
  const auto is_nibble = [](DType t) { return t == DType::kI4 || t == DType::kU4; };
  if (is_nibble(from) || is_nibble(dtype)) {
    fail(kName,
         x.type().str() + " to " + mlir_name(dtype) + ": 4-bit types cannot be reinterpreted");
  }
  // StableHLO reinterprets neither i1 nor complex numbers; they go through their bytes and their
  // parts.
  if (from == DType::kPred) return bitcast_convert(convert(x, DType::kU8), dtype);
  if (dtype == DType::kPred) {
    if (byte_size(from) != 1) x = bitcast_convert(x, DType::kU8);
    return convert(bitcast_convert(x, DType::kU8), DType::kPred);
  }
  if (is_complex(from) && is_complex(dtype)) {
    Value words = bitcast_convert(x, DType::kU32);
    Dims dims = x.dims();
    if (byte_size(from) > byte_size(dtype)) {
      dims.insert(dims.end(), {Size(2), Size(2)});
    } else {
      if (dims.empty() || dims.back() != Size(2)) {
        fail(kName, x.type().str() + " to " + mlir_name(dtype) +
                        ": the last dimension must hold one element");
      }
      dims.back() = Size(4);
    }
    return bitcast_convert(reshape(words, dims), dtype);
  }
  if (is_complex(from)) {
    Dims parted = x.dims();
    parted.emplace_back(1);
    const Value parts = concatenate(
        {reshape(unary(Unary::kReal, x), parted), reshape(unary(Unary::kImag, x), parted)},
        x.rank());
    const Value result = bitcast_convert(parts, dtype);
    if (result.rank() <= x.rank() + 1) return result;
    Dims merged = x.dims();
    merged.emplace_back(byte_size(from) / byte_size(dtype));
    return reshape(result, merged);
  }
  if (is_complex(dtype)) {
    const DType part = real_of(dtype);
    const int64_t ratio = byte_size(part) / byte_size(from);
    Value parts = x;
    if (byte_size(from) == byte_size(dtype)) {
      parts = bitcast_convert(x, part);  // adds the dimension of the two parts
    } else {
      if (x.rank() == 0 || x.dim(-1) != Size(byte_size(dtype) / byte_size(from))) {
        fail(kName, x.type().str() + " to " + mlir_name(dtype) +
                        ": the last dimension must hold one element");
      }
      if (ratio > 1) {
        Dims split = x.dims();
        split.back() = Size(2);
        split.emplace_back(ratio);
        parts = reshape(x, split);
      }
      parts = bitcast_convert(parts, part);
    }
    const int64_t last = parts.rank() - 1;
    const Dims dims(parts.dims().begin(), parts.dims().end() - 1);
    return binary(Binary::kComplex, reshape(slice_dim(parts, last, 0, 1), dims),
                  reshape(slice_dim(parts, last, 1, 2), dims));
  }
  Dims dims = x.dims();
  const int64_t from_bytes = byte_size(from);
  const int64_t to_bytes = byte_size(dtype);
  if (from_bytes > to_bytes) {
    dims.emplace_back(from_bytes / to_bytes);
  } else if (from_bytes < to_bytes) {
    if (dims.empty() || dims.back() != Size(to_bytes / from_bytes)) {
      fail(kName, x.type().str() + " to " + mlir_name(dtype) +
                      ": the last dimension must hold one element");
    }
    dims.pop_back();
  }
  return impl_->emit(kName, {x}, Type{dtype, std::move(dims)});
}

}  // namespace torch_tpu::stablehlo
