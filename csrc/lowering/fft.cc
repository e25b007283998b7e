// Fourier transforms: _fft_r2c, _fft_c2r, _fft_c2c over any number of dimensions.
#include <algorithm>
#include <cmath>

#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Unary;
using Kind = Builder::Fft;

// StableHLO transforms at most this many trailing dimensions at once.
constexpr size_t kDimsAtOnce = 3;

Value conj(Builder& b, Value x) {
  return b.binary(Binary::kComplex, b.unary(Unary::kReal, x), b.neg(b.unary(Unary::kImag, x)));
}

// x transformed along `dims` (at most kDimsAtOnce, the halved one last), `lengths` in the signal's domain.
Value transform(Builder& b, Value x, Kind kind, const std::vector<int64_t>& dims,
                const std::vector<int64_t>& lengths) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) order.push_back(i);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  return b.transpose(b.fft(b.transpose(x, order), kind, lengths), back);
}

std::vector<int64_t> lengths_of(const Value& x, const std::vector<int64_t>& dims) {
  std::vector<int64_t> lengths;
  for (int64_t d : dims) lengths.push_back(x.dim(d).fixed());
  return lengths;
}

Value complex_transform(Builder& b, Value x, bool forward, std::vector<int64_t> dims) {
  while (!dims.empty()) {
    const size_t taken = std::min(dims.size(), kDimsAtOnce);
    const std::vector<int64_t> last(dims.end() - taken, dims.end());
    x = transform(b, x, forward ? Kind::kFft : Kind::kIfft, last, lengths_of(x, last));
    dims.resize(dims.size() - taken);
  }
  return x;
}

// PyTorch's normalisation modes: 0 none, 1 by the root of the signal's size, 2 by its size. The inverse transforms of
// StableHLO divide by the size already.
Value normalise(Call& c, Value x, double size, bool inverse) {
  const int64_t mode = c.integer("normalization");
  double factor = mode == 0 ? 1.0 : mode == 1 ? 1.0 / std::sqrt(size) : 1.0 / size;
  if (inverse) factor = mode == 0 ? size : mode == 1 ? std::sqrt(size) : 1.0;
  return factor == 1.0 ? x : c.b.mul(x, c.b.like(x, factor));
}

double count(const std::vector<int64_t>& lengths) {
  double product = 1.0;
  for (int64_t n : lengths) product *= static_cast<double>(n);
  return product;
}

std::vector<int64_t> transform_dims(const Call& c, const Value& x) {
  std::vector<int64_t> dims = c.ints("dim");
  for (int64_t& d : dims) d = c.wrap_dim(d, x.rank());
  return dims;
}

void check_points(const Call& c, const Value& x, const std::vector<int64_t>& dims) {
  for (int64_t d : dims) {
    c.check(x.dim(d).fixed() >= 1,
            "Invalid number of data points (" + x.dim(d).str() + ") specified");
  }
}

bool is_empty(const Value& x) { return x.numel() == Size(0); }

Values lower_c2c(Call& c) {
  Value self = c.tensor("self");
  c.check(stablehlo::is_complex(self.dtype()),
          std::string("_fft_c2c: Expected a complex input, got ") + scalar_type_name(self.dtype()));
  const std::vector<int64_t> dims = transform_dims(c, self);
  check_points(c, self, dims);
  if (dims.empty() || is_empty(self)) return {self};
  const bool forward = c.boolean("forward");
  Value x = complex_transform(c.b, self, forward, dims);
  return {normalise(c, x, count(lengths_of(self, dims)), !forward)};
}

// The half that a real signal's transform repeats: X[-i] = conj(X[i]) in all transformed dimensions.
Value full_spectrum(Builder& b, Value half, int64_t n, const std::vector<int64_t>& dims) {
  const int64_t last = dims.back(), missing = n - half.dim(last).fixed();
  if (missing == 0) return half;
  Value rest = conj(b, half);
  for (int64_t d : dims) {
    if (d == last) continue;
    // Index i becomes -i: element 0 stays, the others turn round.
    const int64_t size = rest.dim(d).fixed();
    if (size > 1) {
      Value others = b.reverse(b.slice_dim(rest, d, 1, size), {d});
      rest = b.concatenate({b.slice_dim(rest, d, 0, 1), others}, d);
    }
  }
  rest = b.reverse(b.slice_dim(rest, last, 1, 1 + missing), {last});
  return b.concatenate({half, rest}, last);
}

Values lower_r2c(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  c.check(self.dtype() == DType::kF32 || self.dtype() == DType::kF64,
          std::string("_fft_r2c: Unsupported dtype ") + scalar_type_name(self.dtype()));
  std::vector<int64_t> dims = transform_dims(c, self);
  check_points(c, self, dims);
  c.check(!dims.empty(), "_fft_r2c: at least one dimension is needed");
  const std::vector<int64_t> lengths = lengths_of(self, dims);
  const bool onesided = c.boolean("onesided");
  const DType result = self.dtype() == DType::kF32 ? DType::kC64 : DType::kC128;
  if (is_empty(self)) {
    Dims shape = self.dims();
    if (onesided) shape[dims.back()] = lengths.back() / 2 + 1;
    return {b.zeros({result, shape})};
  }
  const size_t taken = std::min(dims.size(), kDimsAtOnce);
  Value x = transform(b, self, Kind::kRfft, {dims.end() - taken, dims.end()},
                      {lengths.end() - taken, lengths.end()});
  x = complex_transform(b, x, true, {dims.begin(), dims.end() - taken});
  x = normalise(c, x, count(lengths), false);
  return {onesided ? x : full_spectrum(b, x, lengths.back(), dims)};
}

Values lower_c2r(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  c.check(stablehlo::is_complex(self.dtype()),
          std::string("_fft_c2r: Expected a complex input, got ") + scalar_type_name(self.dtype()));
  const std::vector<int64_t> dims = transform_dims(c, self);
  const int64_t length = c.integer("last_dim_size");
  c.check(length >= 1, "Invalid number of data points (" + std::to_string(length) + ") specified");
  check_points(c, self, dims);
  c.check(!dims.empty(), "_fft_c2r: at least one dimension is needed");
  const int64_t last = dims.back();
  std::vector<int64_t> lengths = lengths_of(self, dims);
  lengths.back() = length;
  Dims shape = self.dims();
  shape[last] = length;
  if (is_empty(self)) return {b.zeros({stablehlo::real_of(self.dtype()), shape})};

  const int64_t half = length / 2 + 1, given = self.dim(last).fixed();
  Value x = self;
  if (given > half) x = b.slice_dim(x, last, 0, half);
  if (given < half) {
    std::vector<int64_t> low(x.rank(), 0), high(x.rank(), 0);
    high[last] = half - given;
    x = b.pad(x, b.zeros({x.dtype(), {}}), low, high);
  }
  const size_t taken = std::min(dims.size(), kDimsAtOnce);
  x = complex_transform(b, x, false, {dims.begin(), dims.end() - taken});
  x = transform(b, x, Kind::kIrfft, {dims.end() - taken, dims.end()},
                {lengths.end() - taken, lengths.end()});
  return {normalise(c, x, count(lengths), true)};
}

}  // namespace

const OpRow kFftRows[] = {
    {"_fft_c2c", lower_c2c, "", Infer::kLowering, Tolerance::kContraction},
    {"_fft_r2c", lower_r2c, "", Infer::kLowering, Tolerance::kContraction},
    {"_fft_c2r", lower_c2r, "", Infer::kLowering, Tolerance::kContraction},
};
const size_t kFftRowCount = std::size(kFftRows);

}  // namespace torch_tpu::lowering
