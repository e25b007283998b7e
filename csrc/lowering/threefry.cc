// Random bits of a call: Threefry-2x32-20 of (seed, offset, stream, linear index).
//
// Element i of the draw (row-major, true sizes) is one block, with all words of 32 bits and sums modulo 2^32:
//     key     = (seed_lo, seed_hi ^ offset_hi)
//     counter = (i_lo, offset_lo + i_hi + stream * 0x9E3779B9)
// A draw therefore uses 1 + i_hi consecutive offsets: the generator advances the offset by at least
// 1 + (numel >> 32). Words of up to 32 bits are the top bits of the block's first word; 64-bit ones are
// (first, second) = (low, high). Nothing else enters, so modes, buckets and layouts all see the same bits.
#include "lowering/threefry.h"

#include "lowering/call.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::BuildError;

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr uint32_t kStreamStep = 0x9E3779B9;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr int kRoundGroups = 5;  // of four rounds each

Value word(Builder& b, uint32_t value) { return b.constant_int(value, DType::kU32); }

Value rotate_left(Builder& b, Value x, int by) {
  Value high = b.binary(Binary::kShiftLeft, x, word(b, by));
  Value low = b.binary(Binary::kShiftRightLogical, x, word(b, 32 - by));
  return b.logical_or(high, low);
}

struct Words {
  Value low, high;
};

// An i64 or ui64 value as two ui32 words.
Words split(Builder& b, Value x) {
  Value wide = b.bitcast_convert(x, DType::kU64);
  Value mask = b.constant_int(0xFFFFFFFF, DType::kU64);
  Value high = b.binary(Binary::kShiftRightLogical, wide, b.constant_int(32, DType::kU64));
  return {b.convert(b.logical_and(wide, mask), DType::kU32), b.convert(high, DType::kU32)};
}

// The row-major index of each element, by true sizes; flat where all sizes are static.
Words linear_index(Builder& b, const Dims& dims) {
  Size count = stablehlo::product(dims);
  bool wide = count.bound() > (int64_t{1} << 32);
  DType dtype = wide ? DType::kU64 : DType::kU32;
  Value index;
  if (count.is_static()) {
    index = b.iota(dtype, {count}, 0);
  } else {
    Size stride = 1;
    for (int64_t d = static_cast<int64_t>(dims.size()) - 1; d >= 0; --d) {
      Value part = b.mul(b.iota(dtype, dims, d), b.size(stride, dtype));
      index = index ? b.add(index, part) : part;
      stride = stride * dims[d];
    }
  }
  if (wide) return split(b, index);
  return {index, word(b, 0)};
}

int bit_width(DType dtype) { return static_cast<int>(stablehlo::byte_size(dtype)) * 8; }

struct UniformFormat {
  DType bits;     // what is drawn
  int precision;  // leading bits used: as many as the significand holds
};

UniformFormat uniform_format(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {DType::kU64, 53};
    case DType::kF32:
      return {DType::kU32, 24};
    case DType::kF16:
      return {DType::kU32, 11};
    case DType::kBF16:
      return {DType::kU32, 8};
    default:
      throw BuildError(std::string("uniform random numbers of type ") +
                       stablehlo::mlir_name(dtype) + " are not supported");
  }
}

}  // namespace

std::pair<Value, Value> threefry2x32(Builder& b, Value key0, Value key1, Value counter0,
                                     Value counter1) {
  Value keys[3] = {key0, key1,
                   b.binary(Binary::kXor, b.binary(Binary::kXor, key0, key1), word(b, kParity))};
  Value x0 = b.add(counter0, keys[0]);
  Value x1 = b.add(counter1, keys[1]);
  for (int group = 0; group < kRoundGroups; ++group) {
    for (int by : kRotations[group % 2]) {
      x0 = b.add(x0, x1);
      x1 = b.binary(Binary::kXor, rotate_left(b, x1, by), x0);
    }
    x0 = b.add(x0, keys[(group + 1) % 3]);
    x1 = b.add(x1, b.add(keys[(group + 2) % 3], word(b, group + 1)));
  }
  return {x0, x1};
}

Value Call::random_bits(const Dims& dims, DType unsigned_dtype, int stream) {
  int slot = node_.seed_slot;
  if (slot < 0 || static_cast<size_t>(slot) + 1 >= scalars_.size()) {
    throw BuildError(node_.op + " draws random bits but has no seed and offset (OpRow::random)");
  }
  if (!stablehlo::is_unsigned_int(unsigned_dtype) || unsigned_dtype == DType::kU4) {
    throw BuildError(node_.op + ": random bits of type " + stablehlo::mlir_name(unsigned_dtype));
  }
  Words seed = split(b, scalars_[slot]);
  Words offset = split(b, scalars_[slot + 1]);
  Words index = linear_index(b, dims);
  Value step = b.add(offset.low, word(b, static_cast<uint32_t>(stream) * kStreamStep));
  auto [first, second] = threefry2x32(b, seed.low, b.binary(Binary::kXor, seed.high, offset.high),
                                      index.low, b.add(index.high, step));
  Value bits = first;
  if (unsigned_dtype == DType::kU64) {
    Value high = b.binary(Binary::kShiftLeft, b.convert(second, DType::kU64),
                          b.constant_int(32, DType::kU64));
    bits = b.logical_or(high, b.convert(first, DType::kU64));
  } else if (unsigned_dtype != DType::kU32) {
    Value top =
        b.binary(Binary::kShiftRightLogical, first, word(b, 32 - bit_width(unsigned_dtype)));
    bits = b.convert(top, unsigned_dtype);
  }
  return b.reshape(bits, dims);
}

Value Call::random_uniform(const Dims& dims, DType float_dtype, int stream) {
  UniformFormat format = uniform_format(float_dtype);
  Value bits = random_bits(dims, format.bits, stream);
  int drop = bit_width(format.bits) - format.precision;
  Value whole = b.binary(Binary::kShiftRightLogical, bits, b.constant_int(drop, format.bits));
  double step = 1.0 / static_cast<double>(uint64_t{1} << format.precision);
  return b.mul(b.convert(whole, float_dtype), b.constant(step, float_dtype));
}

}  // namespace torch_tpu::lowering
