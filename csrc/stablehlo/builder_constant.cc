// Constants, iota, and sizes as values.
#include <bit>
#include <cmath>
#include <limits>

#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kConstant = "stablehlo.constant";

// The bits of `value` in a float format narrower than f32, rounded to nearest even.
uint64_t narrow_bits(float value, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (exponent_bits + mantissa_bits) : 0;
  const uint64_t exponent_mask = ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  const uint64_t all_ones = exponent_mask | ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t nan = has_infinity ? exponent_mask | uint64_t{1} << (mantissa_bits - 1) : all_ones;
  const uint64_t overflow = has_infinity ? exponent_mask : all_ones;
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return sign | overflow;
  if (value == 0.0F) return sign;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = std::ilogb(value);
  const int scale = std::max(exponent, 1 - bias) - mantissa_bits;
  auto code = static_cast<uint64_t>(
      std::nearbyint(std::ldexp(std::fabs(static_cast<double>(value)), -scale)));
  if (exponent >= 1 - bias) {
    code += static_cast<uint64_t>(exponent + bias - 1)
            << mantissa_bits;  // the leading one adds the last step
  }
  return sign | std::min(code, overflow);
}

void append_hex(std::string* text, uint64_t bits, int64_t bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  text->append("0x");
  for (int64_t i = 2 * bytes - 1; i >= 0; --i) text->push_back(kDigits[bits >> (4 * i) & 15]);
}

void append_float(std::string* text, double value, DType dtype) {
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case DType::kF64:
      append_hex(text, std::isnan(value) ? 0x7FF8000000000000 : std::bit_cast<uint64_t>(value), 8);
      return;
    case DType::kF32:
      append_hex(text, std::isnan(value) ? 0x7FC00000 : std::bit_cast<uint32_t>(single), 4);
      return;
    case DType::kF16:
      append_hex(text, narrow_bits(single, 5, 10, true), 2);
      return;
    case DType::kBF16:
      append_hex(text, narrow_bits(single, 8, 7, true), 2);
      return;
    case DType::kF8E5M2:
      append_hex(text, narrow_bits(single, 5, 2, true), 1);
      return;
    case DType::kF8E4M3FN:
      append_hex(text, narrow_bits(single, 4, 3, false), 1);
      return;
    default:
      fail(kConstant, std::string("no floating-point type: ") + mlir_name(dtype));
  }
}

int bit_width(DType t) {
  return t == DType::kI4 || t == DType::kU4 ? 4 : static_cast<int>(8 * byte_size(t));
}

void append_integer(std::string* text, int64_t value, DType dtype) {
  if (dtype == DType::kPred) {
    text->append(value != 0 ? "true" : "false");
    return;
  }
  if (is_float(dtype)) {
    append_float(text, static_cast<double>(value), dtype);
    return;
  }
  if (is_complex(dtype)) {
    text->push_back('(');
    append_float(text, static_cast<double>(value), real_of(dtype));
    text->push_back(',');
    append_float(text, 0.0, real_of(dtype));
    text->push_back(')');
    return;
  }
  if (dtype == DType::kU64) {  // negative values are the two's complement of the upper half
    *text += std::to_string(static_cast<uint64_t>(value));
    return;
  }
  const int bits = bit_width(dtype);
  const int64_t max = is_unsigned_int(dtype)
                          ? (int64_t{1} << bits) - 1
                          : static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  const int64_t min = is_unsigned_int(dtype) ? 0 : -max - 1;
  if (value < min || value > max) {
    fail(kConstant, std::to_string(value) + " does not fit into " + mlir_name(dtype));
  }
  append_int(text, value);
}

void append_number(std::string* text, double value, DType dtype) {
  if (dtype == DType::kPred) {
    text->append(value != 0.0 ? "true" : "false");
  } else if (is_float(dtype)) {
    append_float(text, value, dtype);
  } else if (is_complex(dtype)) {
    text->push_back('(');
    append_float(text, value, real_of(dtype));
    text->push_back(',');
    append_float(text, 0.0, real_of(dtype));
    text->push_back(')');
  } else if (value == std::trunc(value) && value >= -0x1p63 && value < 0x1p63) {
    append_integer(text, static_cast<int64_t>(value), dtype);
  } else {
    fail(kConstant, std::to_string(value) + " is no value of " + mlir_name(dtype));
  }
}

// The text after "stablehlo.constant" of a tensor filled with one value.
template <typename T, typename Append>
std::string splat_literal(T value, const Type& type, Append append) {
  std::string text = "dense<";
  if (product(type.dims).bound() != 0) append(&text, value, type.dtype);
  text += "> : ";
  append_type(&text, type);
  return text;
}

template <typename T, typename Append>
void append_nested(std::string* text, const std::vector<T>& values, size_t* next,
                   const std::vector<int64_t>& dims, size_t level, DType dtype, Append append) {
  if (level == dims.size()) {
    append(text, values[(*next)++], dtype);
    return;
  }
  text->push_back('[');
  for (int64_t i = 0; i < dims[level]; ++i) {
    if (i > 0) text->push_back(',');
    append_nested(text, values, next, dims, level + 1, dtype, append);
  }
  text->push_back(']');
}

template <typename T, typename Append>
std::string dense_literal(const std::vector<T>& values, const Type& type, Append append) {
  const std::vector<int64_t> dims = fixed(type.dims);
  const int64_t count = product(type.dims).bound();
  if (count != static_cast<int64_t>(values.size())) {
    fail(kConstant, std::to_string(values.size()) + " values for " + type.str());
  }
  std::string text = "dense<";
  size_t next = 0;
  if (count > 0) append_nested(&text, values, &next, dims, 0, type.dtype, append);
  text += "> : ";
  append_type(&text, type);
  return text;
}

Dims as_dims(const std::vector<int64_t>& dims) { return Dims(dims.begin(), dims.end()); }

}  // namespace

Value Builder::constant(double value, DType dtype, const Dims& dims) {
  const Type type{dtype, bounds_of(dims)};
  return with_dims(*this, impl_->emit_constant(splat_literal(value, type, append_number), type),
                   dims);
}

Value Builder::constant_int(int64_t value, DType dtype, const Dims& dims) {
  const Type type{dtype, bounds_of(dims)};
  return with_dims(*this, impl_->emit_constant(splat_literal(value, type, append_integer), type),
                   dims);
}

Value Builder::constant_bool(bool value, const Dims& dims) {
  return constant_int(value ? 1 : 0, DType::kPred, dims);
}

Value Builder::zeros(const Type& type) { return constant_int(0, type.dtype, type.dims); }

Value Builder::dense(const std::vector<int64_t>& values, DType dtype,
                     const std::vector<int64_t>& dims) {
  const Type type{dtype, as_dims(dims)};
  return impl_->emit_constant(dense_literal(values, type, append_integer), type);
}

Value Builder::dense(const std::vector<double>& values, DType dtype,
                     const std::vector<int64_t>& dims) {
  const Type type{dtype, as_dims(dims)};
  return impl_->emit_constant(dense_literal(values, type, append_number), type);
}

Value Builder::iota(DType dtype, const Dims& dims, int64_t dimension) {
  const Type type{dtype, bounds_of(dims)};
  if (dimension < 0 || dimension >= type.rank() || dtype == DType::kPred) {
    fail("stablehlo.iota",
         "dimension " + std::to_string(dimension) + " of " + type.str() + " cannot be counted");
  }
  const Value x = impl_->emit("stablehlo.iota", {}, type,
                              Attributes().integer("iota_dimension", dimension).text());
  return with_dims(*this, x, dims);
}

Value Builder::lowest(DType dtype, const Dims& dims) {
  if (is_complex(dtype)) fail("lowest", "complex numbers have no order");
  if (dtype == DType::kF8E4M3FN) return constant(-448.0, dtype, dims);
  if (is_float(dtype)) return constant(-std::numeric_limits<double>::infinity(), dtype, dims);
  if (is_signed_int(dtype)) {
    return constant_int(-static_cast<int64_t>((uint64_t{1} << (bit_width(dtype) - 1)) - 1) - 1,
                        dtype, dims);
  }
  return constant_int(0, dtype, dims);
}

Value Builder::highest(DType dtype, const Dims& dims) {
  if (is_complex(dtype)) fail("highest", "complex numbers have no order");
  if (dtype == DType::kF8E4M3FN) return constant(448.0, dtype, dims);
  if (is_float(dtype)) return constant(std::numeric_limits<double>::infinity(), dtype, dims);
  if (is_signed_int(dtype)) {
    return constant_int(static_cast<int64_t>((uint64_t{1} << (bit_width(dtype) - 1)) - 1), dtype,
                        dims);
  }
  if (dtype == DType::kPred) return constant_bool(true, dims);
  if (dtype == DType::kU64) return constant_int(-1, dtype, dims);
  return constant_int((int64_t{1} << bit_width(dtype)) - 1, dtype, dims);
}

Value Builder::size(const Size& s, DType dtype) {
  if (s.is_static()) return constant_int(s.bound(), dtype);
  if (s.bound() > std::numeric_limits<int32_t>::max()) {
    fail("size", "the run-time size " + s.str() + " does not fit into 32 bits");
  }
  const auto evaluate = [this](const auto& self, const Size::Expr& e) -> Value {
    switch (e.kind) {
      case Size::Expr::Kind::kSymbol: {
        const auto it = impl_->symbols.find(static_cast<int>(e.value));
        if (it == impl_->symbols.end())
          fail("size", "symbol s" + std::to_string(e.value) + " has no value");
        return it->second;
      }
      case Size::Expr::Kind::kConstant:
        return constant_int(e.value, DType::kI32);
      case Size::Expr::Kind::kAdd:
        return add(self(self, *e.lhs), self(self, *e.rhs));
      case Size::Expr::Kind::kSub:
        return sub(self(self, *e.lhs), self(self, *e.rhs));
      case Size::Expr::Kind::kMul:
        return mul(self(self, *e.lhs), self(self, *e.rhs));
      case Size::Expr::Kind::kFloorDiv:
        return div(self(self, *e.lhs), self(self, *e.rhs));
    }
    fail("size", "an unknown expression");
  };
  const std::string key = s.str();
  auto& known = impl_->scopes.back().sizes;
  if (const auto it = known.find(key); it != known.end()) return convert(it->second, dtype);
  const Value value = evaluate(evaluate, *s.expr());
  impl_->scopes.back().sizes.emplace(key, value);
  return convert(value, dtype);
}

}  // namespace torch_tpu::stablehlo
