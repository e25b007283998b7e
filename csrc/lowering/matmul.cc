// Matrix products and their sums. f16 and bf16 accumulate in f32 and round once.
#include "lowering/axes.h"
#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

using stablehlo::Binary;
using stablehlo::opmath;
using stablehlo::Unary;

// Rows (or contracted elements) of one step of a grouped product.
constexpr int64_t kGroupBlock = 128;

// [m, k] x [k, n], or with one batch dimension in front.
Value product(Builder& b, Value x, Value y, DType accumulator) {
  if (x.rank() == 3) return b.dot_general(x, y, {0}, {0}, {2}, {1}, accumulator);
  return b.dot_general(x, y, {}, {}, {x.rank() - 1}, {0}, accumulator);
}

// beta * self + alpha * product, in the product's type. self is not read where beta is 0, NaN or not.
Value affine(Call& c, Value self, Value product) {
  Builder& b = c.b;
  const DType type = product.dtype();
  if (!c.is_one("alpha")) product = b.mul(product, c.scalar("alpha", type));
  self = b.convert(self, type);
  if (!c.is_one("beta")) {
    const Value beta = c.scalar("beta", type);
    const Value zero = b.convert(b.constant_int(0, DType::kI32), type);
    self = b.select(b.eq(beta, zero), zero, b.mul(self, beta));
  }
  return b.add(self, product);
}

void check_same_dtype(const Call& c, const Value& x, const Value& y) {
  c.check(x.dtype() == y.dtype(), std::string("mat1 and mat2 must have the same dtype, but got ") +
                                      scalar_type_name(x.dtype()) + " and " +
                                      scalar_type_name(y.dtype()));
}

// The name PyTorch's error texts give a dtype's C++ type.
const char* cpp_type_name(DType t) {
  switch (t) {
    case DType::kPred:
      return "bool";
    case DType::kI8:
      return "signed char";
    case DType::kI16:
      return "short int";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long int";
    case DType::kU8:
      return "unsigned char";
    case DType::kF16:
      return "c10::Half";
    case DType::kBF16:
      return "c10::BFloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kC64:
      return "c10::complex<float>";
    case DType::kC128:
      return "c10::complex<double>";
    default:
      return scalar_type_name(t);
  }
}

// The checks that PyTorch's CPU kernels make of their factors' dtypes, in their words.
void check_factors(const Call& c, const Value& x, const Value& y) {
  c.check(x.dtype() == y.dtype(),
          std::string("expected m1 and m2 to have the same dtype, but got: ") +
              cpp_type_name(x.dtype()) + " != " + cpp_type_name(y.dtype()));
}

void check_batches(const Call& c, const Value& x, const Value& y) {
  c.check(x.dtype() == y.dtype(), std::string("expected scalar type ") +
                                      scalar_type_name(x.dtype()) + " but found " +
                                      scalar_type_name(y.dtype()));
}

void check_summand(const Call& c, const Value& self, const Value& x, const Value& y) {
  const DType other = self.dtype() == y.dtype() ? x.dtype() : y.dtype();
  c.check(self.dtype() == other, std::string("self and mat2 must have the same dtype, but got ") +
                                     scalar_type_name(self.dtype()) + " and " +
                                     scalar_type_name(other));
}

void check_vector_sum(const Call& c, const Value& self, const Value& x, const Value& y) {
  c.check(self.dtype() == x.dtype() && x.dtype() == y.dtype(),
          std::string("addmv input tensors must have the same dtype, but got ") +
              scalar_type_name(self.dtype()) + ", " + scalar_type_name(x.dtype()) + ", and " +
              scalar_type_name(y.dtype()));
}

Values lower_mm(Call& c) {
  const DType out = c.out().dtype;
  const Value x = c.tensor("self"), y = c.tensor("mat2");
  if (x.rank() == 3) {
    check_batches(c, x, y);
  } else {
    check_factors(c, x, y);
  }
  return {c.b.convert(product(c.b, x, y, opmath(out)), out)};
}

Values lower_addmm(Call& c) {
  const DType out = c.out().dtype;
  check_summand(c, c.tensor("self"), c.tensor("mat1"), c.tensor("mat2"));
  const Value p = product(c.b, c.tensor("mat1"), c.tensor("mat2"), opmath(out));
  return {c.b.convert(affine(c, c.tensor("self"), p), out)};
}

Values lower_addmm_activation(Call& c) {
  Builder& b = c.b;
  const DType out = c.out().dtype;
  check_summand(c, c.tensor("self"), c.tensor("mat1"), c.tensor("mat2"));
  const Value x =
      affine(c, c.tensor("self"), product(b, c.tensor("mat1"), c.tensor("mat2"), opmath(out)));
  if (!c.boolean("use_gelu")) return {b.convert(b.max(x, b.like(x, 0)), out)};
  const Value cube = b.mul(b.mul(x, x), x);
  const Value inner =
      b.mul(b.add(x, b.mul(cube, b.like(x, 0.044715))), b.like(x, 0.7978845608028654));
  return {b.convert(b.mul(b.mul(x, b.like(x, 0.5)), b.add(b.tanh(inner), b.like(x, 1))), out)};
}

Values lower_baddbmm(Call& c) {
  const DType out = c.out().dtype;
  const Value x = c.tensor("batch1"), y = c.tensor("batch2"), self = c.tensor("self");
  c.check(self.dtype() == x.dtype(),
          std::string("Input dtypes must be the same, got: input ") + cpp_type_name(self.dtype()) +
              ", batch1: " + cpp_type_name(x.dtype()) + ", batch2: " + cpp_type_name(y.dtype()));
  check_batches(c, x, y);
  const Value p = product(c.b, x, y, opmath(out));
  return {c.b.convert(affine(c, self, p), out)};
}

Values lower_addbmm(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("batch1"), y = c.tensor("batch2"), self = c.tensor("self");
  c.check(x.rank() == 3, "batch1 must be a 3D tensor");
  c.check(y.rank() == 3, "batch2 must be a 3D tensor");
  c.check(x.dim(0) == y.dim(0), "batch1 and batch2 must have same number of batches, got " +
                                    x.dim(0).str() + " and " + y.dim(0).str());
  c.check(x.dim(2) == y.dim(1), "Incompatible matrix sizes for bmm (" + x.dim(1).str() + "x" +
                                    x.dim(2).str() + " and " + y.dim(1).str() + "x" +
                                    y.dim(2).str() + ")");
  check_summand(c, self, x, y);
  const Value p = b.dot_general(x, y, {}, {}, {0, 2}, {0, 1}, opmath(x.dtype()));
  check_broadcast(c, self.dims(), p.dims());
  return {b.convert(affine(c, self, p), self.dtype())};
}

Values lower_addr(Call& c) {
  Builder& b = c.b;
  const DType out = c.out().dtype, type = opmath(out);
  const Value x = along_axis(b, c.tensor("vec1", type), 2, 0),
              y = along_axis(b, c.tensor("vec2", type), 2, 1);
  if (out == DType::kPred) {
    const Value zero = b.constant_bool(false);
    const Value p = b.select(c.scalar("alpha", out), b.logical_and(x, y), zero);
    return {b.logical_or(p, b.select(c.scalar("beta", out), c.tensor("self", out), zero))};
  }
  return {b.convert(affine(c, c.tensor("self"), b.mul(x, y)), out)};
}

Values lower_mv(Call& c) {
  const DType out = c.out().dtype;
  // PyTorch computes it as an addmv whose sum has the vector's dtype.
  check_vector_sum(c, c.tensor("vec"), c.tensor("self"), c.tensor("vec"));
  return {c.b.convert(product(c.b, c.tensor("self"), c.tensor("vec"), opmath(out)), out)};
}

Values lower_addmv(Call& c) {
  const DType out = c.out().dtype;
  check_vector_sum(c, c.tensor("self"), c.tensor("mat"), c.tensor("vec"));
  const Value p = product(c.b, c.tensor("mat"), c.tensor("vec"), opmath(out));
  return {c.b.convert(affine(c, c.tensor("self"), p), out)};
}

Value inner_product(Call& c, Value x, Value y, const char* name) {
  c.check(x.rank() == 1 && y.rank() == 1, "1D tensors expected, but got " +
                                              std::to_string(x.rank()) + "D and " +
                                              std::to_string(y.rank()) + "D tensors");
  c.check(x.dtype() == y.dtype(),
          std::string(name) + " : expected both vectors to have same dtype, but found " +
              scalar_type_name(x.dtype()) + " and " + scalar_type_name(y.dtype()));
  const std::string n = x.numel().str(), m = y.numel().str();
  c.check(x.numel() == y.numel(), "inconsistent tensor size, expected tensor [" + n +
                                      "] and src [" + m +
                                      "] to have the same number of elements, but got " + n +
                                      " and " + m + " elements respectively");
  return c.b.convert(product(c.b, x, y, opmath(x.dtype())), x.dtype());
}

Values lower_dot(Call& c) {
  return {inner_product(c, c.tensor("self"), c.tensor("tensor"), "dot")};
}

Values lower_vdot(Call& c) {
  Builder& b = c.b;
  Value x = c.tensor("self");
  if (stablehlo::is_complex(x.dtype())) {
    x = b.binary(Binary::kComplex, b.unary(Unary::kReal, x), b.neg(b.unary(Unary::kImag, x)));
  }
  return {inner_product(c, x, c.tensor("other"), "vdot")};
}

// -- Forms with a result dtype of their own -------------------------------------------------------------------------

Value checked_product(Call& c, Value x, Value y, DType out) {
  const int64_t rank = x.rank();
  c.check((rank == 2 || rank == 3) && y.rank() == rank,
          "mat1 and mat2 must both be matrices or batches of matrices, got " +
              std::to_string(rank) + "-D and " + std::to_string(y.rank()) + "-D");
  c.check(rank == 2 || x.dim(0) == y.dim(0),
          "batch1 and batch2 must have same number of batches, got " + x.dim(0).str() + " and " +
              y.dim(0).str());
  c.check(x.dim(-1) == y.dim(-2), "mat1 and mat2 shapes cannot be multiplied (" + x.dim(-2).str() +
                                      "x" + x.dim(-1).str() + " and " + y.dim(-2).str() + "x" +
                                      y.dim(-1).str() + ")");
  check_same_dtype(c, x, y);
  return product(c.b, x, y, opmath(out));
}

Values lower_mm_dtype(Call& c) {
  const DType out = c.dtype("out_dtype").value();
  return {c.b.convert(checked_product(c, c.tensor("self"), c.tensor("mat2"), out), out)};
}

Values lower_addmm_dtype(Call& c) {
  const DType out = c.dtype("out_dtype").value();
  const bool batched = c.has("batch1");
  const Value p = checked_product(c, c.tensor(batched ? "batch1" : "mat1"),
                                  c.tensor(batched ? "batch2" : "mat2"), out);
  check_broadcast(c, c.tensor("self").dims(), p.dims());
  return {c.b.convert(affine(c, c.tensor("self"), p), out)};
}

Values lower_int_mm(Call& c) {
  const Value x = c.tensor("self"), y = c.tensor("mat2");
  c.check(x.rank() == 2, "Expected self to be of dimension 2 but got " + std::to_string(x.rank()));
  c.check(y.rank() == 2, "Expected mat2 to be of dimension 2 but got " + std::to_string(y.rank()));
  c.check(x.dtype() == DType::kI8, std::string("Expected self dtype to be of type int8 but got ") +
                                       scalar_type_name(x.dtype()));
  c.check(y.dtype() == DType::kI8, std::string("Expected mat2 dtype to be of type int8 but got ") +
                                       scalar_type_name(y.dtype()));
  c.check(x.dim(1) == y.dim(0), "self.size(1) needs to match mat2.size(0) but got " +
                                    x.dim(1).str() + " and " + y.dim(0).str());
  return {product(c.b, x, y, DType::kI32)};
}

// -- Grouped products -----------------------------------------------------------------------------------------------

// A walk over the blocks that each group touches: group g owns positions offs[g-1] .. offs[g]. A step handles one
// (group, block) pair, so a block shared by two groups is visited twice and the rest once.
struct GroupWalk {
  int64_t groups, block, blocks;
  Value starts, ends;  // i32 [groups]
};

GroupWalk group_walk(Builder& b, Value offs, int64_t length) {
  GroupWalk w;
  w.groups = offs.dim(0).fixed();
  w.block = std::max<int64_t>(1, std::min(length, kGroupBlock));
  w.blocks = std::max<int64_t>(1, (length + w.block - 1) / w.block);
  w.ends = b.convert(offs, DType::kI32);
  w.starts =
      b.pad(b.slice_dim(w.ends, 0, 0, w.groups - 1), b.constant_int(0, DType::kI32), {1}, {0});
  return w;
}

struct GroupStep {
  Value group, first;  // i32: the group, the first position of the block
  Value inside;        // [block]: positions of the block that are the group's
};

using StepFn =
    std::function<Value(const GroupStep& step, const Values& operands, Value accumulator)>;

// Folds `step` over the walk. `operands` are what it reads besides: loop state, since bodies see their arguments only.
Value run_walk(Builder& b, const GroupWalk& w, const Values& operands, Value accumulator,
               const StepFn& step) {
  const DType type = DType::kI32;
  const Value zero = b.constant_int(0, type);
  Values state = {zero, zero, accumulator, w.starts, w.ends};
  state.insert(state.end(), operands.begin(), operands.end());
  auto condition = [&](const Values& s) -> Values {
    return {b.lt(s[0], b.constant_int(w.groups, type))};
  };
  auto body = [&](const Values& s) -> Values {
    const Value group = s[0], block = s[1];
    auto at_group = [&](const Value& v) { return b.reshape(b.dynamic_slice(v, {group}, {1}), {}); };
    const Value start = at_group(s[3]), end = at_group(s[4]);
    const Value size = b.constant_int(w.block, type);
    const Value first = b.mul(b.min(block, b.constant_int(w.blocks - 1, type)), size);
    const Value position = b.add(b.iota(type, {w.block}, 0), first);
    const Value inside = b.logical_and(b.ge(position, start), b.lt(position, end));
    Values next = s;
    next[2] = step({group, first, inside}, Values(s.begin() + 5, s.end()), s[2]);
    const Value one = b.constant_int(1, type), following = b.add(block, one);
    const Value stays = b.lt(b.mul(following, size), end);
    next[0] = b.select(stays, group, b.add(group, one));
    next[1] = b.select(stays, following, b.div(end, size));
    return next;
  };
  return b.while_loop(state, condition, body)[2];
}

Value zero_i32(Builder& b) { return b.constant_int(0, DType::kI32); }

Value padded_axis(Builder& b, Value x, int64_t axis, int64_t size) {
  std::vector<int64_t> low(x.rank(), 0), high(x.rank(), 0);
  high.at(axis) = size - x.dim(axis).fixed();
  return high.at(axis) == 0 ? x : b.pad(x, b.like(x, 0), low, high);
}

// out[rows of g] = x[rows of g] @ w[g]; rows of no group are zero. x [m, k], w [g, k, n].
Value grouped_rows(Builder& b, Value x, Value w, Value offs, DType type) {
  const int64_t m = x.dim(0).fixed(), k = x.dim(1).fixed(), n = w.dim(2).fixed();
  if (w.dim(0) == Size(1)) {
    const Value inside = b.lt(b.iota(DType::kI32, {m, 1}, 0), b.convert(offs, DType::kI32));
    const Value all = product(b, x, b.reshape(w, {k, n}), type);
    return b.select(inside, all, b.like(all, 0));
  }
  const GroupWalk walk = group_walk(b, offs, m);
  const int64_t rows = walk.block * walk.blocks;
  auto step = [&](const GroupStep& s, const Values& v, Value out) {
    const Value zero = zero_i32(b);
    const Value left = b.dynamic_slice(v[0], {s.first, zero}, {walk.block, k});
    const Value right = b.reshape(b.dynamic_slice(v[1], {s.group, zero, zero}, {1, k, n}), {k, n});
    const Value tile = product(b, left, right, type);
    const Value before = b.dynamic_slice(out, {s.first, zero}, {walk.block, n});
    const Value after = b.select(b.reshape(s.inside, {walk.block, 1}), tile, before);
    return b.dynamic_update_slice(out, after, {s.first, zero});
  };
  const Value out =
      run_walk(b, walk, {padded_axis(b, x, 0, rows), w}, b.zeros({type, {rows, n}}), step);
  return b.slice_dim(out, 0, 0, m);
}

// out[g] = x[:, columns of g] @ y[rows of g]. x [m, k], y [k, n].
Value grouped_contraction(Builder& b, Value x, Value y, Value offs, DType type) {
  const int64_t m = x.dim(0).fixed(), n = y.dim(1).fixed();
  const GroupWalk walk = group_walk(b, offs, x.dim(1).fixed());
  const int64_t length = walk.block * walk.blocks;
  auto step = [&](const GroupStep& s, const Values& v, Value out) {
    const Value zero = zero_i32(b);
    Value left = b.dynamic_slice(v[0], {zero, s.first}, {m, walk.block});
    Value right = b.dynamic_slice(v[1], {s.first, zero}, {walk.block, n});
    left = b.select(b.reshape(s.inside, {1, walk.block}), left, b.like(left, 0));
    right = b.select(b.reshape(s.inside, {walk.block, 1}), right, b.like(right, 0));
    const Value tile = b.reshape(product(b, left, right, type), {1, m, n});
    const Value before = b.dynamic_slice(out, {s.group, zero, zero}, {1, m, n});
    return b.dynamic_update_slice(out, b.add(before, tile), {s.group, zero, zero});
  };
  return run_walk(b, walk, {padded_axis(b, x, 1, length), padded_axis(b, y, 0, length)},
                  b.zeros({type, {walk.groups, m, n}}), step);
}

Values lower_grouped_mm(Call& c) {
  Builder& b = c.b;
  const Value x = c.tensor("self"), y = c.tensor("mat2");
  c.check(x.rank() == 2 || x.rank() == 3, "mat_a has to be 2 or 3d");
  c.check(y.rank() == 2 || y.rank() == 3, "mat_b has to be 2 or 3d");
  const bool flat_x = x.rank() == 2, flat_y = y.rank() == 2;
  c.check(x.dim(-1) == y.dim(-2), "contraction dimension of mat_a and mat_b must match");
  c.check(c.has("offs") == (flat_x || flat_y),
          "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  c.check(!c.has("bias"), "Bias not supported yet");
  check_same_dtype(c, x, y);
  const DType out = c.dtype("out_dtype").value_or(x.dtype()), type = opmath(x.dtype());
  if (!flat_x && !flat_y) {
    c.check(x.dim(0) == y.dim(0), "batched dimension has to match");
    return {b.convert(product(b, x, y, type), out)};
  }
  const Value offs = c.tensor("offs");
  c.check(offs.rank() == 1, "offs has to be 1D");
  c.check(offs.dtype() == DType::kI32, "Offsets have to be int32");
  const Value& batched = flat_x ? y : x;
  c.check((flat_x && flat_y) || batched.dim(0) == offs.dim(0), "matrix batch sizes have to match");
  if (flat_x && flat_y) return {b.convert(grouped_contraction(b, x, y, offs, type), out)};
  if (flat_x) return {b.convert(grouped_rows(b, x, y, offs, type), out)};
  const Value transposed =
      grouped_rows(b, b.transpose(y, {1, 0}), b.transpose(x, {0, 2, 1}), offs, type);
  return {b.convert(b.transpose(transposed, {1, 0}), out)};
}

constexpr std::string_view kUnitFactors = "alpha=1,beta=1";

}  // namespace

const OpRow kMatmulRows[] = {
    {"mm", lower_mm, "", Infer::kComposite, Tolerance::kContraction},
    {"bmm", lower_mm, "", Infer::kComposite, Tolerance::kContraction},
    {"addmm", lower_addmm, kUnitFactors, Infer::kComposite, Tolerance::kContraction},
    {"_addmm_activation", lower_addmm_activation, kUnitFactors, Infer::kComposite,
     Tolerance::kContraction},
    {"baddbmm", lower_baddbmm, kUnitFactors, Infer::kComposite, Tolerance::kContraction},
    {"addbmm", lower_addbmm, kUnitFactors, Infer::kLowering, Tolerance::kContraction},
    {"addr", lower_addr, kUnitFactors, Infer::kComposite, Tolerance::kElementwise},
    {"mv", lower_mv, "", Infer::kComposite, Tolerance::kContraction},
    {"addmv", lower_addmv, kUnitFactors, Infer::kComposite, Tolerance::kContraction},
    {"dot", lower_dot, "", Infer::kLowering, Tolerance::kContraction},
    {"vdot", lower_vdot, "", Infer::kLowering, Tolerance::kContraction},
    {"mm.dtype", lower_mm_dtype, "", Infer::kLowering, Tolerance::kContraction},
    {"bmm.dtype", lower_mm_dtype, "", Infer::kLowering, Tolerance::kContraction},
    {"addmm.dtype", lower_addmm_dtype, kUnitFactors, Infer::kLowering, Tolerance::kContraction},
    {"baddbmm.dtype", lower_addmm_dtype, kUnitFactors, Infer::kLowering, Tolerance::kContraction},
    {"_int_mm", lower_int_mm, "", Infer::kLowering, Tolerance::kExact},
    {"_grouped_mm", lower_grouped_mm, "", Infer::kLowering, Tolerance::kContraction},
};
const size_t kMatmulRowCount = std::size(kMatmulRows);

}  // namespace torch_tpu::lowering
