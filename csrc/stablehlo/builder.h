// A typed builder that prints StableHLO text (nothing newer than 1.13) and infers every result type itself. No torch.
//
// Every call checks its operands and throws BuildError when a rule is broken: a program that was built is well formed.
// Binary operations broadcast their operands as NumPy does (so 0-d values mix freely) but want equal element types.
// Bounded dimensions (Size) are followed by every operation here; a call that cannot says so with a BuildError.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stablehlo/types.h"

namespace torch_tpu::stablehlo {

enum class Unary {
  kAbs,
  kNegate,
  kSign,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSqrt,
  kRsqrt,
  kCbrt,
  kSin,
  kCos,
  kTan,
  kTanh,
  kLogistic,
  kFloor,
  kCeil,
  kRoundNearestEven,
  kRoundNearestAfz,
  kNot,
  kPopcnt,
  kCountLeadingZeros,
  kReal,
  kImag,
  kIsFinite,
  // CHLO operations, expanded by the plugin.
  kErf,
  kErfc,
  kErfInv,
  kLgamma,
  kDigamma,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};
enum class Binary {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kPower,
  kMaximum,
  kMinimum,
  kAtan2,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRightArithmetic,
  kShiftRightLogical,
  kComplex,
  kNextAfter,
  kPolygamma,
  kZeta,
};
enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Monoid {
  kAdd,
  kMultiply,
  kMaximum,
  kMinimum,
  kAnd,
  kOr,
  kXor
};  // maximum and minimum propagate NaN
enum class Precision { kDefault, kHigh, kHighest };

struct GatherDims {
  std::vector<int64_t> offset_dims, collapsed_slice_dims, operand_batching_dims,
      start_indices_batching_dims, start_index_map;
  int64_t index_vector_dim = 0;
  std::vector<int64_t> slice_sizes;
  bool indices_are_sorted = false;
};
struct ScatterDims {
  std::vector<int64_t> update_window_dims, inserted_window_dims, input_batching_dims,
      scatter_indices_batching_dims, scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
};
struct ConvolutionDims {
  // Positions in lhs (input), rhs (kernel), output; spatial lists have equal length.
  int64_t input_batch = 0, input_feature = 1;
  std::vector<int64_t> input_spatial;
  int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  std::vector<int64_t> kernel_spatial;
  int64_t output_batch = 0, output_feature = 1;
  std::vector<int64_t> output_spatial;
  std::vector<int64_t> strides, lhs_dilation, rhs_dilation;
  std::vector<std::pair<int64_t, int64_t>> padding;
  std::vector<bool> reversal;
  int64_t feature_groups = 1, batch_groups = 1;
};
struct Window {
  std::vector<int64_t> sizes, strides, base_dilations,
      window_dilations;                              // one entry a dimension; empty = all ones
  std::vector<std::pair<int64_t, int64_t>> padding;  // empty = none
};

class Builder {
 public:
  using Body = std::function<std::vector<Value>(const std::vector<Value>& args)>;

  Builder();
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // -- The function ---------------------------------------------------------------------------------------------
  // Parameters are numbered in the order of these calls. A parameter's dimensions must be static.
  Value parameter(Type type);
  // The result at `output` may take over the memory of parameter `parameter` (tf.aliasing_output).
  void alias(int64_t parameter, int64_t output);
  // The run-time value (i32, 0-d) behind symbol `symbol` of bounded sizes.
  void bind_symbol(int symbol, Value size);
  // The whole module; the builder is spent afterwards. The module's text depends on nothing but the calls made.
  std::string finish(const std::vector<Value>& results, const std::string& module_name = "main");
  int64_t operation_count() const;
  // Whether there are reductions, all over trailing dimensions of at most `limit` elements, and no transpositions (which
  // the compiler may fold into a reduction): such programs compile and run better under other options.
  bool only_short_trailing_reductions(int64_t limit) const;

  // -- Constants ------------------------------------------------------------------------------------------------
  Value constant(double value, DType dtype,
                 const Dims& dims = {});  // NaN and infinities too; bounded dims allowed
  Value constant_int(int64_t value, DType dtype, const Dims& dims = {});
  Value constant_bool(bool value, const Dims& dims = {});
  Value zeros(const Type& type);  // false for kPred
  Value dense(const std::vector<int64_t>& values, DType dtype, const std::vector<int64_t>& dims);
  Value dense(const std::vector<double>& values, DType dtype, const std::vector<int64_t>& dims);
  Value iota(DType dtype, const Dims& dims, int64_t dimension);
  // Smallest / largest finite or infinite value of dtype, 0-d: the identities of max and min.
  Value lowest(DType dtype, const Dims& dims = {});   // -inf, INT_MIN, 0 or false
  Value highest(DType dtype, const Dims& dims = {});  // +inf, INT_MAX or true
  // A size as a 0-d value of dtype: a constant where it is static, run-time arithmetic where it is not.
  Value size(const Size& s, DType dtype);

  // -- Elementwise ----------------------------------------------------------------------------------------------
  Value unary(Unary op, Value x);
  Value binary(Binary op, Value x, Value y);
  Value compare(Compare op, Value x, Value y);
  Value select(Value pred, Value on_true, Value on_false);  // all three broadcast
  Value clamp(Value low, Value x, Value high);              // low and high broadcast to x
  Value convert(
      Value x,
      DType dtype);  // itself where the type is right; float to int truncates; to kPred: x != 0
  Value bitcast_convert(Value x,
                        DType dtype);  // adds or drops a last dimension where the sizes differ

  Value abs(Value x) { return unary(Unary::kAbs, x); }
  Value neg(Value x) { return unary(Unary::kNegate, x); }
  Value exp(Value x) { return unary(Unary::kExp, x); }
  Value log(Value x) { return unary(Unary::kLog, x); }
  Value sqrt(Value x) { return unary(Unary::kSqrt, x); }
  Value rsqrt(Value x) { return unary(Unary::kRsqrt, x); }
  Value tanh(Value x) { return unary(Unary::kTanh, x); }
  Value logistic(Value x) { return unary(Unary::kLogistic, x); }
  Value logical_not(Value x) { return unary(Unary::kNot, x); }
  Value add(Value x, Value y) { return binary(Binary::kAdd, x, y); }
  Value sub(Value x, Value y) { return binary(Binary::kSubtract, x, y); }
  Value mul(Value x, Value y) { return binary(Binary::kMultiply, x, y); }
  Value div(Value x, Value y) { return binary(Binary::kDivide, x, y); }
  Value rem(Value x, Value y) { return binary(Binary::kRemainder, x, y); }  // C's %, fmod
  Value pow(Value x, Value y) { return binary(Binary::kPower, x, y); }
  Value max(Value x, Value y) { return binary(Binary::kMaximum, x, y); }  // NaN wins
  Value min(Value x, Value y) { return binary(Binary::kMinimum, x, y); }
  Value logical_and(Value x, Value y) { return binary(Binary::kAnd, x, y); }
  Value logical_or(Value x, Value y) { return binary(Binary::kOr, x, y); }
  Value eq(Value x, Value y) { return compare(Compare::kEq, x, y); }
  Value ne(Value x, Value y) { return compare(Compare::kNe, x, y); }
  Value lt(Value x, Value y) { return compare(Compare::kLt, x, y); }
  Value le(Value x, Value y) { return compare(Compare::kLe, x, y); }
  Value gt(Value x, Value y) { return compare(Compare::kGt, x, y); }
  Value ge(Value x, Value y) { return compare(Compare::kGe, x, y); }
  Value is_nan(Value x) { return ne(x, x); }
  // A constant of x's element type, 0-d (it broadcasts).
  Value like(Value x, double value) { return constant(value, x.dtype()); }

  // -- Shape ----------------------------------------------------------------------------------------------------
  // `dimensions[i]` is where operand dimension i lands in the result.
  Value broadcast_in_dim(Value x, const Dims& dims, const std::vector<int64_t>& dimensions);
  Value broadcast_to(Value x,
                     const Dims& dims);  // NumPy rules: aligns the last dimensions, stretches ones
  Value reshape(Value x, const Dims& dims);
  Value flatten(Value x) { return reshape(x, {x.numel()}); }
  Value transpose(Value x, const std::vector<int64_t>& permutation);
  Value slice(Value x, const std::vector<int64_t>& starts, const std::vector<int64_t>& limits,
              const std::vector<int64_t>& strides = {});
  Value slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
  Value dynamic_slice(Value x, const std::vector<Value>& starts, const std::vector<int64_t>& sizes);
  Value dynamic_update_slice(Value x, Value update, const std::vector<Value>& starts);
  Value pad(Value x, Value fill, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
            const std::vector<int64_t>& interior = {});  // negative low and high crop
  Value concatenate(const std::vector<Value>& xs, int64_t dim);
  Value reverse(Value x, const std::vector<int64_t>& dims);
  Value set_dimension_size(Value x, Value size, int64_t dim,
                           const Size& result);  // static -> bounded
  Value pad_to_bound(Value x);  // every bounded dimension back to its bound: what leaves a program

  // -- Reductions and contractions --------------------------------------------------------------------------------
  Value reduce(Monoid op, Value x, const std::vector<int64_t>& dims,
               bool keepdim = false);  // starts at op's identity
  // Several operands at once; body(accumulators..., elements...) -> accumulators. inits are 0-d.
  std::vector<Value> reduce(const std::vector<Value>& xs, const std::vector<Value>& inits,
                            const std::vector<int64_t>& dims, const Body& body);
  Value reduce_window(Monoid op, Value x, const Window& window);
  std::vector<Value> reduce_window(const std::vector<Value>& xs, const std::vector<Value>& inits,
                                   const Window& window, const Body& body);
  // Gradient of max pooling: scatters `source` to the elements that `select` picks. select ge, scatter add.
  Value select_and_scatter(Value x, Value source, Value init, const Window& window,
                           const Body& select, const Body& scatter);
  // Result dimensions: batch, free of lhs, free of rhs. `result` defaults to the operands' element type.
  Value dot_general(Value lhs, Value rhs, const std::vector<int64_t>& lhs_batch,
                    const std::vector<int64_t>& rhs_batch,
                    const std::vector<int64_t>& lhs_contracting,
                    const std::vector<int64_t>& rhs_contracting,
                    std::optional<DType> result = std::nullopt);
  Value matmul(Value lhs, Value rhs);  // [m,k]x[k,n], or with equal leading batch dimensions
  Value convolution(Value lhs, Value rhs, const ConvolutionDims& dims,
                    std::optional<DType> result = std::nullopt);
  // Precision of the contractions built from here on.
  void set_precision(Precision p);

  // -- Indexing, sorting, control flow ------------------------------------------------------------------------------
  Value gather(Value operand, Value start_indices, const GatherDims& dims);
  // body(current, update) -> combined, both 0-d.
  Value scatter(Value operand, Value indices, Value updates, const ScatterDims& dims,
                const Body& body);
  std::vector<Value> sort(const std::vector<Value>& xs, int64_t dim, bool stable,
                          const Body& comparator);
  // Largest k along the last dimension and their i32 positions; NaN counts as largest, ties take the lower index.
  std::pair<Value, Value> top_k(Value x, int64_t k);
  std::vector<Value> while_loop(const std::vector<Value>& inits, const Body& condition,
                                const Body& body);
  std::vector<Value> if_else(Value pred, const std::function<std::vector<Value>()>& on_true,
                             const std::function<std::vector<Value>()>& on_false);

  // -- The rest -------------------------------------------------------------------------------------------------------
  enum class Fft { kFft, kIfft, kRfft, kIrfft };
  Value fft(Value x, Fft kind, const std::vector<int64_t>& lengths);
  Value cholesky(Value x, bool lower);
  Value triangular_solve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal,
                         bool transpose_a, bool adjoint = false);
  std::vector<Value> custom_call(const std::string& target, const std::vector<Value>& xs,
                                 const std::vector<Type>& results,
                                 const std::string& backend_config = "");
  std::vector<Value> optimization_barrier(const std::vector<Value>& xs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace torch_tpu::stablehlo
