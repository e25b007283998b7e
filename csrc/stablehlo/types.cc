// Properties of element types, and the text of tensor types.
#include "stablehlo/types.h"

#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {

const char* mlir_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "i1";
    case DType::kI8:
      return "i8";
    case DType::kI16:
      return "i16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "ui8";
    case DType::kU16:
      return "ui16";
    case DType::kU32:
      return "ui32";
    case DType::kU64:
      return "ui64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kC64:
      return "complex<f32>";
    case DType::kC128:
      return "complex<f64>";
    case DType::kF8E4M3FN:
      return "f8E4M3FN";
    case DType::kF8E5M2:
      return "f8E5M2";
    case DType::kI4:
      return "i4";
    case DType::kU4:
      return "ui4";
  }
  return "?";
}

const char* torch_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "bool";
    case DType::kI8:
      return "int8";
    case DType::kI16:
      return "int16";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    case DType::kU8:
      return "uint8";
    case DType::kU16:
      return "uint16";
    case DType::kU32:
      return "uint32";
    case DType::kU64:
      return "uint64";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
    case DType::kC64:
      return "complex64";
    case DType::kC128:
      return "complex128";
    case DType::kF8E4M3FN:
      return "float8_e4m3fn";
    case DType::kF8E5M2:
      return "float8_e5m2";
    case DType::kI4:
      return "int4";
    case DType::kU4:
      return "uint4";
  }
  return "?";
}

int64_t byte_size(DType t) {
  switch (t) {
    case DType::kPred:
    case DType::kI8:
    case DType::kU8:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
    case DType::kI4:
    case DType::kU4:
      return 1;
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI32:
    case DType::kU32:
    case DType::kF32:
      return 4;
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
    case DType::kC64:
      return 8;
    case DType::kC128:
      return 16;
  }
  return 0;
}

bool is_float(DType t) {
  switch (t) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
      return true;
    default:
      return false;
  }
}

bool is_complex(DType t) { return t == DType::kC64 || t == DType::kC128; }

bool is_signed_int(DType t) {
  switch (t) {
    case DType::kI4:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return true;
    default:
      return false;
  }
}

bool is_unsigned_int(DType t) {
  switch (t) {
    case DType::kU4:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return true;
    default:
      return false;
  }
}

DType real_of(DType t) {
  if (t == DType::kC64) return DType::kF32;
  if (t == DType::kC128) return DType::kF64;
  return t;
}

DType opmath(DType t) { return is_float(t) && byte_size(t) < 4 ? DType::kF32 : t; }

std::string Type::str() const {
  std::string text;
  append_type(&text, *this);
  return text;
}

}  // namespace torch_tpu::stablehlo
