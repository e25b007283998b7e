// A tensor dimension that is either static or (bound, true size), with arithmetic.
// Lowerings never see a plain integer size, so that programs over bounded dimensions stay right.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch_tpu::stablehlo {

class Size {
 public:
  // What the true size of a bounded dimension is made of: a symbol (a run-time i32 parameter) or arithmetic on others.
  struct Expr {
    enum class Kind { kSymbol, kConstant, kAdd, kSub, kMul, kFloorDiv };
    Kind kind;
    int64_t value = 0;  // the symbol's number, or the constant
    std::shared_ptr<const Expr> lhs, rhs;
  };

  Size(int64_t value) : bound_(value) {}  // NOLINT: sizes are written as integers everywhere
  // A dimension whose buffer has `bound` elements and whose true size is run-time symbol `symbol`.
  static Size bounded(int64_t bound, int symbol);

  bool is_static() const { return expr_ == nullptr; }
  // The number of elements a buffer needs; equal to the size where it is static.
  int64_t bound() const { return bound_; }
  // The size as a number. Throws BuildError on a bounded size: the caller would compute with the padding.
  int64_t fixed() const;
  const std::shared_ptr<const Expr>& expr() const { return expr_; }

  std::string str() const;  // "64" or "<=64:s0"

  friend Size operator+(const Size& a, const Size& b);
  friend Size operator-(
      const Size& a, const Size& b);  // the bound of a - b assumes b >= 0 at its smallest: bound(a)
  friend Size operator*(const Size& a, const Size& b);
  friend Size floor_div(const Size& a, int64_t b);
  friend bool operator==(const Size& a, const Size& b);  // structural
  friend bool operator!=(const Size& a, const Size& b) { return !(a == b); }

 private:
  int64_t bound_;
  std::shared_ptr<const Expr> expr_;  // null when static
};

using Dims = std::vector<Size>;

Size product(const Dims& dims);
// The dimensions as numbers; throws BuildError when one is bounded.
std::vector<int64_t> fixed(const Dims& dims);
bool all_static(const Dims& dims);

}  // namespace torch_tpu::stablehlo
