// Element types, tensor types and values of the StableHLO builder. No torch.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "stablehlo/size.h"

namespace torch_tpu::stablehlo {

enum class DType : uint8_t {
  kPred,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2,
  kI4,
  kU4,
};

const char* mlir_name(DType t);   // "f32", "i1", "ui8", "complex<f32>"
const char* torch_name(DType t);  // "float32", "bool", "uint8", "complex64"
int64_t byte_size(DType t);       // bytes of one element in a PJRT buffer
bool is_float(DType t);           // real floating point
bool is_complex(DType t);
bool is_signed_int(DType t);
bool is_unsigned_int(DType t);
inline bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
DType real_of(DType t);  // kC64 -> kF32; itself otherwise
// The type arithmetic is done in when a formula has several steps: f16, bf16, f8 -> f32; itself otherwise.
DType opmath(DType t);

struct Type {
  DType dtype = DType::kF32;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  std::string str()
      const;  // "tensor<2x3xf32>"; bounded: "tensor<?x8xf32, #stablehlo.bounds<64, ?>>"
  friend bool operator==(const Type& a, const Type& b) {
    return a.dtype == b.dtype && a.dims == b.dims;
  }
};

// A rule of StableHLO was broken while building a program. A chain of builder calls is checked once, at the edge that
// started it, so this layer throws where the ones below return a status (docs/architecture.md, "Errors"). `cause` tells
// the rules that a user's arguments can break apart; `operands` are the types it is about.
class BuildError : public std::runtime_error {
 public:
  enum class Cause {
    kOther,
    kDtype,        // the operation does not take the (only) operand's dtype
    kBroadcast,    // two shapes do not broadcast
    kMixedDtypes,  // operands of different dtypes
  };
  explicit BuildError(const std::string& what, Cause cause = Cause::kOther,
                      std::vector<Type> operands = {})
      : std::runtime_error(what), cause(cause), operands(std::move(operands)) {}
  BuildError within(const std::string& context) const {
    return BuildError(context + what(), cause, operands);
  }
  Cause cause;
  std::vector<Type> operands;
};

// An SSA value of a program under construction. Cheap to copy; belongs to the Builder that made it.
class Value {
 public:
  Value() = default;
  Value(int id, Type type) : id_(id), type_(std::make_shared<const Type>(std::move(type))) {}
  explicit operator bool() const { return id_ >= 0; }
  int id() const { return id_; }
  const Type& type() const { return *type_; }
  DType dtype() const { return type_->dtype; }
  const Dims& dims() const { return type_->dims; }
  const Size& dim(int64_t i) const { return type_->dims.at(i < 0 ? i + rank() : i); }
  int64_t rank() const { return type_->rank(); }
  Size numel() const { return product(type_->dims); }

 private:
  int id_ = -1;
  std::shared_ptr<const Type> type_;
};

}  // namespace torch_tpu::stablehlo
