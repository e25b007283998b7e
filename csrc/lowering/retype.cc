// Dtype views: bitcasts between widths, with complex numbers as pairs and bools as bytes.
#include "lowering/retype.h"

#include <functional>
#include <numeric>

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Builder;
using stablehlo::BuildError;
using stablehlo::Dims;
using stablehlo::DType;
using stablehlo::Unary;
using stablehlo::Value;

// The type whose bitcasts StableHLO allows: a byte for bool, the parts of a complex number.
DType plain_type(DType dtype) {
  return dtype == DType::kPred ? DType::kU8 : stablehlo::real_of(dtype);
}

Value to_plain(Builder& b, Value x) {
  if (x.dtype() == DType::kPred) return b.convert(x, DType::kU8);
  if (!stablehlo::is_complex(x.dtype())) return x;
  Dims dims = x.dims();
  dims.push_back(1);
  Value real = b.reshape(b.unary(Unary::kReal, x), dims);
  Value imag = b.reshape(b.unary(Unary::kImag, x), dims);
  return b.concatenate({real, imag}, x.rank());
}

int64_t count_of(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
}

// [..., groups * size] as [..., groups]: along the last dimension where it divides, else flat and without the tail.
std::vector<int64_t> grouped_dims(std::vector<int64_t> dims, int64_t size) {
  if (dims.empty() || dims.back() % size != 0) dims = {count_of(dims)};
  dims.back() /= size;
  return dims;
}

// x as grouped_dims() with a last dimension of `size`.
Value group(Builder& b, Value x, int64_t size) {
  std::vector<int64_t> dims = grouped_dims(stablehlo::fixed(x.dims()), size);
  int64_t count = x.numel().fixed(), whole = count_of(dims) * size;
  if (whole < count) x = b.slice(b.flatten(x), {0}, {whole});
  dims.push_back(size);
  return b.reshape(x, Dims(dims.begin(), dims.end()));
}

Value from_plain(Builder& b, Value x, DType dtype) {
  if (dtype == DType::kPred) return b.convert(x, dtype);
  if (!stablehlo::is_complex(dtype)) return x;
  Value pairs = group(b, x, 2);
  int64_t last = pairs.rank() - 1;
  Dims dims(pairs.dims().begin(), pairs.dims().end() - 1);
  Value real = b.reshape(b.slice_dim(pairs, last, 0, 1), dims);
  Value imag = b.reshape(b.slice_dim(pairs, last, 1, 2), dims);
  return b.binary(Binary::kComplex, real, imag);
}

Value bitcast_plain(Builder& b, Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  int64_t from = stablehlo::byte_size(x.dtype()), to = stablehlo::byte_size(dtype);
  if (from < to) x = group(b, x, to / from);
  return b.bitcast_convert(x, dtype);
}

void refuse_packed(DType dtype) {
  if (dtype == DType::kI4 || dtype == DType::kU4) {
    throw BuildError(std::string("a view between ") + stablehlo::mlir_name(dtype) +
                     " and another type");
  }
}

}  // namespace

std::vector<int64_t> retyped_dims(std::vector<int64_t> dims, DType from, DType to) {
  if (from == to) return dims;
  if (stablehlo::is_complex(from)) dims.push_back(2);
  int64_t from_bytes = stablehlo::byte_size(plain_type(from)),
          to_bytes = stablehlo::byte_size(plain_type(to));
  if (from_bytes > to_bytes) dims.push_back(from_bytes / to_bytes);
  if (from_bytes < to_bytes) dims = grouped_dims(dims, to_bytes / from_bytes);
  return stablehlo::is_complex(to) ? grouped_dims(dims, 2) : dims;
}

Value retype(Builder& b, Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  refuse_packed(x.dtype());
  refuse_packed(dtype);
  return from_plain(b, bitcast_plain(b, to_plain(b, x), plain_type(dtype)), dtype);
}

}  // namespace torch_tpu::lowering
