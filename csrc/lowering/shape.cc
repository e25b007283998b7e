// Data movement with sizes known beforehand: cat, stack, repeat, padding, flips, triangles, diagonals, and the gradients
// and scatters of slices, selects, diagonals and strided views.
#include <algorithm>
#include <numeric>

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/indexing.h"
#include "lowering/scan.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Compare;
using stablehlo::Monoid;

constexpr auto kIndex = ArgumentError::Kind::kIndex;

std::string text(int64_t n) { return std::to_string(n); }

Dims to_dims(const std::vector<int64_t>& sizes) { return Dims(sizes.begin(), sizes.end()); }

bool is_empty(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(),
                     [](const Size& s) { return s.is_static() && s.bound() == 0; });
}

Value zero_of(Builder& b, const Value& x) { return b.zeros({x.dtype(), {}}); }

// -- Joining --------------------------------------------------------------------------------------

// An empty vector stands for nothing at all, whatever the others' shape (older PyTorch code relies on it).
bool is_legacy_empty(const Value& x) { return x.rank() == 1 && x.dim(0) == Size(0); }

Values lower_cat(Call& c) {
  Builder& b = c.b;
  const Type out = c.out();
  Values parts;
  for (const Value& x : c.tensors("tensors")) {
    if (!is_legacy_empty(x)) parts.push_back(b.convert(x, out.dtype));
  }
  if (parts.empty()) return {b.zeros(out)};
  const int64_t dim = c.wrap_dim(c.integer("dim"), parts[0].rank());
  return {parts.size() == 1 ? parts[0] : b.concatenate(parts, dim)};
}

Values lower_stack(Call& c) {
  Builder& b = c.b;
  const Values tensors = c.tensors("tensors");
  c.check(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t dim = c.wrap_dim(c.integer("dim"), tensors[0].rank() + 1);
  Values parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    c.check(tensors[i].dims() == tensors[0].dims(),
            "stack expects each tensor to be equal size, but got " + sizes_text(tensors[0].dims()) +
                " at entry 0 and " + sizes_text(tensors[i].dims()) + " at entry " +
                std::to_string(i));
    Dims dims = tensors[i].dims();
    dims.insert(dims.begin() + dim, Size(1));
    parts.push_back(b.reshape(b.convert(tensors[i], c.promoted()), dims));
  }
  return {parts.size() == 1 ? parts[0] : b.concatenate(parts, dim)};
}

Values lower_block_diag(Call& c) {
  Builder& b = c.b;
  const Values tensors = c.tensors("tensors");
  if (tensors.empty()) return {b.zeros({DType::kF32, {Size(1), Size(0)}})};
  Values blocks;
  int64_t width = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Value x = b.convert(tensors[i], c.promoted());
    c.check(x.rank() <= 2,
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input " +
                std::to_string(i) + " has " + text(x.rank()) + " dimensions");
    if (x.rank() < 2) x = b.reshape(x, {Size(1), x.numel()});
    width += x.dim(1).fixed();
    blocks.push_back(x);
  }
  int64_t left = 0;
  for (Value& x : blocks) {
    const int64_t own = x.dim(1).fixed();
    x = b.pad(x, zero_of(b, x), {0, left}, {0, width - left - own});
    left += own;
  }
  return {blocks.size() == 1 ? blocks[0] : b.concatenate(blocks, 0)};
}

// Each tensor padded along dim to a multiple of num_chunks and cut into that many rows; rows of all tensors side by
// side.
Values lower_chunk_cat(Call& c) {
  Builder& b = c.b;
  const Values tensors = c.tensors("tensors");
  const int64_t chunks = c.integer("num_chunks");
  c.check(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  c.check(chunks >= 1, "_chunk_cat expects positive num_chunks");
  const int64_t dim = c.wrap_dim(c.integer("dim"), tensors[0].rank());
  Values rows;
  for (Value x : tensors) {
    c.check(x.rank() > dim, "_chunk_cat expects input tensors to have at least dim+1 dimensions");
    c.check(x.dtype() == tensors[0].dtype(),
            "_chunk_cat expects all input tensors with the same dtype");
    const int64_t n = x.dim(dim).fixed(), length = (n + chunks - 1) / chunks;
    std::vector<int64_t> low(x.rank(), 0), high(x.rank(), 0);
    high[dim] = length * chunks - n;
    x = b.pad(x, zero_of(b, x), low, high);
    Dims dims(x.dims().begin(), x.dims().begin() + dim);
    Size rest = length;
    for (int64_t i = dim + 1; i < x.rank(); ++i) rest = rest * x.dim(i);
    dims.push_back(chunks);
    dims.push_back(rest);
    rows.push_back(b.reshape(x, dims));
  }
  return {rows.size() == 1 ? rows[0] : b.concatenate(rows, dim + 1)};
}

// -- Repeating ------------------------------------------------------------------------------------

Values lower_repeat(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const std::vector<int64_t> repeats = c.ints("repeats");
  const int64_t rank = static_cast<int64_t>(repeats.size()), extra = rank - self.rank();
  c.check(extra >= 0,
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
          "tensor");
  Dims result, split;
  std::vector<int64_t> from;
  for (int64_t i = 0; i < rank; ++i) {
    const Size own = i < extra ? Size(1) : self.dim(i - extra);
    if (repeats[i] < 0) {
      std::vector<int64_t> sizes;
      for (int64_t j = 0; j < rank; ++j) {
        sizes.push_back(repeats[j] * (j < extra ? 1 : self.dim(j - extra).bound()));
      }
      c.check(sizes[i] >= 0, "Trying to create tensor with negative dimension " + text(sizes[i]) +
                                 ": " + sizes_text(sizes));
    }
    result.push_back(own * Size(std::max<int64_t>(repeats[i], 0)));
    // A dimension that repeats a single element, or an element once, needs no dimension of its own.
    if (own != Size(1) && repeats[i] != 1) split.push_back(repeats[i]);
    if (i >= extra) from.push_back(static_cast<int64_t>(split.size()));
    split.push_back(own == Size(1) ? Size(repeats[i]) : own);
  }
  if (is_empty(result)) return {b.zeros({self.dtype(), result})};
  return {b.reshape(b.broadcast_in_dim(self, split, from), result)};
}

// Without output_size the result's size depends on the data and the engine reads it first.
Values lower_repeat_interleave(Call& c) {
  Builder& b = c.b;
  Value repeats = c.tensor("repeats");
  c.check(repeats.rank() == 1, "repeat_interleave only accept 1D vector as repeat");
  c.check(repeats.dtype() == DType::kI64 || repeats.dtype() == DType::kI32,
          std::string("\"repeat_interleave\" not implemented for '") +
              scalar_type_name(repeats.dtype()) + "'",
          ArgumentError::Kind::kNotImplemented);
  const int64_t size = c.integer("output_size");
  const Size n = repeats.dim(0);
  if (size == 0 || n == Size(0)) return {b.zeros({repeats.dtype(), {Size(size)}})};
  // Element i starts at the sum of those before it; the running number of starts names the element.
  Value ends = running_sum(b, b.convert(repeats, DType::kI64), 0);
  Value starts = hits(b, positions(b, ends, size, false), size);
  return {b.convert(running_sum(b, starts, 0), repeats.dtype())};
}

// -- Padding, flips, rolls --------------------------------------------------------------------------

Values lower_constant_pad(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const std::vector<int64_t> pad = c.ints("pad");
  const int64_t rank = self.rank(), count = static_cast<int64_t>(pad.size());
  c.check(count % 2 == 0, "Length of pad must be even but instead it equals " + text(count));
  c.check(count / 2 <= rank,
          "Length of pad should be no more than twice the number of dimensions of the input. Pad "
          "length is " +
              text(count) + "while the input has " + text(rank) + "dimensions.");
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (int64_t i = 0; i < count / 2; ++i) {
    const int64_t dim = rank - 1 - i;
    low[dim] = pad[2 * i];
    high[dim] = pad[2 * i + 1];
    if (!self.dim(dim).is_static()) continue;
    const int64_t n = self.dim(dim).fixed();
    c.check(n + low[dim] + high[dim] >= 0,
            "The input size " + text(n) + ", plus negative padding " + text(low[dim]) + " and " +
                text(high[dim]) +
                ", resulted in a negative output size, which is invalid. Check "
                "dimension " +
                text(dim) + " of your input.");
    c.check(n + std::min(low[dim], high[dim]) >= 0, "narrow(): length must be non-negative.");
  }
  return {b.pad(self, c.scalar("value", self.dtype()), low, high)};
}

Values lower_flip(Call& c) {
  Value self = c.tensor("self");
  const std::vector<int64_t> dims = c.ints("dims");
  if (dims.empty()) return {self};
  return {c.b.reverse(self, c.wrap_dims(dims, self.rank()))};
}

Value roll_dim(Builder& b, Value x, int64_t dim, int64_t shift) {
  const int64_t n = x.dim(dim).fixed();
  if (n == 0) return x;
  shift = ((shift % n) + n) % n;
  if (shift == 0) return x;
  return b.concatenate({b.slice_dim(x, dim, n - shift, n), b.slice_dim(x, dim, 0, n - shift)}, dim);
}

Values lower_roll(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const std::vector<int64_t> shifts = c.ints("shifts"), dims = c.ints("dims");
  c.check(!shifts.empty(), "`shifts` required");
  c.check(dims.empty() || self.rank() > 0 || is_empty(self.dims()),
          "Dimension specified as " + text(dims.empty() ? 0 : dims[0]) +
              " but tensor has no dimensions",
          kIndex);
  const bool flat = dims.empty() && shifts.size() == 1;
  c.check(flat || shifts.size() == dims.size(),
          "shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
              ", dims:" + std::to_string(dims.size()));
  if (flat) return {b.reshape(roll_dim(b, b.flatten(self), 0, shifts[0]), self.dims())};
  Value x = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = c.wrap_dim(dims[i], self.rank());
    if (self.rank() > 0) x = roll_dim(b, x, dim, shifts[i]);
  }
  return {x};
}

Values lower_rot90(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const std::vector<int64_t> dims = c.ints("dims");
  const int64_t rank = self.rank();
  c.check(dims.size() == 2,
          "expected total rotation dims == 2, but got dims = " + std::to_string(dims.size()));
  c.check(rank >= 2, "expected total dims >= 2, but got total dims = " + text(rank));
  c.check(dims[0] != dims[1] && std::abs(dims[0] - dims[1]) != rank,
          "expected rotation dims to be different, but got dim0 = " + text(dims[0]) +
              " and dim1 = " + text(dims[1]));
  for (int64_t d : dims) {
    c.check(d < rank && d >= -rank, "Rotation dim0 out of range, dim0 = " + text(d), kIndex);
  }
  const int64_t first = c.wrap_dim(dims[0], rank), second = c.wrap_dim(dims[1], rank);
  const int64_t turns = ((c.integer("k") % 4) + 4) % 4;
  if (turns == 0) return {self};
  if (turns == 2) return {b.reverse(self, {first, second})};
  std::vector<int64_t> order = all_axes(rank);
  std::swap(order[first], order[second]);
  return {b.transpose(b.reverse(self, {turns == 1 ? second : first}), order)};
}

// -- Triangles and diagonals ------------------------------------------------------------------------

// [rows, columns]: column - row compared with offset.
Value diagonal_mask(Builder& b, const Size& rows, const Size& columns, Compare op, int64_t offset) {
  const Dims dims{rows, columns};
  Value distance = b.sub(b.iota(DType::kI32, dims, 1), b.iota(DType::kI32, dims, 0));
  const int64_t limit = 1ll << 30;  // beyond every possible distance
  offset = std::clamp(offset, -limit, limit);
  return b.compare(op, distance, b.constant_int(offset, DType::kI32));
}

Values triangle(Call& c, Compare op) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  if (is_empty(self.dims())) return {self};
  Value kept = diagonal_mask(b, self.dim(-2), self.dim(-1), op, c.integer("diagonal"));
  return {b.select(b.broadcast_to(kept, self.dims()), self, zero_of(b, self))};
}

Values lower_tril(Call& c) { return triangle(c, Compare::kLe); }
Values lower_triu(Call& c) { return triangle(c, Compare::kGe); }

Values lower_trace(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  c.check(self.rank() == 2,
          "trace: expected a matrix, but got tensor with dim " + text(self.rank()));
  c.check(self.dtype() != DType::kPred, "\"trace\" not implemented for 'Bool'",
          ArgumentError::Kind::kNotImplemented);
  const bool integral = stablehlo::is_int(self.dtype());
  const DType result = integral ? DType::kI64 : self.dtype();
  Value x = wide(b, b.convert(self, result));
  Value kept = diagonal_mask(b, self.dim(0), self.dim(1), Compare::kEq, 0);
  Value sum = b.reduce(Monoid::kAdd, b.select(kept, x, zero_of(b, x)), {0, 1});
  return {b.convert(sum, result)};
}

// The last dimension laid along a diagonal of a square matrix, the other dimensions before it.
Value lay_diagonal(Builder& b, Value x, int64_t offset) {
  const int64_t rank = x.rank(), shift = std::abs(offset);
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  high[rank - 1] = shift;
  Value padded = b.pad(x, zero_of(b, x), low, high);
  const Size n = padded.dim(-1);
  Dims square = padded.dims();
  square.push_back(n);
  // On or above the main diagonal the row is the element's number, below it the column.
  std::vector<int64_t> from = all_axes(rank);
  if (offset < 0) from[rank - 1] = rank;
  Value spread = b.broadcast_in_dim(padded, square, from);
  Value kept = diagonal_mask(b, n, n, Compare::kEq, offset);
  return b.select(b.broadcast_to(kept, square), spread, zero_of(b, x));
}

// Moves the last two dimensions to dim1 and dim2.
Value place_last_two(Builder& b, Value x, int64_t dim1, int64_t dim2) {
  std::vector<int64_t> order(x.rank());
  int64_t next = 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    order[i] = i == dim1 ? x.rank() - 2 : i == dim2 ? x.rank() - 1 : next++;
  }
  return b.transpose(x, order);
}

void check_distinct(const Call& c, int64_t dim1, int64_t dim2, int64_t given1, int64_t given2) {
  c.check(dim1 != dim2,
          "diagonal dimensions cannot be identical " + text(given1) + ", " + text(given2));
}

Values lower_diag_embed(Call& c) {
  Value self = c.tensor("self");
  const int64_t given1 = c.integer("dim1"), given2 = c.integer("dim2");
  const int64_t dim1 = c.wrap_dim(given1, self.rank() + 1);
  const int64_t dim2 = c.wrap_dim(given2, self.rank() + 1);
  check_distinct(c, dim1, dim2, given1, given2);
  c.check(self.rank() > 0, "Dimension specified as -1 but tensor has no dimensions", kIndex);
  return {place_last_two(c.b, lay_diagonal(c.b, self, c.integer("offset")), dim1, dim2)};
}

int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
  return std::max<int64_t>(
      offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns), 0);
}

// `base` with the diagonal of dimensions dim1 and dim2 replaced; the diagonal is src's last dimension.
Value replace_diagonal(Builder& b, Value base, Value src, int64_t offset, int64_t dim1,
                       int64_t dim2) {
  if (is_empty(src.dims())) return base;
  const int64_t rows = base.dim(dim1).fixed(), columns = base.dim(dim2).fixed();
  // src's element i belongs to row i + down and column i + right; spread it along the columns.
  const int64_t down = std::max<int64_t>(-offset, 0);
  const int64_t n = src.dim(-1).fixed(), last = src.rank() - 1;
  std::vector<int64_t> low(src.rank(), 0), high(src.rank(), 0);
  low[last] = down;
  high[last] = rows - down - n;
  Value column = b.pad(src, zero_of(b, src), low, high);
  Dims matrix = column.dims();
  matrix.push_back(columns);
  Value spread = b.broadcast_in_dim(column, matrix, all_axes(src.rank()));
  Value chosen = b.broadcast_to(diagonal_mask(b, rows, columns, Compare::kEq, offset), matrix);
  return b.select(place_last_two(b, chosen, dim1, dim2), place_last_two(b, spread, dim1, dim2),
                  base);
}

void check_slice_size(const Call& c, const Dims& src, const Dims& slice) {
  c.check(src == slice, "expected src to have a size equal to the slice of self. src size = " +
                            sizes_text(src) + ", slice size = " + sizes_text(slice));
}

Value diagonal_into(Call& c, Value base, Value src) {
  const int64_t given1 = c.integer("dim1"), given2 = c.integer("dim2");
  const int64_t dim1 = c.wrap_dim(given1, base.rank()), dim2 = c.wrap_dim(given2, base.rank());
  check_distinct(c, dim1, dim2, given1, given2);
  const int64_t offset = c.integer("offset");
  Dims diagonal;
  for (int64_t i = 0; i < base.rank(); ++i) {
    if (i != dim1 && i != dim2) diagonal.push_back(base.dim(i));
  }
  diagonal.push_back(diagonal_length(base.dim(dim1).fixed(), base.dim(dim2).fixed(), offset));
  check_slice_size(c, src.dims(), diagonal);
  return replace_diagonal(c.b, base, src, offset, dim1, dim2);
}

Values lower_diagonal_scatter(Call& c) {
  Value self = c.tensor("self");
  return {diagonal_into(c, self, c.tensor("src", self.dtype()))};
}

Value zeros_of_input(Call& c, const Value& grad) {
  return c.b.zeros({grad.dtype(), to_dims(c.ints("input_sizes"))});
}

Values lower_diagonal_backward(Call& c) {
  Value grad = c.tensor("grad_output");
  return {diagonal_into(c, zeros_of_input(c, grad), grad)};
}

// -- Slices and selects -----------------------------------------------------------------------------

struct Range {
  int64_t start, length, step;
};

// Python's rules: negative ends count from the back, all are clamped.
Range slice_range(const Call& c, int64_t n) {
  int64_t start = c.integer_or("start", 0), end = c.integer_or("end", n);
  const int64_t step = c.integer("step");
  c.check(step > 0, "slice step must be positive");
  if (start < 0) start += n;
  if (end < 0) end += n;
  start = std::clamp<int64_t>(start, 0, n);
  end = std::clamp<int64_t>(end, start, n);
  return {start, (end - start + step - 1) / step, step};
}

// `update` where it belongs in a zero tensor whose dimension dim has n elements.
Value spread_slice(Builder& b, Value update, int64_t dim, int64_t n, const Range& range) {
  const int64_t covered = range.start + (range.length - 1) * range.step + 1;
  std::vector<int64_t> low(update.rank(), 0), high(update.rank(), 0), interior(update.rank(), 0);
  low[dim] = range.start;
  high[dim] = n - covered;
  interior[dim] = range.step - 1;
  return b.pad(update, zero_of(b, update), low, high, interior);
}

Values lower_slice_backward(Call& c) {
  Value grad = c.tensor("grad_output");
  Value zeros = zeros_of_input(c, grad);
  const int64_t dim = c.wrap_dim(c.integer("dim"), zeros.rank());
  const int64_t n = zeros.dim(dim).fixed();
  const Range range = slice_range(c, n);
  Dims part = zeros.dims();
  part[dim] = Size(range.length);
  check_broadcast(c, part, grad.dims());
  c.check(grad.rank() <= zeros.rank(),
          "slice_backward: the gradient has more dimensions than the input");
  if (is_empty(part)) return {zeros};
  return {spread_slice(c.b, c.b.broadcast_to(grad, part), dim, n, range)};
}

Value slice_into(Builder& b, Value self, Value src, int64_t dim, const Range& range) {
  if (is_empty(src.dims())) return self;
  if (range.step == 1) {
    Values starts(self.rank(), b.constant_int(0, DType::kI32));
    starts[dim] = b.constant_int(range.start, DType::kI32);
    return b.dynamic_update_slice(self, src, starts);
  }
  const int64_t n = self.dim(dim).fixed();
  Value chosen = spread_slice(b, b.constant_bool(true, {Size(range.length)}), 0, n, range);
  chosen = b.broadcast_to(along_axis(b, chosen, self.rank(), dim), self.dims());
  return b.select(chosen, spread_slice(b, src, dim, n, range), self);
}

Values lower_slice_scatter(Call& c) {
  Value self = c.tensor("self"), src = c.tensor("src", self.dtype());
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  c.check(self.rank() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const Range range = slice_range(c, self.dim(dim).fixed());
  Dims slice = self.dims();
  slice[dim] = range.length;
  check_slice_size(c, src.dims(), slice);
  return {slice_into(c.b, self, src, dim, range)};
}

// The row `index` of dimension dim replaced by src, which lacks that dimension.
Value select_into(Call& c, Value base, Value src) {
  c.check(base.rank() > 0, "select() cannot be applied to a 0-dim tensor.", kIndex);
  const int64_t dim = c.wrap_dim(c.integer("dim"), base.rank()), index = c.integer("index");
  const int64_t n = base.dim(dim).fixed();
  c.check(index >= -n && index < n,
          "select(): index " + text(index) + " out of range for tensor of size " +
              sizes_text(base.dims()) + " at dimension " + text(dim),
          kIndex);
  Dims slice = base.dims();
  slice.erase(slice.begin() + dim);
  check_slice_size(c, src.dims(), slice);
  slice.insert(slice.begin() + dim, Size(1));
  const Range range{index < 0 ? index + n : index, 1, 1};
  return slice_into(c.b, base, c.b.reshape(src, slice), dim, range);
}

Values lower_select_scatter(Call& c) {
  Value self = c.tensor("self");
  return {select_into(c, self, c.tensor("src", self.dtype()))};
}

Values lower_select_backward(Call& c) {
  Value grad = c.tensor("grad_output");
  Value zeros = zeros_of_input(c, grad);
  if (grad.rank() == 0 && zeros.rank() > 1) {
    Dims part = zeros.dims();
    part.erase(part.begin() + c.wrap_dim(c.integer("dim"), zeros.rank()));
    grad = c.b.broadcast_to(grad, part);
  }
  return {select_into(c, zeros, grad)};
}

// -- Reshaping copies and splits --------------------------------------------------------------------

Dims infer_sizes(const Call& c, const std::vector<int64_t>& sizes, const Size& numel) {
  int64_t known = 1, inferred = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      c.check(inferred < 0, "only one dimension can be inferred");
      inferred = static_cast<int64_t>(i);
      continue;
    }
    c.check(sizes[i] >= 0, "invalid shape dimension " + text(sizes[i]) + " at index " +
                               std::to_string(i) + " of shape " + sizes_text(sizes));
    known *= sizes[i];
  }
  const int64_t n = numel.fixed();
  const bool fits = inferred < 0 ? known == n : known > 0 ? n % known == 0 : n == 0;
  c.check(fits, "shape '" + sizes_text(sizes) + "' is invalid for input of size " + text(n));
  c.check(inferred < 0 || known != 0,
          "cannot reshape tensor of 0 elements into shape " + sizes_text(sizes) +
              " because the unspecified dimension size -1 can be any value and is ambiguous");
  Dims dims = to_dims(sizes);
  if (inferred >= 0) dims[inferred] = n / known;
  return dims;
}

Values lower_reshape(Call& c) {
  Value self = c.tensor("self");
  return {c.b.reshape(self, infer_sizes(c, c.ints("size"), self.numel()))};
}

Values lower_narrow_copy(Call& c) {
  Value self = c.tensor("self");
  c.check(self.rank() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  const int64_t n = self.dim(dim).fixed(), length = c.integer("length");
  int64_t start = c.integer("start");
  c.check(start >= -n && start <= n,
          "start out of range (expected to be in range of [" + text(-n) + ", " + text(n) +
              "], but got " + text(start) + ")",
          kIndex);
  if (start < 0) start += n;
  c.check(length >= 0 && start + length <= n, "start (" + text(start) + ") + length (" +
                                                  text(length) + ") exceeds dimension size (" +
                                                  text(n) + ").");
  return {c.b.slice_dim(self, dim, start, start + length)};
}

Values split(Call& c, Value self, int64_t dim, const std::vector<int64_t>& sizes) {
  Values parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(c.b.slice_dim(self, dim, start, start + size));
    start += size;
  }
  return parts;
}

Values lower_split(Call& c) {
  Value self = c.tensor("self");
  c.check(self.rank() > 0, "split expects at least a 1-dimensional tensor");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank()), size = c.integer("split_size");
  const int64_t n = self.dim(dim).fixed();
  c.check(size >= 0, "split expects split_size be non-negative, but got split_size=" + text(size));
  c.check(size > 0 || n == 0,
          "split_size can only be 0 if dimension size is 0, but got dimension size of " + text(n));
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < n; start += size) sizes.push_back(std::min(size, n - start));
  if (sizes.empty()) sizes.push_back(0);
  return split(c, self, dim, sizes);
}

Values lower_split_with_sizes(Call& c) {
  Value self = c.tensor("self");
  c.check(self.rank() > 0, "split expects at least a 1-dimensional tensor");
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  const int64_t n = self.dim(dim).fixed();
  const std::vector<int64_t> sizes = c.ints("split_sizes");
  int64_t sum = 0;
  for (int64_t size : sizes) {
    c.check(size >= 0,
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            "split_sizes=" +
                sizes_text(sizes));
    sum += size;
  }
  c.check(sum == n, "split_with_sizes expects split_sizes to sum exactly to " + text(n) +
                        " (input tensor's size at dimension " + text(dim) +
                        "), but got split_sizes=" + sizes_text(sizes));
  return split(c, self, dim, sizes);
}

Values lower_unbind(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  c.check(self.rank() > 0, "Dimension specified as 0 but tensor has no dimensions", kIndex);
  const int64_t dim = c.wrap_dim(c.integer("dim"), self.rank());
  Dims row = self.dims();
  row.erase(row.begin() + dim);
  Values rows;
  for (int64_t i = 0; i < self.dim(dim).fixed(); ++i) {
    rows.push_back(b.reshape(b.slice_dim(self, dim, i, i + 1), row));
  }
  return rows;
}

// -- Channels and pixels ----------------------------------------------------------------------------

// The last dimensions regrouped: reshaped to `split`, permuted, reshaped to `merged`; leading dimensions stay.
Value regroup(Builder& b, Value x, int64_t leading, const Dims& split,
              const std::vector<int64_t>& permutation, const Dims& merged) {
  const Dims head(x.dims().begin(), x.dims().begin() + leading);
  Dims from = head, to = head;
  from.insert(from.end(), split.begin(), split.end());
  to.insert(to.end(), merged.begin(), merged.end());
  std::vector<int64_t> order = all_axes(leading);
  for (int64_t p : permutation) order.push_back(leading + p);
  return b.reshape(b.transpose(b.reshape(x, from), order), to);
}

Values lower_pixel_shuffle(Call& c) {
  Value self = c.tensor("self");
  const int64_t r = c.integer("upscale_factor"), rank = self.rank();
  c.check(rank >= 3,
          "pixel_shuffle expects input to have at least 3 dimensions, but got input with " +
              text(rank) + " dimension(s)");
  c.check(r > 0, "pixel_shuffle expects a positive upscale_factor, but got " + text(r));
  const int64_t channels = self.dim(-3).fixed();
  c.check(channels % (r * r) == 0,
          "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
          "upscale_factor, but input.size(-3)=" +
              text(channels) + " is not divisible by " + text(r * r));
  const Size h = self.dim(-2), w = self.dim(-1);
  const Size out = channels / (r * r);
  return {regroup(c.b, self, rank - 3, {out, r, r, h, w}, {0, 3, 1, 4, 2}, {out, h * r, w * r})};
}

Values lower_pixel_unshuffle(Call& c) {
  Value self = c.tensor("self");
  const int64_t r = c.integer("downscale_factor"), rank = self.rank();
  c.check(rank >= 3,
          "pixel_unshuffle expects input to have at least 3 dimensions, but got input with " +
              text(rank) + " dimension(s)");
  c.check(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got " + text(r));
  const int64_t h = self.dim(-2).fixed(), w = self.dim(-1).fixed();
  c.check(h % r == 0,
          "pixel_unshuffle expects height to be divisible by downscale_factor, but "
          "input.size(-2)=" +
              text(h) + " is not divisible by " + text(r));
  c.check(w % r == 0,
          "pixel_unshuffle expects width to be divisible by downscale_factor, but "
          "input.size(-1)=" +
              text(w) + " is not divisible by " + text(r));
  const Size channels = self.dim(-3);
  return {regroup(c.b, self, rank - 3, {channels, h / r, r, w / r, r}, {0, 2, 4, 1, 3},
                  {channels * (r * r), h / r, w / r})};
}

Values lower_channel_shuffle(Call& c) {
  Builder& b = c.b;
  Value self = c.tensor("self");
  const int64_t groups = c.integer("groups");
  c.check(self.rank() > 2,
          "channel_shuffle expects input with > 2 dims, but got input with sizes " +
              sizes_text(self.dims()));
  c.check(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:" +
                          text(groups));
  const int64_t channels = self.dim(1).fixed();
  c.check(channels % groups == 0, "Number of channels must be divisible by groups. Got " +
                                      text(channels) + " channels and " + text(groups) +
                                      " groups.");
  Dims split = self.dims();
  split[1] = groups;
  split.insert(split.begin() + 2, Size(channels / groups));
  std::vector<int64_t> order = all_axes(self.rank() + 1);
  std::swap(order[1], order[2]);
  return {b.reshape(b.transpose(b.reshape(self, split), order), self.dims())};
}

}  // namespace

const OpRow kShapeRows[] = {
    {"cat", lower_cat, "", Infer::kComposite, Tolerance::kExact},
    {"stack", lower_stack, "", Infer::kLowering, Tolerance::kExact},
    {"_stack", lower_stack, "", Infer::kLowering, Tolerance::kExact},
    {"block_diag", lower_block_diag, "", Infer::kLowering, Tolerance::kExact},
    {"_chunk_cat", lower_chunk_cat, "", Infer::kLowering, Tolerance::kExact},
    {"repeat", lower_repeat, "", Infer::kLowering, Tolerance::kExact},
    {"repeat_interleave.Tensor", lower_repeat_interleave, "", Infer::kLowering, Tolerance::kExact},
    {"constant_pad_nd", lower_constant_pad, "", Infer::kLowering, Tolerance::kExact},
    {"flip", lower_flip, "", Infer::kLikeFirst, Tolerance::kExact},
    {"roll", lower_roll, "", Infer::kLowering, Tolerance::kExact},
    {"rot90", lower_rot90, "", Infer::kLowering, Tolerance::kExact},
    {"tril", lower_tril, "", Infer::kComposite, Tolerance::kExact},
    {"triu", lower_triu, "", Infer::kComposite, Tolerance::kExact},
    {"trace", lower_trace, "", Infer::kLowering, Tolerance::kReduction},
    {"diag_embed", lower_diag_embed, "", Infer::kLowering, Tolerance::kExact},
    {"diagonal_scatter", lower_diagonal_scatter, "", Infer::kComposite, Tolerance::kExact},
    {"diagonal_backward", lower_diagonal_backward, "", Infer::kLowering, Tolerance::kExact},
    {"slice_scatter", lower_slice_scatter, "", Infer::kComposite, Tolerance::kExact},
    {"slice_backward", lower_slice_backward, "", Infer::kLowering, Tolerance::kExact},
    {"select_scatter", lower_select_scatter, "", Infer::kComposite, Tolerance::kExact},
    {"select_backward", lower_select_backward, "", Infer::kLowering, Tolerance::kExact},
    {"_unsafe_view", lower_reshape, "", Infer::kLowering, Tolerance::kExact},
    {"_reshape_copy", lower_reshape, "", Infer::kLowering, Tolerance::kExact},
    {"view_copy", lower_reshape, "", Infer::kLowering, Tolerance::kExact},
    {"narrow_copy", lower_narrow_copy, "", Infer::kLowering, Tolerance::kExact},
    {"split_copy.Tensor", lower_split, "", Infer::kLowering, Tolerance::kExact},
    {"split_with_sizes_copy", lower_split_with_sizes, "", Infer::kLowering, Tolerance::kExact},
    {"unbind_copy.int", lower_unbind, "", Infer::kLowering, Tolerance::kExact},
    {"pixel_shuffle", lower_pixel_shuffle, "", Infer::kLowering, Tolerance::kExact},
    {"pixel_unshuffle", lower_pixel_unshuffle, "", Infer::kLowering, Tolerance::kExact},
    {"channel_shuffle", lower_channel_shuffle, "", Infer::kLowering, Tolerance::kExact},
};
const size_t kShapeRowCount = std::size(kShapeRows);

}  // namespace torch_tpu::lowering
