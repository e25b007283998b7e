// Matrix products and convolutions.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kDot = "stablehlo.dot_general";
constexpr const char* kConvolution = "stablehlo.convolution";

DType result_dtype(std::string_view op, const Value& lhs, const Value& rhs,
                   std::optional<DType> result) {
  if (result) return *result;
  if (lhs.dtype() != rhs.dtype()) {
    const Value both[] = {lhs, rhs};
    fail(op, "operands of two element types need a result type: " + describe(both));
  }
  return lhs.dtype();
}

// One side of "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]".
std::string layout(std::string_view op, int64_t first, char first_name, int64_t second,
                   char second_name, const std::vector<int64_t>& spatial) {
  std::vector<std::string> names(spatial.size() + 2);
  const auto place = [&](int64_t position, std::string name) {
    if (position < 0 || position >= static_cast<int64_t>(names.size()) ||
        !names[position].empty()) {
      fail(op, "dimension numbers are out of range or repeated");
    }
    names[position] = std::move(name);
  };
  place(first, {first_name});
  place(second, {second_name});
  for (size_t i = 0; i < spatial.size(); ++i) place(spatial[i], std::to_string(i));
  std::string text = "[";
  for (size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + "]";
}

}  // namespace

void Builder::set_precision(Precision p) { impl_->precision = p; }

std::string Builder::Impl::precision_text() const {
  const char* name = precision == Precision::kDefault ? "DEFAULT"
                     : precision == Precision::kHigh  ? "HIGH"
                                                      : "HIGHEST";
  std::string one = "#stablehlo<precision ";
  one += name;
  one += '>';
  return "[" + one + ", " + one + "]";
}

Value Builder::dot_general(Value lhs, Value rhs, const std::vector<int64_t>& lhs_batch,
                           const std::vector<int64_t>& rhs_batch,
                           const std::vector<int64_t>& lhs_contracting,
                           const std::vector<int64_t>& rhs_contracting,
                           std::optional<DType> result) {
  require(lhs && rhs, kDot, "no operand");
  const auto complain = [&](const std::string& what) {
    const Value both[] = {lhs, rhs};
    fail(kDot, what + ": " + describe(both) + ", batch " + describe(lhs_batch) + " x " +
                   describe(rhs_batch) + ", contracting " + describe(lhs_contracting) + " x " +
                   describe(rhs_contracting));
  };
  if (lhs_batch.size() != rhs_batch.size() || lhs_contracting.size() != rhs_contracting.size()) {
    complain("the lists of dimensions differ in length");
  }
  const auto used = [](const Value& x, const std::vector<int64_t>& a,
                       const std::vector<int64_t>& c) {
    std::vector<int64_t> all = a;
    all.insert(all.end(), c.begin(), c.end());
    return dim_set(kDot, all, x.rank());
  };
  const std::vector<bool> lhs_used = used(lhs, lhs_batch, lhs_contracting);
  const std::vector<bool> rhs_used = used(rhs, rhs_batch, rhs_contracting);
  Dims dims;
  for (size_t i = 0; i < lhs_batch.size(); ++i) {
    if (lhs.dims()[lhs_batch[i]] != rhs.dims()[rhs_batch[i]]) complain("batch dimensions differ");
    dims.push_back(lhs.dims()[lhs_batch[i]]);
  }
  for (size_t i = 0; i < lhs_contracting.size(); ++i) {
    if (lhs.dims()[lhs_contracting[i]] != rhs.dims()[rhs_contracting[i]])
      complain("contracted dimensions differ");
  }
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (!lhs_used[d]) dims.push_back(lhs.dims()[d]);
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (!rhs_used[d]) dims.push_back(rhs.dims()[d]);
  }
  const DType dtype = result_dtype(kDot, lhs, rhs, result);
  std::string numbers = "#stablehlo.dot<lhs_batching_dimensions = " + int_list(lhs_batch) +
                        ", rhs_batching_dimensions = " + int_list(rhs_batch) +
                        ", lhs_contracting_dimensions = " + int_list(lhs_contracting) +
                        ", rhs_contracting_dimensions = " + int_list(rhs_contracting) + ">";
  const std::string attributes = Attributes()
                                     .raw("dot_dimension_numbers", numbers)
                                     .raw("precision_config", impl_->precision_text())
                                     .text();
  return impl_->emit(kDot, {lhs, rhs}, Type{dtype, std::move(dims)}, attributes);
}

Value Builder::matmul(Value lhs, Value rhs) {
  require(lhs && rhs, "matmul", "no operand");
  const int64_t batches = lhs.rank() - 2;
  if (batches < 0 || rhs.rank() != lhs.rank()) {
    const Value both[] = {lhs, rhs};
    fail("matmul", "operands must have equal rank of at least 2, got " + describe(both));
  }
  std::vector<int64_t> batch;
  for (int64_t i = 0; i < batches; ++i) batch.push_back(i);
  return dot_general(lhs, rhs, batch, batch, {batches + 1}, {batches});
}

Value Builder::convolution(Value lhs, Value rhs, const ConvolutionDims& c,
                           std::optional<DType> result) {
  require(lhs && rhs, kConvolution, "no operand");
  const size_t n = c.input_spatial.size();
  const auto complain = [&](const std::string& what) {
    const Value both[] = {lhs, rhs};
    fail(kConvolution, what + ": " + describe(both));
  };
  if (lhs.rank() != static_cast<int64_t>(n + 2) || rhs.rank() != lhs.rank() ||
      c.kernel_spatial.size() != n || c.output_spatial.size() != n) {
    complain("operands do not have the ranks that the dimension numbers name");
  }
  const auto filled = [&](std::vector<int64_t> list) {
    if (list.empty()) list.assign(n, 1);
    bool fits = list.size() == n;
    for (const int64_t v : list) fits = fits && v >= 1;
    if (!fits) complain("strides and dilations must be positive, one a spatial dimension");
    return list;
  };
  const std::vector<int64_t> strides = filled(c.strides);
  const std::vector<int64_t> lhs_dilation = filled(c.lhs_dilation);
  const std::vector<int64_t> rhs_dilation = filled(c.rhs_dilation);
  const auto padding =
      c.padding.empty() ? std::vector<std::pair<int64_t, int64_t>>(n, {0, 0}) : c.padding;
  const auto reversal = c.reversal.empty() ? std::vector<bool>(n, false) : c.reversal;
  if (padding.size() != n || reversal.size() != n)
    complain("padding and reversal need one entry a spatial dimension");
  const std::string numbers =
      layout(kConvolution, c.input_batch, 'b', c.input_feature, 'f', c.input_spatial) + "x" +
      layout(kConvolution, c.kernel_output_feature, 'o', c.kernel_input_feature, 'i',
             c.kernel_spatial) +
      "->" + layout(kConvolution, c.output_batch, 'b', c.output_feature, 'f', c.output_spatial);
  const int64_t features = lhs.dims()[c.input_feature].fixed();
  const int64_t outputs = rhs.dims()[c.kernel_output_feature].fixed();
  if (c.feature_groups < 1 || c.batch_groups < 1 || (c.feature_groups > 1 && c.batch_groups > 1)) {
    complain("groups must be positive, and of one kind");
  }
  if (rhs.dims()[c.kernel_input_feature] != Size(features / c.feature_groups) ||
      features % c.feature_groups != 0 || outputs % c.feature_groups != 0 ||
      outputs % c.batch_groups != 0) {
    complain("features do not fit the kernel and " + std::to_string(c.feature_groups) + " groups");
  }
  const Size& batch = lhs.dims()[c.input_batch];
  if (c.batch_groups > 1 && batch.fixed() % c.batch_groups != 0)
    complain("the batch does not fit its groups");
  Dims dims(n + 2, Size(0));
  dims[c.output_batch] = c.batch_groups > 1 ? Size(batch.fixed() / c.batch_groups) : batch;
  dims[c.output_feature] = Size(outputs);
  for (size_t i = 0; i < n; ++i) {
    dims[c.output_spatial[i]] =
        window_output(lhs.dims()[c.input_spatial[i]], rhs.dims()[c.kernel_spatial[i]].fixed(),
                      strides[i], lhs_dilation[i], rhs_dilation[i], padding[i]);
  }
  const DType dtype = result_dtype(kConvolution, lhs, rhs, result);
  const std::string attributes = Attributes()
                                     .ints("window_strides", strides)
                                     .padding("padding", padding)
                                     .ints("lhs_dilation", lhs_dilation)
                                     .ints("rhs_dilation", rhs_dilation)
                                     .bools("window_reversal", reversal)
                                     .raw("dimension_numbers", "#stablehlo.conv<" + numbers + ">")
                                     .integer("feature_group_count", c.feature_groups)
                                     .integer("batch_group_count", c.batch_groups)
                                     .raw("precision_config", impl_->precision_text())
                                     .text();
  // The batch is not mixed; what lies beyond a bounded spatial dimension must read as zero.
  lhs = mask_to_bound(*this, lhs, constant_int(0, lhs.dtype()), &c.input_spatial);
  return with_dims(
      *this, impl_->emit(kConvolution, {lhs, rhs}, Type{dtype, bounds_of(dims)}, attributes), dims);
}

}  // namespace torch_tpu::stablehlo
