// Arithmetic on static and bounded sizes. Expressions are kept canonical, so that equal sizes
// compare equal.
#include "stablehlo/size.h"

#include <algorithm>

#include "stablehlo/types.h"

namespace torch_tpu::stablehlo {
namespace {

using Expr = Size::Expr;
using ExprPtr = std::shared_ptr<const Expr>;
using Kind = Expr::Kind;

ExprPtr make(Kind kind, ExprPtr lhs, ExprPtr rhs) {
  return std::make_shared<const Expr>(Expr{kind, 0, std::move(lhs), std::move(rhs)});
}
ExprPtr leaf(Kind kind, int64_t value) {
  return std::make_shared<const Expr>(Expr{kind, value, nullptr, nullptr});
}

bool is_constant(const ExprPtr& e) { return e->kind == Kind::kConstant; }

std::string text(const ExprPtr& e) {
  switch (e->kind) {
    case Kind::kSymbol:
      return "s" + std::to_string(e->value);
    case Kind::kConstant:
      return std::to_string(e->value);
    case Kind::kAdd:
      return "(" + text(e->lhs) + "+" + text(e->rhs) + ")";
    case Kind::kSub:
      return "(" + text(e->lhs) + "-" + text(e->rhs) + ")";
    case Kind::kMul:
      return text(e->lhs) + "*" + text(e->rhs);
    case Kind::kFloorDiv:
      return "(" + text(e->lhs) + "//" + text(e->rhs) + ")";
  }
  return "?";
}

bool same(const ExprPtr& a, const ExprPtr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  return a->kind == b->kind && a->value == b->value && same(a->lhs, b->lhs) && same(a->rhs, b->rhs);
}

// e = rest + constant, the constant taken out of the outermost addition.
std::pair<ExprPtr, int64_t> split_sum(const ExprPtr& e) {
  if (is_constant(e)) return {nullptr, e->value};
  if (e->kind == Kind::kAdd && is_constant(e->rhs)) return {e->lhs, e->rhs->value};
  return {e, 0};
}

// Collects e's factors; returns the product of the constant ones.
int64_t split_product(const ExprPtr& e, std::vector<ExprPtr>* factors) {
  if (is_constant(e)) return e->value;
  if (e->kind == Kind::kMul) {
    const int64_t left = split_product(e->lhs, factors);
    return left * split_product(e->rhs, factors);
  }
  factors->push_back(e);
  return 1;
}

ExprPtr join_product(std::vector<ExprPtr> factors, int64_t constant) {
  std::sort(factors.begin(), factors.end(),
            [](const ExprPtr& a, const ExprPtr& b) { return text(a) < text(b); });
  ExprPtr result = factors.front();
  for (size_t i = 1; i < factors.size(); ++i) result = make(Kind::kMul, result, factors[i]);
  if (constant != 1) result = make(Kind::kMul, result, leaf(Kind::kConstant, constant));
  return result;
}

ExprPtr plus_constant(ExprPtr e, int64_t constant) {
  if (constant == 0) return e;
  return make(Kind::kAdd, std::move(e), leaf(Kind::kConstant, constant));
}

ExprPtr expr_or_constant(const Size& s) {
  return s.is_static() ? leaf(Kind::kConstant, s.bound()) : s.expr();
}

}  // namespace

Size Size::bounded(int64_t bound, int symbol) {
  Size s(bound);
  s.expr_ = leaf(Kind::kSymbol, symbol);
  return s;
}

int64_t Size::fixed() const {
  if (!is_static()) {
    throw BuildError("a dimension of run-time size " + str() + " was used as a fixed number");
  }
  return bound_;
}

std::string Size::str() const {
  if (is_static()) return std::to_string(bound_);
  return "<=" + std::to_string(bound_) + ":" + text(expr_);
}

Size operator+(const Size& a, const Size& b) {
  Size result(a.bound_ + b.bound_);
  if (a.is_static() && b.is_static()) return result;
  auto [left, left_constant] = split_sum(expr_or_constant(a));
  auto [right, right_constant] = split_sum(expr_or_constant(b));
  ExprPtr sum = left == nullptr ? right : left;
  if (left != nullptr && right != nullptr) {
    sum = text(left) <= text(right) ? make(Kind::kAdd, left, right) : make(Kind::kAdd, right, left);
  }
  result.expr_ = plus_constant(std::move(sum), left_constant + right_constant);
  return result;
}

Size operator-(const Size& a, const Size& b) {
  if (b.is_static()) return a + Size(-b.bound_);
  if (a == b) return Size(0);
  Size result(a.bound_);
  result.expr_ = make(Kind::kSub, expr_or_constant(a), b.expr_);
  return result;
}

Size operator*(const Size& a, const Size& b) {
  Size result(a.bound_ * b.bound_);
  if ((a.is_static() && (b.is_static() || a.bound_ == 0)) || (b.is_static() && b.bound_ == 0)) {
    return result;
  }
  std::vector<ExprPtr> factors;
  const int64_t left = split_product(expr_or_constant(a), &factors);
  const int64_t right = split_product(expr_or_constant(b), &factors);
  result.expr_ = join_product(std::move(factors), left * right);
  return result;
}

Size floor_div(const Size& a, int64_t b) {
  if (b <= 0) throw BuildError("floor_div: the divisor must be positive, got " + std::to_string(b));
  const int64_t quotient = a.bound_ / b;
  Size result(a.bound_ % b != 0 && a.bound_ < 0 ? quotient - 1 : quotient);
  if (a.is_static()) return result;
  if (b == 1) return a;
  std::vector<ExprPtr> factors;
  const int64_t constant = split_product(a.expr_, &factors);
  if (constant % b == 0) {
    result.expr_ = join_product(std::move(factors), constant / b);
  } else {
    result.expr_ = make(Kind::kFloorDiv, a.expr_, leaf(Kind::kConstant, b));
  }
  return result;
}

bool operator==(const Size& a, const Size& b) {
  return a.bound_ == b.bound_ && same(a.expr_, b.expr_);
}

Size product(const Dims& dims) {
  Size result(1);
  for (const Size& d : dims) result = result * d;
  return result;
}

std::vector<int64_t> fixed(const Dims& dims) {
  std::vector<int64_t> result;
  result.reserve(dims.size());
  for (const Size& d : dims) result.push_back(d.fixed());
  return result;
}

bool all_static(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Size& d) { return d.is_static(); });
}

}  // namespace torch_tpu::stablehlo
