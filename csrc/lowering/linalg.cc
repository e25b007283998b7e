// Triangular systems and Cholesky factors, and the table of all linear algebra.
#include "lowering/linalg.h"

#include "lowering/axes.h"
#include "lowering/families.h"
#include "lowering/indexing.h"

namespace torch_tpu::lowering {

using stablehlo::Binary;
using stablehlo::Compare;
using stablehlo::Monoid;
using stablehlo::Unary;

// -- Matrices -----------------------------------------------------------------------------------

Dims batch_of(const Value& x, int64_t trailing) {
  return Dims(x.dims().begin(), x.dims().end() - trailing);
}

Value flatten_batch(Builder& b, Value x) {
  return b.reshape(x, {product(batch_of(x)), x.dim(-2), x.dim(-1)});
}

Value restore_batch(Builder& b, Value x, const Dims& batch) {
  Dims dims = batch;
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  return b.reshape(x, dims);
}

Value expand_batch(Builder& b, Value x, const Dims& batch) {
  Dims dims = batch;
  dims.push_back(x.dim(-2));
  dims.push_back(x.dim(-1));
  return b.broadcast_to(x, dims);
}

Value conj(Builder& b, Value x) {
  if (!stablehlo::is_complex(x.dtype())) return x;
  return b.binary(Binary::kComplex, b.unary(Unary::kReal, x), b.neg(b.unary(Unary::kImag, x)));
}

Value transpose_matrix(Builder& b, Value x) {
  std::vector<int64_t> order = all_axes(x.rank());
  std::swap(order[x.rank() - 1], order[x.rank() - 2]);
  return b.transpose(x, order);
}

Value adjoint(Builder& b, Value x) { return conj(b, transpose_matrix(b, x)); }

Value real_as(Builder& b, Value x, DType dtype) {
  if (!stablehlo::is_complex(dtype)) return b.convert(x, dtype);
  x = b.convert(x, stablehlo::real_of(dtype));
  return b.binary(Binary::kComplex, x, b.zeros(x.type()));
}

namespace {

// Compares row and column numbers of [m, n].
Value position_mask(Builder& b, const Value& x, Compare op) {
  const Dims dims{x.dim(-2), x.dim(-1)};
  Value mask = b.compare(op, b.iota(DType::kI32, dims, 0), b.iota(DType::kI32, dims, 1));
  return b.broadcast_to(mask, x.dims());
}

Value masked(Builder& b, Value mask, Value x) {
  return b.select(mask, x, b.zeros({x.dtype(), {}}));
}

}  // namespace

Value identity_matrix(Builder& b, DType dtype, const Dims& dims) {
  Value ones = b.constant_int(1, dtype, dims);
  return masked(b, position_mask(b, ones, Compare::kEq), ones);
}

Value diagonal_of(Builder& b, Value x) {
  return b.reduce(Monoid::kAdd, masked(b, position_mask(b, x, Compare::kEq), x), {x.rank() - 1});
}

Value lower_part(Builder& b, Value x, bool with_diagonal) {
  return masked(b, position_mask(b, x, with_diagonal ? Compare::kGe : Compare::kGt), x);
}

Value upper_part(Builder& b, Value x) { return masked(b, position_mask(b, x, Compare::kLe), x); }

void check_square(const Call& c, const Value& x, const std::string& name) {
  c.check(x.rank() >= 2, name + ": The input tensor A must have at least 2 dimensions.");
  c.check(x.dim(-1) == x.dim(-2), name + ": A must be batches of square matrices, but they are " +
                                      x.dim(-2).str() + " by " + x.dim(-1).str() + " matrices");
}

void check_float(const Call& c, const Value& x, const std::string& name) {
  const DType t = x.dtype();
  c.check(
      t == DType::kF32 || t == DType::kF64 || stablehlo::is_complex(t),
      name + ": Expected a floating point or complex tensor as input. Got " + scalar_type_name(t));
}

Value column_at(Builder& b, Value x, Value k) {
  Value zero = b.constant_int(0, DType::kI32);
  return b.dynamic_slice(x, {zero, zero, k}, {x.dim(0).fixed(), x.dim(1).fixed(), 1});
}

Value row_at(Builder& b, Value x, Value k) {
  Value zero = b.constant_int(0, DType::kI32);
  return b.dynamic_slice(x, {zero, k, zero}, {x.dim(0).fixed(), 1, x.dim(2).fixed()});
}

namespace {

bool is_empty(const Value& x) { return x.numel() == Size(0); }

// -- Triangular systems ---------------------------------------------------------------------------

// Both operands under one batch; the message is linalg's.
void broadcast_batches(Call& c, Value* a, Value* rhs) {
  Dims batch;
  c.check(broadcast_shapes(batch_of(*a), batch_of(*rhs), &batch),
          "The batch dimensions of " + sizes_text(a->dims()) + " and " + sizes_text(rhs->dims()) +
              " do not broadcast");
  *a = expand_batch(c.b, *a, batch);
  *rhs = expand_batch(c.b, *rhs, batch);
}

Values lower_solve_triangular(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("self"), rhs = c.tensor("B");
  const std::string name = "linalg.solve_triangular";
  const bool left = c.boolean("left");
  check_float(c, a, name);
  c.check(a.dtype() == rhs.dtype(), name + ": Expected A and B to have the same dtype, but got " +
                                        scalar_type_name(a.dtype()) + " and " +
                                        scalar_type_name(rhs.dtype()) + " instead");
  check_square(c, a, name);
  c.check(rhs.rank() >= 2, name + ": The input tensor B must have at least 2 dimensions.");
  c.check(a.dim(-1) == rhs.dim(left ? -2 : -1),
          name + ": Incompatible shapes of A and B for the equation " +
              (left ? "AX = B" : "XA = B") + " (" + a.dim(-2).str() + "x" + a.dim(-1).str() +
              " and " + rhs.dim(-2).str() + "x" + rhs.dim(-1).str() + ")");
  broadcast_batches(c, &a, &rhs);
  if (is_empty(rhs)) return {rhs};
  return {b.triangular_solve(a, rhs, left, !c.boolean("upper"), c.boolean("unitriangular"), false)};
}

Values lower_triangular_solve(Call& c) {
  Builder& b = c.b;
  Value a = c.tensor("A"), rhs = c.tensor("self");
  broadcast_batches(c, &a, &rhs);
  if (is_empty(rhs)) return {rhs, a};
  return {b.triangular_solve(a, rhs, true, !c.boolean("upper"), c.boolean("unitriangular"),
                             c.boolean("transpose")),
          a};
}

// -- Cholesky -----------------------------------------------------------------------------------

// For each matrix the order of its first leading minor that is not positive, 0 where there is none.
Value first_bad_minor(Builder& b, Value a) {
  const Size count = a.dim(0), n = a.dim(1);
  const DType type = a.dtype(), real = stablehlo::real_of(type);
  Value k0 = b.constant_int(0, DType::kI32);
  Value info0 = b.zeros({DType::kI32, {count, 1, 1}});
  auto condition = [&](const Values& v) -> Values { return {b.lt(v[0], b.size(n, DType::kI32))}; };
  auto body = [&](const Values& v) -> Values {
    Value k = v[0], x = v[1], info = v[2];
    Value column = column_at(b, x, k);
    Value pivot = b.unary(Unary::kReal, row_at(b, column, k));
    if (!stablehlo::is_complex(type)) pivot = row_at(b, column, k);
    Value zero = b.zeros({real, {}});
    Value good = b.gt(pivot, zero);
    Value next = b.add(k, b.constant_int(1, DType::kI32));
    Value fresh = b.logical_and(b.logical_not(good), b.eq(info, b.constant_int(0, DType::kI32)));
    info = b.select(fresh, next, info);
    Value divisor = real_as(b, b.select(good, pivot, b.constant(1.0, real)), type);
    Value update = b.div(b.mul(column, adjoint(b, column)), divisor);
    return {next, b.sub(x, update), info};
  };
  Values end = b.while_loop({k0, a, info0}, condition, body);
  return b.reshape(end[2], {count});
}

struct Cholesky {
  Value factor, info;  // [..., n, n] and i32 [...]
};

// Reads one triangle only, as LAPACK does; the other one of the factor is zero.
Cholesky factorize(Builder& b, Value a, bool upper) {
  const Dims batch = batch_of(a);
  if (is_empty(a)) return {a, b.zeros({DType::kI32, batch})};
  if (upper) a = adjoint(b, a);
  Value flat = flatten_batch(b, lower_part(b, a));
  flat = b.add(flat, adjoint(b, lower_part(b, flat, false)));
  Value factor = lower_part(b, b.cholesky(flat, true));
  Value size = b.abs(factor);
  Value failed = b.reduce(Monoid::kOr, b.is_nan(size), all_axes(3));
  const Type info_type{DType::kI32, {flat.dim(0)}};
  Value info = b.if_else(
      failed, [&] { return Values{first_bad_minor(b, flat)}; },
      [&] { return Values{b.zeros(info_type)}; })[0];
  if (upper) factor = adjoint(b, factor);
  return {restore_batch(b, factor, batch), b.reshape(info, batch)};
}

Values lower_cholesky_ex(Call& c) {
  Cholesky result = factorize(c.b, c.tensor("self"), c.boolean("upper"));
  return {result.factor, result.info};
}

// Solves F F^H X = rhs for a lower factor, F^H F X = rhs for an upper one.
Value solve_factored(Builder& b, Value factor, Value rhs, bool upper) {
  if (is_empty(rhs)) return rhs;
  Value half = b.triangular_solve(factor, rhs, true, !upper, false, false, upper);
  return b.triangular_solve(factor, half, true, !upper, false, false, !upper);
}

Values lower_cholesky_solve_with(Call& c, Value factor) {
  Value rhs = c.tensor("self");
  c.check(rhs.rank() >= 2, "b should have at least 2 dimensions, but has " +
                               std::to_string(rhs.rank()) + " dimensions instead");
  c.check(factor.rank() >= 2, "u should have at least 2 dimensions, but has " +
                                  std::to_string(factor.rank()) + " dimensions instead");
  c.check(factor.dim(-1) == factor.dim(-2), "A must be batches of square matrices, but they are " +
                                                factor.dim(-2).str() + " by " +
                                                factor.dim(-1).str() + " matrices");
  c.check(factor.dim(-1) == rhs.dim(-2),
          "Incompatible matrix sizes for cholesky_solve: each A "
          "matrix is " +
              factor.dim(-1).str() + " by " + factor.dim(-1).str() + " but each b matrix is " +
              rhs.dim(-2).str() + " by " + rhs.dim(-1).str());
  check_float(c, factor, "cholesky_solve");
  c.check(factor.dtype() == rhs.dtype(),
          std::string("Expected b and A to have the same dtype, but found b of type ") +
              scalar_type_name(rhs.dtype()) + " and A of type " + scalar_type_name(factor.dtype()) +
              " instead");
  broadcast_batches(c, &factor, &rhs);
  return {solve_factored(c.b, factor, rhs, c.boolean("upper"))};
}

Values lower_cholesky_solve(Call& c) { return lower_cholesky_solve_with(c, c.tensor("input2")); }
Values lower_cholesky_solve_expanded(Call& c) {
  return lower_cholesky_solve_with(c, c.tensor("A"));
}

Values lower_cholesky_inverse(Call& c) {
  Builder& b = c.b;
  Value factor = c.tensor("self");
  check_square(c, factor, "cholesky_inverse");
  check_float(c, factor, "cholesky_inverse");
  Value identity = identity_matrix(b, factor.dtype(), factor.dims());
  return {solve_factored(b, factor, identity, c.boolean("upper"))};
}

// -- Cross product --------------------------------------------------------------------------------

Values lower_cross(Call& c) {
  Builder& b = c.b;
  const Type out = c.out();
  Value x = b.broadcast_to(c.tensor("self", out.dtype), out.dims);
  Value y = b.broadcast_to(c.tensor("other", out.dtype), out.dims);
  const int64_t dim = c.wrap_dim(c.integer("dim"), x.rank());
  // Elements 1, 2, 0 and 2, 0, 1 along dim.
  auto turn = [&](const Value& v, int64_t shift) {
    return b.concatenate({b.slice_dim(v, dim, shift, 3), b.slice_dim(v, dim, 0, shift)}, dim);
  };
  return {b.sub(b.mul(turn(x, 1), turn(y, 2)), b.mul(turn(x, 2), turn(y, 1)))};
}

}  // namespace

const OpRow kLinalgRows[] = {
    {"linalg_solve_triangular", lower_solve_triangular, "", Infer::kLowering,
     Tolerance::kContraction},
    {"triangular_solve", lower_triangular_solve, "", Infer::kComposite, Tolerance::kContraction},
    {"linalg_cholesky_ex", lower_cholesky_ex, "", Infer::kComposite, Tolerance::kContraction},
    {"cholesky_solve", lower_cholesky_solve, "", Infer::kLowering, Tolerance::kContraction},
    {"_cholesky_solve_helper", lower_cholesky_solve_expanded, "", Infer::kLowering,
     Tolerance::kContraction},
    {"cholesky_inverse", lower_cholesky_inverse, "", Infer::kLowering, Tolerance::kContraction},
    {"linalg_lu_factor_ex", lower_lu_factor, "", Infer::kComposite, Tolerance::kContraction},
    {"linalg_lu", lower_lu, "", Infer::kComposite, Tolerance::kContraction},
    {"lu_unpack", lower_lu_unpack, "", Infer::kComposite, Tolerance::kExact},
    {"linalg_lu_solve", lower_lu_solve, "", Infer::kComposite, Tolerance::kContraction},
    {"_linalg_solve_ex", lower_solve, "", Infer::kComposite, Tolerance::kContraction},
    {"linalg_inv_ex", lower_inverse, "", Infer::kComposite, Tolerance::kContraction},
    {"_linalg_det", lower_det, "", Infer::kComposite, Tolerance::kContraction},
    {"_linalg_slogdet", lower_slogdet, "", Infer::kComposite, Tolerance::kContraction},
    {"linalg_qr", lower_qr, "", Infer::kComposite, Tolerance::kContraction},
    {"geqrf", lower_geqrf, "", Infer::kLowering, Tolerance::kContraction},
    {"linalg_householder_product", lower_householder_product, "", Infer::kLowering,
     Tolerance::kContraction},
    {"_linalg_eigh", lower_eigh, "", Infer::kComposite, Tolerance::kContraction},
    {"linalg_cross", lower_cross, "", Infer::kComposite, Tolerance::kElementwise},
};
const size_t kLinalgRowCount = std::size(kLinalgRows);

}  // namespace torch_tpu::lowering
