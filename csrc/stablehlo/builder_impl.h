// Internals of the builder: the text under construction, scopes, and pieces that the builder's
// files share.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stablehlo/builder.h"

namespace torch_tpu::stablehlo {

void append_int(std::string* text, int64_t value);
void append_type(std::string* text, const Type& type);
void append_quoted(std::string* text, std::string_view value);  // an MLIR string literal, escaped

[[noreturn]] void fail(std::string_view op, const std::string& what,
                       BuildError::Cause cause = BuildError::Cause::kOther,
                       std::vector<Type> operands = {});
inline void require(bool ok, std::string_view op, const char* what) {
  if (!ok) fail(op, what);
}
std::string describe(std::span<const Value> values);       // "(tensor<2xf32>, tensor<i32>)"
std::string describe(const std::vector<int64_t>& values);  // "[1, 2]"
// `dim` in [0, rank); throws otherwise.
void check_dim(std::string_view op, int64_t dim, const Value& x);
// Dimensions in range and none of them twice; returns one flag a dimension.
std::vector<bool> dim_set(std::string_view op, const std::vector<int64_t>& dims, int64_t rank);

// The attributes of one operation, in the order they are given.
class Attributes {
 public:
  Attributes& ints(std::string_view name, std::span<const int64_t> values);
  Attributes& bools(std::string_view name, const std::vector<bool>& values);
  Attributes& integer(std::string_view name, int64_t value);
  Attributes& boolean(std::string_view name, bool value);
  Attributes& padding(std::string_view name,
                      const std::vector<std::pair<int64_t, int64_t>>& values);
  Attributes& raw(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void name(std::string_view name);
  std::string text_;
};
// "[1, 2]", for attributes with a syntax of their own.
std::string int_list(const std::vector<int64_t>& values);

// A window with every list filled in.
Window complete_window(std::string_view op, const Window& window, int64_t rank);
// One dimension of a windowed operation's result.
Size window_output(const Size& input, int64_t window, int64_t stride, int64_t base_dilation,
                   int64_t window_dilation, const std::pair<int64_t, int64_t>& padding);

// -- Bounded dimensions (builder_bounded.cc) ------------------------------------------------------
Dims bounds_of(const Dims& dims);
// A static value whose dimensions are the bounds of `dims`, as a value of type `dims`.
Value with_dims(Builder& b, Value x, const Dims& dims);
// x padded to its bounds; what lies beyond the true size along `dims` (all dimensions where null)
// reads as `fill`.
Value mask_to_bound(Builder& b, Value x, Value fill, const std::vector<int64_t>* dims = nullptr);
Value reshape_bounded(Builder& b, Value x, const Dims& dims);

struct Builder::Impl {
  enum class Capture { kAllowed, kConstants };  // what a region may use of the values around it
  struct Scope {
    int region = 0;
    Capture capture = Capture::kAllowed;
    std::unordered_map<std::string, Value> constants;  // by their text
    std::unordered_map<std::string, Value> sizes;      // i32 values of size expressions
  };
  struct RegionText {
    std::string text;
    std::vector<Value> results;
  };

  std::string text;
  std::vector<Scope> scopes;
  std::vector<int> region_of;     // of each value
  std::vector<int> parameter_of;  // of each value; -1 where it is none
  std::vector<Type> parameters;
  std::vector<int64_t> alias_of;  // output each parameter lends its memory to, or -1
  std::unordered_map<int, Value> symbols;
  int regions = 0;
  int64_t operations = 0;
  int64_t longest_trailing_reduction = 0;  // elements
  bool other_reductions = false;           // over other dimensions, or beside a transposition
  Precision precision = Precision::kDefault;
  bool finished = false;
  std::vector<int> ids;  // of the operands of the operation being printed

  Value fresh(Type type);
  void append_name(std::string* out, int id) const;  // "%7" or "%arg0"
  // The operand's id in the current region; throws where the value cannot be used here.
  int resolve(std::string_view op, const Value& v);

  // One operation in generic form. `regions` is "({...}, {...})" or empty.
  Value emit(std::string_view op, std::initializer_list<Value> operands, Type result,
             std::string_view attributes = {});
  Value emit(std::string_view op, std::span<const Value> operands, Type result,
             std::string_view attributes = {}, std::string_view regions = {});
  std::vector<Value> emit_many(std::string_view op, std::span<const Value> operands,
                               std::vector<Type> results, std::string_view attributes = {},
                               std::string_view regions = {});
  // An operation that treats each element alone.
  Value elementwise(Builder& b, std::string_view op, std::initializer_list<Value> operands,
                    Type result);
  // A constant by the text after "stablehlo.constant", once a scope. The type is static.
  Value emit_constant(std::string literal, const Type& type);
  // Runs `body` in a region of its own.
  RegionText region(std::string_view op, const std::vector<Type>& arguments, Capture capture,
                    const Body& body);
  // ", precision_config = [...]" for two operands.
  std::string precision_text() const;
  // body(current..., next...) -> current: the region of reductions, checked.
  std::string combiner(std::string_view op, const std::vector<Type>& elements, const Body& body);

 private:
  void append_call(std::string_view op, std::span<const Value> operands,
                   std::string_view attributes, std::string_view regions);
};

}  // namespace torch_tpu::stablehlo
