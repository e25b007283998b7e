// Batches of matrices: what the triangular, LU, orthogonal and eigenvalue families share. All sizes are static.
#pragma once

#include "lowering/call.h"

namespace torch_tpu::lowering {

// [..., m, n] as [N, m, n], and a result back under the leading dimensions `batch`.
Value flatten_batch(Builder& b, Value x);
Value restore_batch(Builder& b, Value x, const Dims& batch);
Dims batch_of(const Value& x, int64_t trailing = 2);
// x's leading dimensions broadcast to `batch`.
Value expand_batch(Builder& b, Value x, const Dims& batch);

Value conj(Builder& b, Value x);
Value transpose_matrix(Builder& b, Value x);
Value adjoint(Builder& b, Value x);               // conjugate transpose
Value real_as(Builder& b, Value x, DType dtype);  // a real value as dtype, complex or not
Value identity_matrix(Builder& b, DType dtype,
                      const Dims& dims);  // ones on the diagonal of the last two dimensions
Value diagonal_of(Builder& b, Value x);   // [..., n, n] to [..., n]
// The part of each matrix on and below (or above) the main diagonal.
Value lower_part(Builder& b, Value x, bool with_diagonal = true);
Value upper_part(Builder& b, Value x);

void check_square(const Call& c, const Value& x, const std::string& name);
void check_float(const Call& c, const Value& x, const std::string& name);

// A column [N, m, 1] or a row [N, 1, n] of [N, m, n] at a run-time position.
Value column_at(Builder& b, Value x, Value k);
Value row_at(Builder& b, Value x, Value k);

// The families' rows: LU (linalg_lu.cc), QR and eigenvalues (linalg_orthogonal.cc). All sit in the table in linalg.cc.
Values lower_lu_factor(Call& c);
Values lower_lu(Call& c);
Values lower_lu_unpack(Call& c);
Values lower_lu_solve(Call& c);
Values lower_solve(Call& c);
Values lower_inverse(Call& c);
Values lower_det(Call& c);
Values lower_slogdet(Call& c);
Values lower_qr(Call& c);
Values lower_geqrf(Call& c);
Values lower_householder_product(Call& c);
Values lower_eigh(Call& c);

}  // namespace torch_tpu::lowering
