// Fourier transforms and matrix factorisations.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

void check_static(std::string_view op, const Value& x, int64_t last) {
  for (int64_t d = std::max<int64_t>(x.rank() - last, 0); d < x.rank(); ++d) {
    if (!x.dims()[d].is_static())
      fail(op, "not defined along a dimension of run-time size: " + x.type().str());
  }
}

bool is_solvable(DType t) { return t == DType::kF32 || t == DType::kF64 || is_complex(t); }

}  // namespace

Value Builder::fft(Value x, Fft kind, const std::vector<int64_t>& lengths) {
  static constexpr const char* kName = "stablehlo.fft";
  require(static_cast<bool>(x), kName, "no operand");
  const auto count = static_cast<int64_t>(lengths.size());
  if (count < 1 || count > 3 || count > x.rank()) {
    fail(kName, std::to_string(count) + " lengths (1 to 3 are possible) for " + x.type().str());
  }
  check_static(kName, x, count);
  const bool from_real = kind == Fft::kRfft;
  const bool to_real = kind == Fft::kIrfft;
  if (from_real ? x.dtype() != DType::kF32 && x.dtype() != DType::kF64 : !is_complex(x.dtype())) {
    fail(kName, "not defined for " + x.type().str(), BuildError::Cause::kDtype, {x.type()});
  }
  Dims dims = x.dims();
  for (int64_t i = 0; i < count; ++i) {
    Size& d = dims[x.rank() - count + i];
    const bool halved = i == count - 1 && to_real;
    if (d != Size(halved ? lengths[i] / 2 + 1 : lengths[i])) {
      fail(kName, "lengths " + describe(lengths) + " do not fit " + x.type().str());
    }
    if (halved) d = Size(lengths[i]);
    if (i == count - 1 && from_real) d = Size(lengths[i] / 2 + 1);
  }
  DType dtype = x.dtype();
  if (from_real) dtype = dtype == DType::kF32 ? DType::kC64 : DType::kC128;
  if (to_real) dtype = real_of(dtype);
  static constexpr const char* kKinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const std::string type =
      std::string("#stablehlo<fft_type ") + kKinds[static_cast<int>(kind)] + ">";
  const std::string attributes =
      Attributes().raw("fft_type", type).ints("fft_length", lengths).text();
  return with_dims(
      *this, impl_->emit(kName, {pad_to_bound(x)}, Type{dtype, bounds_of(dims)}, attributes), dims);
}

Value Builder::cholesky(Value x, bool lower) {
  static constexpr const char* kName = "stablehlo.cholesky";
  require(static_cast<bool>(x), kName, "no operand");
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2) || !is_solvable(x.dtype())) {
    fail(kName, "square matrices of f32, f64 or complex numbers are needed, got " + x.type().str());
  }
  check_static(kName, x, 2);
  const Value padded = pad_to_bound(x);
  return with_dims(
      *this,
      impl_->emit(kName, {padded}, padded.type(), Attributes().boolean("lower", lower).text()),
      x.dims());
}

Value Builder::triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal,
                                bool transpose_a, bool adjoint) {
  static constexpr const char* kName = "stablehlo.triangular_solve";
  const Value both[] = {a, b};
  bool fits = a && b && a.dtype() == b.dtype() && is_solvable(a.dtype()) && a.rank() == b.rank() &&
              a.rank() >= 2 && a.dim(-1) == a.dim(-2) && a.dim(-1) == b.dim(left_side ? -2 : -1);
  for (int64_t d = 0; fits && d < a.rank() - 2; ++d) fits = a.dims()[d] == b.dims()[d];
  if (!fits) fail(kName, "operands do not match: " + describe(both));
  check_static(kName, a, 2);
  const char* transpose = adjoint ? "ADJOINT" : transpose_a ? "TRANSPOSE" : "NO_TRANSPOSE";
  const std::string attributes =
      Attributes()
          .boolean("left_side", left_side)
          .boolean("lower", lower)
          .boolean("unit_diagonal", unit_diagonal)
          .raw("transpose_a", std::string("#stablehlo<transpose ") + transpose + ">")
          .text();
  const Value padded[] = {pad_to_bound(a), pad_to_bound(b)};
  return with_dims(*this, impl_->emit(kName, padded, padded[1].type(), attributes), b.dims());
}

}  // namespace torch_tpu::stablehlo
