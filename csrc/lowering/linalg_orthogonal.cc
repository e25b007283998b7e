// QR by Householder reflections, and eigenvalues of Hermitian matrices by Jacobi rotations of many pairs at once.
#include <cmath>
#include <limits>

#include "lowering/axes.h"
#include "lowering/indexing.h"
#include "lowering/linalg.h"
#include "lowering/sort.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::Monoid;
using stablehlo::Unary;

// A Jacobi sweep visits every pair once; convergence is quadratic after a few.
constexpr int64_t kMaxSweeps = 20;

Value i32(Builder& b, int64_t value) { return b.constant_int(value, DType::kI32); }

Value zero_of(Builder& b, const Value& x) { return b.zeros({x.dtype(), {}}); }

bool is_empty(const Value& x) { return x.numel() == Size(0); }

Value real_part(Builder& b, Value x) {
  return stablehlo::is_complex(x.dtype()) ? b.unary(Unary::kReal, x) : x;
}

Value imaginary_part(Builder& b, Value x) {
  return stablehlo::is_complex(x.dtype()) ? b.unary(Unary::kImag, x) : b.zeros(x.type());
}

Value square_size(Builder& b, Value x) {
  Value re = real_part(b, x);
  if (!stablehlo::is_complex(x.dtype())) return b.mul(re, re);
  Value im = imaginary_part(b, x);
  return b.add(b.mul(re, re), b.mul(im, im));
}

// -- QR -------------------------------------------------------------------------------------------

// A column of a packed factor as its reflection's vector: zeros above row k, one there, the rest below.
Value reflection_vector(Builder& b, Value column, Value k) {
  Value row = b.iota(DType::kI32, column.dims(), 1);
  Value v = b.select(b.gt(row, k), column, zero_of(b, column));
  return b.select(b.eq(row, k), b.constant_int(1, column.dtype()), v);
}

// x - factor v (v^H x)
Value reflect(Builder& b, Value x, Value v, Value factor) {
  Value row = b.reduce(Monoid::kAdd, b.mul(conj(b, v), x), {1}, true);
  return b.sub(x, b.mul(b.mul(factor, v), row));
}

struct Reflections {
  Value packed;  // [N, m, n]: R above and on the diagonal, the vectors' tails below it
  Value tau;     // [N, min(m, n)]
};

// As LAPACK's geqrf: H(k) = I - tau v v^H, R's diagonal real.
Reflections reflections_of(Builder& b, Value a) {
  const Size count = a.dim(0), m = a.dim(1), n = a.dim(2);
  const int64_t steps = std::min(m.fixed(), n.fixed());
  const DType type = a.dtype();
  auto condition = [&](const Values& v) -> Values { return {b.lt(v[0], i32(b, steps))}; };
  auto body = [&](const Values& state) -> Values {
    Value k = state[0], x = state[1], tau = state[2];
    Value column = column_at(b, x, k), head = row_at(b, column, k);
    Value row = b.iota(DType::kI32, column.dims(), 1);
    Value tail = b.select(b.gt(row, k), column, zero_of(b, column));
    Value tail_square = b.reduce(Monoid::kAdd, square_size(b, tail), {1}, true);
    Value re = real_part(b, head), im = imaginary_part(b, head), zero = zero_of(b, re);
    Value norm = b.sqrt(b.add(square_size(b, head), tail_square));
    Value beta = b.select(b.ge(re, zero), b.neg(norm), norm);
    Value nothing = b.logical_and(b.eq(tail_square, zero), b.eq(im, zero));
    beta = b.select(nothing, re, beta);
    Value one = b.constant(1.0, re.dtype());
    Value divisor = b.select(nothing, one, beta);
    Value factor = b.div(b.sub(beta, re), divisor);
    Value full_beta = real_as(b, beta, type);
    if (stablehlo::is_complex(type)) {
      factor = b.binary(Binary::kComplex, factor, b.neg(b.div(im, divisor)));
    }
    factor = b.select(nothing, b.zeros({type, {}}), factor);
    Value scale = b.select(nothing, b.constant_int(1, type), b.sub(head, full_beta));
    Value scaled = b.div(tail, scale);
    Value v = b.select(b.eq(row, k), b.constant_int(1, type), scaled);
    Value reflected = reflect(b, x, v, conj(b, factor));
    Value packed = b.select(b.gt(row, k), scaled, column);
    packed = b.select(b.eq(row, k), full_beta, packed);
    Value place = b.broadcast_to(b.iota(DType::kI32, {Size(1), Size(1), n}, 2), x.dims());
    x = b.select(b.gt(place, k), reflected, x);
    x = b.select(b.eq(place, k), b.broadcast_to(packed, x.dims()), x);
    Value is_k = b.eq(b.iota(DType::kI32, tau.dims(), 1), k);
    Value spread = b.broadcast_to(b.reshape(factor, {count, Size(1)}), tau.dims());
    return {b.add(k, i32(b, 1)), x, b.select(is_k, spread, tau)};
  };
  Value tau0 = b.zeros({type, {count, Size(steps)}});
  Values end = b.while_loop({i32(b, 0), a, tau0}, condition, body);
  return {end[1], end[2]};
}

// The first `columns` columns of H(0) H(1) ... H(steps - 1).
Value multiply_reflections(Builder& b, Value packed, Value tau, int64_t columns) {
  const Size count = packed.dim(0), m = packed.dim(1);
  const int64_t steps = tau.dim(1).fixed();
  Value q0 = identity_matrix(b, packed.dtype(), {count, m, Size(columns)});
  if (steps == 0) return q0;
  auto condition = [&](const Values& v) -> Values { return {b.ge(v[0], i32(b, 0))}; };
  auto body = [&](const Values& state) -> Values {
    Value k = state[0];
    Value v = reflection_vector(b, column_at(b, packed, k), k);
    Value factor = b.dynamic_slice(tau, {i32(b, 0), k}, {count.fixed(), 1});
    factor = b.reshape(factor, {count, Size(1), Size(1)});
    return {b.sub(k, i32(b, 1)), reflect(b, state[1], v, factor)};
  };
  return b.while_loop({i32(b, steps - 1), q0}, condition, body)[1];
}

// -- Eigenvalues ----------------------------------------------------------------------------------

// Matrices as halves: columns (or rows) i and i + h of an even-sized matrix form pair i.
struct Halves {
  Value first, second;
};

Halves halve(Builder& b, Value x, int64_t dim) {
  const int64_t half = x.dim(dim).fixed() / 2;
  return {b.slice_dim(x, dim, 0, half), b.slice_dim(x, dim, half, 2 * half)};
}

// One round of a tournament: all but the first player of the first row move on by one seat, so that after n - 1 rounds
// everybody has met everybody.
Value next_pairs(Builder& b, Halves x, int64_t dim) {
  const int64_t half = x.first.dim(dim).fixed();
  if (half == 1) return b.concatenate({x.first, x.second}, dim);
  Values parts{b.slice_dim(x.first, dim, 0, 1), b.slice_dim(x.second, dim, 0, 1)};
  if (half > 2) parts.push_back(b.slice_dim(x.first, dim, 1, half - 1));
  parts.push_back(b.slice_dim(x.second, dim, 1, half));
  parts.push_back(b.slice_dim(x.first, dim, half - 1, half));
  return b.concatenate(parts, dim);
}

// Rotations that make each pair's off-diagonal element zero: cosine, sine (real) and the phase that makes the element
// real, all of [N, h].
struct Rotation {
  Value cosine, sine, phase;
};

Rotation rotation_for(Builder& b, Value a) {
  Halves columns = halve(b, a, 2);
  Halves left = halve(b, columns.first, 1), right = halve(b, columns.second, 1);
  Value p = real_part(b, diagonal_of(b, left.first));
  Value q = real_part(b, diagonal_of(b, right.second));
  Value cross = diagonal_of(b, right.first);
  Value size = b.abs(cross), zero = zero_of(b, size), one = b.constant(1.0, size.dtype());
  Value none = b.eq(size, zero);
  Value safe = b.select(none, one, size);
  Value tau = b.div(b.sub(q, p), b.mul(b.like(size, 2.0), safe));
  Value root = b.sqrt(b.add(one, b.mul(tau, tau)));
  Value tangent = b.div(one, b.add(b.abs(tau), root));
  tangent = b.select(b.lt(tau, zero), b.neg(tangent), tangent);
  tangent = b.select(none, zero, tangent);
  Value cosine = b.rsqrt(b.add(one, b.mul(tangent, tangent)));
  Value phase = b.select(none, b.constant_int(1, cross.dtype()),
                         b.div(cross, real_as(b, safe, cross.dtype())));
  return {cosine, b.mul(tangent, cosine), phase};
}

// The columns (dim 2) or rows (dim 1) of x turned pair by pair and seated for the next round.
Value rotate(Builder& b, Value x, const Rotation& r, int64_t dim) {
  const DType type = x.dtype();
  Halves h = halve(b, x, dim);
  Dims dims{x.dim(0), Size(1), Size(1)};
  dims[dim] = h.first.dim(dim);
  Value cosine = b.reshape(real_as(b, r.cosine, type), dims);
  Value sine = b.reshape(real_as(b, r.sine, type), dims);
  Value phase = b.reshape(dim == 2 ? conj(b, r.phase) : r.phase, dims);
  Value second = b.mul(h.second, phase);
  return next_pairs(b,
                    {b.sub(b.mul(h.first, cosine), b.mul(second, sine)),
                     b.add(b.mul(h.first, sine), b.mul(second, cosine))},
                    dim);
}

// The sum of squares off the diagonal, [N].
Value off_diagonal(Builder& b, Value a) {
  Value diagonal = identity_matrix(b, DType::kPred, a.dims());
  Value outside = b.select(diagonal, zero_of(b, a), a);
  return b.reduce(Monoid::kAdd, square_size(b, outside), {1, 2});
}

// Eigenvalues [N, n] in ascending order and eigenvectors [N, n, n] of Hermitian matrices.
std::pair<Value, Value> eigenvectors(Builder& b, Value a) {
  const Size count = a.dim(0);
  const int64_t n = a.dim(1).fixed(), even = n + n % 2;
  const DType type = a.dtype(), real = stablehlo::real_of(type);
  Value identity = identity_matrix(b, type, {count, Size(even), Size(even)});
  // An odd size gets one more row that nothing turns; the vectors tell its place in the end.
  if (even != n) a = b.pad(a, zero_of(b, a), {0, 0, 0}, {0, 1, 1});
  Value whole = b.reduce(Monoid::kAdd, square_size(b, a), {1, 2});
  const double epsilon = real == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
  Value limit = b.mul(whole, b.constant(epsilon * epsilon * static_cast<double>(n), real));
  auto unfinished = [&](Value x) {
    return b.reduce(Monoid::kOr, b.gt(off_diagonal(b, x), limit), {0});
  };
  auto condition = [&](const Values& v) -> Values {
    return {b.logical_and(v[3], b.lt(v[0], i32(b, kMaxSweeps * (even - 1))))};
  };
  auto body = [&](const Values& v) -> Values {
    Value x = v[1];
    Rotation r = rotation_for(b, x);
    x = rotate(b, rotate(b, x, r, 2), r, 1);
    return {b.add(v[0], i32(b, 1)), x, rotate(b, v[2], r, 2), unfinished(x)};
  };
  Values end = b.while_loop({i32(b, 0), a, identity, unfinished(a)}, condition, body);
  Value values = real_part(b, diagonal_of(b, end[1])), vectors = end[2];
  if (even != n) {
    // The added row's own vector is the unit vector of that row.
    Value last = b.reshape(b.slice_dim(vectors, 1, n, n + 1), {count, Size(even)});
    Value added = b.gt(b.abs(last), b.constant(0.5, real));
    values = b.select(added, b.highest(real), values);
  }
  Values sorted = sort_by(b, {values, b.iota(DType::kI32, values.dims(), 1)}, 1, false);
  Value order = b.broadcast_in_dim(sorted[1], vectors.dims(), {0, 2});
  vectors = gather_along(b, vectors, 2, order);
  return {b.slice_dim(sorted[0], 1, 0, n), b.slice(vectors, {0, 0, 0}, {count.fixed(), n, n})};
}

}  // namespace

Values lower_qr(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const std::string mode = c.str("mode");
  const Dims batch = batch_of(a);
  const int64_t m = a.dim(-2).fixed(), n = a.dim(-1).fixed();
  const int64_t columns = mode == "complete" ? m : std::min(m, n);
  Value flat = flatten_batch(b, a);
  Value q, r;
  if (is_empty(a)) {
    q = identity_matrix(b, a.dtype(), {flat.dim(0), Size(m), Size(columns)});
    r = b.zeros({a.dtype(), {flat.dim(0), Size(columns), Size(n)}});
  } else {
    Reflections reflections = reflections_of(b, flat);
    r = upper_part(b, b.slice_dim(reflections.packed, 1, 0, columns));
    if (mode != "r") q = multiply_reflections(b, reflections.packed, reflections.tau, columns);
  }
  return {mode == "r" ? b.zeros(c.out(0)) : restore_batch(b, q, batch), restore_batch(b, r, batch)};
}

Values lower_geqrf(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("self");
  c.check(a.rank() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  check_float(c, a, "geqrf");
  const Dims batch = batch_of(a);
  const Size steps = std::min(a.dim(-2).fixed(), a.dim(-1).fixed());
  if (is_empty(a)) {
    Dims tau = batch;
    tau.push_back(steps);
    return {a, b.zeros({a.dtype(), tau})};
  }
  Reflections reflections = reflections_of(b, flatten_batch(b, a));
  return {restore_batch(b, reflections.packed, batch), restore_batch(b, reflections.tau, batch)};
}

Values lower_householder_product(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("input"), tau = c.tensor("tau");
  const std::string name = "torch.linalg.householder_product: ";
  c.check(a.rank() >= 2, name + "input must have at least 2 dimensions.");
  check_float(c, a, "torch.linalg.householder_product");
  c.check(a.dim(-2).fixed() >= a.dim(-1).fixed(),
          name + "input.shape[-2] must be greater than or equal to input.shape[-1]");
  c.check(a.rank() - tau.rank() == 1,
          name + "Expected tau to have one dimension less than input, but got tau.ndim equal to " +
              std::to_string(tau.rank()) + " and input.ndim is equal to " +
              std::to_string(a.rank()));
  c.check(a.dim(-1).fixed() >= tau.dim(-1).fixed(),
          name + "input.shape[-1] must be greater than or equal to tau.shape[-1]");
  c.check(batch_of(a) == batch_of(tau, 1),
          name + "Expected batch dimensions of tau to be equal to input.shape[:-2], but got " +
              sizes_text(batch_of(tau, 1)));
  c.check(a.dtype() == tau.dtype(), name + "tau dtype " + scalar_type_name(tau.dtype()) +
                                        " does not match input dtype " +
                                        scalar_type_name(a.dtype()));
  if (is_empty(a)) return {a};
  Value flat = flatten_batch(b, a);
  Value flat_tau = b.reshape(tau, {flat.dim(0), tau.dim(-1)});
  Value q = multiply_reflections(b, flat, flat_tau, a.dim(-1).fixed());
  return {restore_batch(b, q, batch_of(a))};
}

Values lower_eigh(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A");
  const Dims batch = batch_of(a);
  const Type values_type = c.out(0), vectors_type = c.out(1);
  if (is_empty(a)) return {b.zeros(values_type), b.zeros(vectors_type)};
  const std::string triangle = c.str("UPLO");
  if (triangle == "U" || triangle == "u") a = adjoint(b, a);
  // Only that triangle counts, and the real part of the diagonal.
  Value below = lower_part(b, flatten_batch(b, a), false);
  Value diagonal = real_as(b, real_part(b, diagonal_of(b, flatten_batch(b, a))), a.dtype());
  Value full = b.add(below, adjoint(b, below));
  Value on_diagonal = identity_matrix(b, DType::kPred, full.dims());
  full = b.select(on_diagonal, b.broadcast_in_dim(diagonal, full.dims(), {0, 1}), full);
  auto [values, vectors] = eigenvectors(b, full);
  return {restore_batch(b, values, batch),
          c.boolean("compute_v") ? restore_batch(b, vectors, batch) : b.zeros(vectors_type)};
}

}  // namespace torch_tpu::lowering
