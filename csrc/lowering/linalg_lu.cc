// LU factors by Gaussian elimination with partial pivoting, and what is solved with them.
#include "lowering/axes.h"
#include "lowering/indexing.h"
#include "lowering/linalg.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Monoid;
using stablehlo::Unary;

Value i32(Builder& b, int64_t value) { return b.constant_int(value, DType::kI32); }

Value zero_of(Builder& b, const Value& x) { return b.zeros({x.dtype(), {}}); }

// Factors of [N, m, n] matrices: PA = LU, both in one array as LAPACK packs them.
struct Factors {
  Value lu;
  Value pivots;       // [N, min(m, n)]: the row that row k changed places with, counted from 1
  Value permutation;  // [N, m]: row i of PA is row permutation[i] of A
  Value info;         // [N]: the first k with U[k, k] == 0, counted from 1; 0 where there is none
};

// The number LAPACK compares pivots by.
Value magnitude(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return b.abs(x);
  return b.add(b.abs(b.unary(Unary::kReal, x)), b.abs(b.unary(Unary::kImag, x)));
}

// Exchanges positions k and p along dimension 1 of x; p has x's rank with ones after the batch.
Value exchange(Builder& b, Value x, Value k, Value p) {
  Value zero = i32(b, 0);
  std::vector<int64_t> sizes = fixed(x.dims());
  sizes[1] = 1;
  Values starts(x.rank(), zero);
  starts[1] = k;
  Dims counter(x.rank(), Size(1));
  counter[1] = x.dim(1);
  Value place = b.iota(DType::kI32, counter, 1);
  Value at_k = b.dynamic_slice(x, starts, sizes);
  Value is_p = b.broadcast_to(b.eq(place, p), x.dims());
  Value at_p = b.reduce(Monoid::kAdd, b.select(is_p, x, zero_of(b, x)), {1}, true);
  x = b.select(is_p, b.broadcast_to(at_k, x.dims()), x);
  return b.select(b.broadcast_to(b.eq(place, k), x.dims()), b.broadcast_to(at_p, x.dims()), x);
}

// The row with the largest magnitude in column k among rows k and below, [N, 1, 1].
Value find_pivot(Builder& b, Value lu, Value k) {
  Value column = column_at(b, lu, k);
  Value size = magnitude(b, column);
  Value row = b.iota(DType::kI32, size.dims(), 1);
  size = b.select(b.ge(row, k), size, b.constant(-1.0, size.dtype()));
  Value best = arg_reduce(b, b.reshape(size, {size.dim(0), size.dim(1)}), 1, true).second;
  return b.reshape(b.convert(best, DType::kI32), {size.dim(0), Size(1), Size(1)});
}

Factors factorize(Builder& b, Value a, bool pivot) {
  const Size count = a.dim(0), m = a.dim(1), n = a.dim(2);
  const int64_t steps = std::min(m.fixed(), n.fixed());
  const Dims one{count, Size(1), Size(1)};
  Value pivots0 = b.iota(DType::kI32, {count, Size(steps)}, 1);
  pivots0 = b.add(pivots0, i32(b, 1));
  Values inits{i32(b, 0), a, pivots0, b.iota(DType::kI32, {count, m}, 1),
               b.zeros({DType::kI32, one})};
  auto condition = [&](const Values& v) -> Values { return {b.lt(v[0], i32(b, steps))}; };
  auto body = [&](const Values& v) -> Values {
    Value k = v[0], lu = v[1], pivots = v[2], permutation = v[3], info = v[4];
    Value next = b.add(k, i32(b, 1));
    if (pivot) {
      Value p = find_pivot(b, lu, k);
      Value flat = b.reshape(p, {count, Size(1)});
      lu = exchange(b, lu, k, p);
      permutation = exchange(b, permutation, k, flat);
      Value is_k = b.eq(b.iota(DType::kI32, pivots.dims(), 1), k);
      pivots = b.select(is_k, b.broadcast_to(b.add(flat, i32(b, 1)), pivots.dims()), pivots);
    }
    Value top = row_at(b, lu, k), column = column_at(b, lu, k);
    Value head = row_at(b, column, k);
    Value singular = b.eq(head, zero_of(b, head));
    Value fresh = b.logical_and(singular, b.eq(info, i32(b, 0)));
    info = b.select(fresh, next, info);
    Value divisor = b.select(singular, b.constant_int(1, head.dtype()), head);
    Value below = b.gt(b.iota(DType::kI32, {Size(1), m, Size(1)}, 1), k);
    Value right = b.gt(b.iota(DType::kI32, {Size(1), Size(1), n}, 2), k);
    Value is_column = b.eq(b.iota(DType::kI32, {Size(1), Size(1), n}, 2), k);
    Value factor = b.select(b.broadcast_to(below, column.dims()), b.div(column, divisor), column);
    Value inner = b.broadcast_to(b.logical_and(below, right), lu.dims());
    lu = b.select(inner, b.sub(lu, b.mul(factor, top)), lu);
    lu = b.select(b.broadcast_to(is_column, lu.dims()), b.broadcast_to(factor, lu.dims()), lu);
    return {next, lu, pivots, permutation, info};
  };
  Values end = b.while_loop(inits, condition, body);
  return {end[1], end[2], end[3], b.reshape(end[4], {count})};
}

// The permutation that a list of exchanges amounts to, [N, m].
Value permutation_of(Builder& b, Value pivots, const Size& m) {
  const Size count = pivots.dim(0);
  const int64_t steps = pivots.dim(1).fixed();
  Values inits{i32(b, 0), b.iota(DType::kI32, {count, m}, 1)};
  auto condition = [&](const Values& v) -> Values { return {b.lt(v[0], i32(b, steps))}; };
  auto body = [&](const Values& v) -> Values {
    Value p = b.dynamic_slice(pivots, {i32(b, 0), v[0]}, {count.fixed(), 1});
    return {b.add(v[0], i32(b, 1)), exchange(b, v[1], v[0], b.sub(p, i32(b, 1)))};
  };
  return b.while_loop(inits, condition, body)[1];
}

Value invert_permutation(Builder& b, Value permutation) {
  Value place = b.iota(DType::kI32, permutation.dims(), 1);
  return scatter_along(b, b.zeros(permutation.type()), 1, permutation, place, Merge::kAssign);
}

Value permute_rows(Builder& b, Value x, Value permutation) {
  Value index = b.broadcast_in_dim(permutation, x.dims(), {0, 1});
  return gather_along(b, x, 1, index);
}

// A X = rhs, or A^H X = rhs, for factors of A.
Value solve_left(Builder& b, Value lu, Value permutation, Value rhs, bool of_adjoint) {
  if (!of_adjoint) {
    Value x = b.triangular_solve(lu, permute_rows(b, rhs, permutation), true, true, true, false);
    return b.triangular_solve(lu, x, true, false, false, false);
  }
  Value x = b.triangular_solve(lu, rhs, true, false, false, false, true);
  x = b.triangular_solve(lu, x, true, true, true, false, true);
  return permute_rows(b, x, invert_permutation(b, permutation));
}

Value solve_flat(Builder& b, Value lu, Value permutation, Value rhs, bool left, bool of_adjoint) {
  if (left) return solve_left(b, lu, permutation, rhs, of_adjoint);
  return adjoint(b, solve_left(b, lu, permutation, adjoint(b, rhs), !of_adjoint));
}

bool is_empty(const Value& x) { return x.numel() == Size(0); }

Factors empty_factors(Builder& b, const Value& a) {
  const Size count = product(batch_of(a)), m = a.dim(-2), n = a.dim(-1);
  const Size steps = std::min(m.fixed(), n.fixed());
  Value flat = flatten_batch(b, a);
  const Type pivots{DType::kI32, {count, steps}}, permutation{DType::kI32, {count, m}};
  const bool rows = product(permutation.dims) != Size(0);
  return {flat, b.zeros(pivots),
          rows ? b.iota(DType::kI32, permutation.dims, 1) : b.zeros(permutation),
          b.zeros({DType::kI32, {count}})};
}

Factors factors_of(Builder& b, const Value& a, bool pivot = true) {
  return is_empty(a) ? empty_factors(b, a) : factorize(b, flatten_batch(b, a), pivot);
}

// linalg.det and slogdet factor the transpose of a contiguous real matrix; their gradients count on it.
bool factors_transpose(const Call& c) {
  return c.is_contiguous("A") && !stablehlo::is_complex(c.tensor("A").dtype());
}

// -1 for each exchange of two different rows, multiplied up, [N].
Value permutation_sign(Builder& b, Value pivots, DType real) {
  const Dims result{pivots.dim(0)};
  if (is_empty(pivots)) return b.constant(1.0, real, result);
  Value own = b.add(b.iota(DType::kI32, pivots.dims(), 1), i32(b, 1));
  Value moved = b.reduce(Monoid::kAdd, b.convert(b.ne(pivots, own), DType::kI32), {1});
  Value odd = b.eq(b.rem(moved, i32(b, 2)), i32(b, 1));
  return b.select(odd, b.constant(-1.0, real), b.constant(1.0, real));
}

struct Unpacked {
  Value l, u;
};

Unpacked unpack(Builder& b, Value lu) {
  const int64_t rank = lu.rank(), m = lu.dim(-2).fixed(), n = lu.dim(-1).fixed();
  const int64_t k = std::min(m, n);
  Value l = lower_part(b, b.slice_dim(lu, rank - 1, 0, k), false);
  l = b.add(l, identity_matrix(b, lu.dtype(), l.dims()));
  return {l, upper_part(b, b.slice_dim(lu, rank - 2, 0, k))};
}

// P with A = PLU: column i has its one in row permutation[i].
Value permutation_matrix(Builder& b, Value permutation, DType dtype, const Dims& batch) {
  const Size count = permutation.dim(0), m = permutation.dim(1);
  const Dims dims{count, m, m};
  if (product(dims) == Size(0)) return restore_batch(b, b.zeros({dtype, dims}), batch);
  Value hit = b.eq(b.iota(DType::kI32, dims, 1), b.broadcast_in_dim(permutation, dims, {0, 2}));
  return restore_batch(b, b.convert(hit, dtype), batch);
}

}  // namespace

Values lower_lu_factor(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  Factors f = factors_of(b, a, c.boolean("pivot"));
  return {restore_batch(b, f.lu, batch), restore_batch(b, f.pivots, batch),
          b.reshape(f.info, batch)};
}

Values lower_lu(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  const bool pivot = c.boolean("pivot");
  Factors f = factors_of(b, a, pivot);
  Unpacked parts = unpack(b, restore_batch(b, f.lu, batch));
  Value p = pivot ? permutation_matrix(b, f.permutation, a.dtype(), batch) : b.zeros(c.out(0));
  return {p, parts.l, parts.u};
}

Values lower_lu_unpack(Call& c) {
  Builder& b = c.b;
  Value lu = c.tensor("LU_data");
  Values results{b.zeros(c.out(0)), b.zeros(c.out(1)), b.zeros(c.out(2))};
  if (c.boolean("unpack_data")) {
    Unpacked parts = unpack(b, lu);
    results[1] = parts.l;
    results[2] = parts.u;
  }
  if (c.boolean("unpack_pivots") && !is_empty(lu)) {
    Value pivots = c.tensor("LU_pivots", DType::kI32);
    const Dims batch = batch_of(lu);
    pivots = b.reshape(pivots, {product(batch), pivots.dim(-1)});
    Value permutation = permutation_of(b, pivots, lu.dim(-2));
    results[0] = permutation_matrix(b, permutation, lu.dtype(), batch);
  }
  return results;
}

Values lower_lu_solve(Call& c) {
  Builder& b = c.b;
  const Type out = c.out();
  if (product(out.dims) == Size(0)) return {b.zeros(out)};
  const Dims batch(out.dims.begin(), out.dims.end() - 2);
  Value lu = flatten_batch(b, expand_batch(b, c.tensor("LU"), batch));
  Value rhs = flatten_batch(b, expand_batch(b, c.tensor("B"), batch));
  Value pivots = c.tensor("pivots", DType::kI32);
  Dims pivot_dims = batch;
  pivot_dims.push_back(pivots.dim(-1));
  pivots = b.reshape(b.broadcast_to(pivots, pivot_dims), {product(batch), pivots.dim(-1)});
  Value permutation = permutation_of(b, pivots, lu.dim(1));
  Value x = solve_flat(b, lu, permutation, rhs, c.boolean("left"), c.boolean("adjoint"));
  return {restore_batch(b, x, batch)};
}

Values lower_solve(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A"), rhs = c.tensor("B");
  const Type out = c.out(0);
  const Dims batch = batch_of(a);
  Factors f = factors_of(b, a);
  Value lu = restore_batch(b, f.lu, batch);
  Value solution = b.zeros(out);
  if (product(out.dims) != Size(0)) {
    // One vector for each matrix, where B's shape is A's without its last dimension.
    const bool vector =
        rhs.rank() == 1 || (rhs.rank() == a.rank() - 1 && rhs.dims() == batch_of(a, 1));
    Dims result = out.dims;
    if (vector) {
      Dims column = rhs.dims();
      column.push_back(1);
      rhs = b.reshape(rhs, column);
      result.push_back(1);
    }
    const Dims joint(result.begin(), result.end() - 2);
    Dims order = joint;
    order.push_back(a.dim(-1));
    Dims own = batch;
    own.push_back(a.dim(-1));
    Value permutation = b.broadcast_to(b.reshape(f.permutation, own), order);
    permutation = b.reshape(permutation, {product(joint), a.dim(-1)});
    Value x = solve_flat(b, flatten_batch(b, expand_batch(b, lu, joint)), permutation,
                         flatten_batch(b, expand_batch(b, rhs, joint)), c.boolean("left"), false);
    solution = b.reshape(x, out.dims);
  }
  return {solution, lu, restore_batch(b, f.pivots, batch), b.reshape(f.info, batch)};
}

Values lower_inverse(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  Factors f = factors_of(b, a);
  Value info = b.reshape(f.info, batch);
  if (is_empty(a)) return {a, info};
  Value identity = identity_matrix(b, a.dtype(), f.lu.dims());
  Value inverse = solve_left(b, f.lu, f.permutation, identity, false);
  return {restore_batch(b, inverse, batch), info};
}

Values lower_det(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  Factors f = factors_of(b, factors_transpose(c) ? transpose_matrix(b, a) : a);
  Value sign = permutation_sign(b, f.pivots, stablehlo::real_of(a.dtype()));
  Value det = real_as(b, sign, a.dtype());
  if (!is_empty(f.pivots)) {
    det = b.mul(det, b.reduce(Monoid::kMultiply, diagonal_of(b, f.lu), {1}));
  }
  return {b.reshape(det, batch), restore_batch(b, f.lu, batch), restore_batch(b, f.pivots, batch)};
}

Values lower_slogdet(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  const DType type = a.dtype(), real = stablehlo::real_of(type);
  Factors f = factors_of(b, factors_transpose(c) ? transpose_matrix(b, a) : a);
  Value sign = real_as(b, permutation_sign(b, f.pivots, real), type);
  Value log = b.zeros({real, {product(batch)}});
  if (!is_empty(f.pivots)) {
    Value diagonal = diagonal_of(b, f.lu);
    sign = b.mul(sign, b.reduce(Monoid::kMultiply, b.unary(Unary::kSign, diagonal), {1}));
    log = b.reduce(Monoid::kAdd, b.log(b.abs(diagonal)), {1});
  }
  return {b.reshape(sign, batch), b.reshape(log, batch), restore_batch(b, f.lu, batch),
          restore_batch(b, f.pivots, batch)};
}

}  // namespace torch_tpu::lowering
