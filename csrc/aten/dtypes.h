// Between PyTorch's scalar types and StableHLO's element types.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "stablehlo/types.h"

namespace torch_tpu::aten {

using stablehlo::DType;

inline DType to_dtype(c10::ScalarType t) {
  switch (t) {
    case c10::ScalarType::Bool:
      return DType::kPred;
    case c10::ScalarType::Char:
      return DType::kI8;
    case c10::ScalarType::Short:
      return DType::kI16;
    case c10::ScalarType::Int:
      return DType::kI32;
    case c10::ScalarType::Long:
      return DType::kI64;
    case c10::ScalarType::Byte:
      return DType::kU8;
    case c10::ScalarType::UInt16:
      return DType::kU16;
    case c10::ScalarType::UInt32:
      return DType::kU32;
    case c10::ScalarType::UInt64:
      return DType::kU64;
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Float:
      return DType::kF32;
    case c10::ScalarType::Double:
      return DType::kF64;
    case c10::ScalarType::ComplexFloat:
      return DType::kC64;
    case c10::ScalarType::ComplexDouble:
      return DType::kC128;
    case c10::ScalarType::Float8_e4m3fn:
      return DType::kF8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return DType::kF8E5M2;
    default:
      TORCH_CHECK_TYPE(false, "dtype ", c10::toString(t),
                       " is not supported on the tpu device; convert the tensor on the CPU first");
  }
}

inline c10::ScalarType to_scalar_type(DType t) {
  switch (t) {
    case DType::kPred:
      return c10::ScalarType::Bool;
    case DType::kI8:
      return c10::ScalarType::Char;
    case DType::kI16:
      return c10::ScalarType::Short;
    case DType::kI32:
      return c10::ScalarType::Int;
    case DType::kI64:
      return c10::ScalarType::Long;
    case DType::kU8:
      return c10::ScalarType::Byte;
    case DType::kU16:
      return c10::ScalarType::UInt16;
    case DType::kU32:
      return c10::ScalarType::UInt32;
    case DType::kU64:
      return c10::ScalarType::UInt64;
    case DType::kF16:
      return c10::ScalarType::Half;
    case DType::kBF16:
      return c10::ScalarType::BFloat16;
    case DType::kF32:
      return c10::ScalarType::Float;
    case DType::kF64:
      return c10::ScalarType::Double;
    case DType::kC64:
      return c10::ScalarType::ComplexFloat;
    case DType::kC128:
      return c10::ScalarType::ComplexDouble;
    case DType::kF8E4M3FN:
      return c10::ScalarType::Float8_e4m3fn;
    case DType::kF8E5M2:
      return c10::ScalarType::Float8_e5m2;
    case DType::kI4:
    case DType::kU4:
      break;
  }
  TORCH_CHECK(false, "element type ", stablehlo::mlir_name(t), " has no PyTorch dtype");
}

}  // namespace torch_tpu::aten
