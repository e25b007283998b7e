// Gather and scatter along one dimension with PyTorch's rules for indices, shared by several families.
//
// An index out of range reads as NaN (0 for integers and bools) and is dropped in writes; it never reaches another
// element's bytes.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

// Indices into a dimension of size n as i32 (i64 where n needs it). What is out of range becomes -1 or n, whatever it
// was. `wrap` counts negative indices from the end.
Value positions(Builder& b, Value index, const Size& n, bool wrap);
// Debug mode: raises `message` where an index is outside a dimension of size n.
void check_index(Call& c, Value index, const Size& n, bool wrap, const std::string& message,
                 ArgumentError::Kind kind = ArgumentError::Kind::kIndex);
// PyTorch's usual words for that.
std::string out_of_bounds(int64_t dim, const Size& n);
std::string out_of_elements(const Value& self);
std::string out_of_range_in_self(const Size& n);
Value in_range(Builder& b, Value position, const Size& n);
// What an index out of range reads.
Value unreadable(Builder& b, DType dtype, const Dims& dims = {});

// x[..., index, ...] at `dim`: the index's dimensions take the dimension's place. `index` comes from positions().
Value take_rows(Builder& b, Value x, int64_t dim, Value index);
// out[i][j][k] = x[i][index[i][j][k]][k] for dim 1: one position an element; other dimensions no larger than x's.
Value gather_along(Builder& b, Value x, int64_t dim, Value index);

enum class Merge { kAssign, kAdd, kMultiply, kMaximum, kMinimum };
Value merge(Builder& b, Merge how, Value current, Value update);
Builder::Body merge_body(Builder& b, Merge how);
// The inverses of take_rows and gather_along; assignments of one element in order, the last one stays.
Value put_rows(Builder& b, Value x, int64_t dim, Value index, Value updates, Merge how);
Value scatter_along(Builder& b, Value x, int64_t dim, Value index, Value updates, Merge how);

// How many updates each position of a dimension of size n takes, i32.
Value hits(Builder& b, Value index, const Size& n);

// NumPy's broadcast of two shapes; false when they do not fit.
bool broadcast_shapes(const Dims& x, const Dims& y, Dims* result);
// Whether `from` broadcasts to exactly `to`.
bool expandable(const Dims& from, const Dims& to);

// index.Tensor's and index_put's plan: which dimensions are indexed, and where the indices' shape lands.
struct IndexPlan {
  std::vector<int64_t> dims;    // of self, indexed
  Dims shape;                   // the indices' broadcast shape
  Value vector;                 // shape + [dims.size()], a position for each indexed dimension
  Value valid;                  // shape: all of them in range
  Dims result;                  // shape of self[indices]
  std::vector<int64_t> window;  // the result's dimensions that come from self
  std::vector<int64_t> spread;  // the result's dimensions that come from `shape`
};
IndexPlan plan_index(Call& c, const Value& self, const Values& indices);

}  // namespace torch_tpu::lowering
