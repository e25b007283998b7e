#include "aten/argument_checks.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/TypeProperties.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torch_tpu::aten {
namespace {

using torch::jit::Stack;

// The two arguments a check looks at and the dtype drawn.
struct Drawn {
  const c10::IValue* first = nullptr;  // null: the overload has no number of that name
  const c10::IValue* second = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
};
using Check = void (*)(const Drawn& drawn);

bool is_number(const c10::IValue* value) { return value != nullptr && value->isScalar(); }

void check_uniform(const Drawn& drawn) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      c10::kHalf, c10::kBFloat16, drawn.dtype, "check_uniform_bounds", [&] {
        if (!is_number(drawn.first) || !is_number(drawn.second)) return;
        const double from = drawn.first->toScalar().toDouble(),
                     to = drawn.second->toScalar().toDouble();
        const auto type = c10::scalarTypeToTypeMeta(drawn.dtype);
        const auto lowest = static_cast<double>(std::numeric_limits<scalar_t>::lowest());
        const auto max = static_cast<double>(std::numeric_limits<scalar_t>::max());
        TORCH_CHECK(from >= lowest && from <= max, "from is out of bounds for ", type);
        TORCH_CHECK(to >= lowest && to <= max, "to is out of bounds for ", type);
        TORCH_CHECK(from <= to,
                    "uniform_ expects to return a [from, to) range, but found from=", from,
                    " > to=", to);
        TORCH_CHECK(to - from <= max, "uniform_ expects to-from <= std::numeric_limits<",
                    c10::toString(drawn.dtype), ">::max(), but found to=", to, " and from=", from,
                    " which result in to-from to exceed the limit");
      });
}

void check_normal(const Drawn& drawn) {
  if (!is_number(drawn.second)) return;
  const double std = drawn.second->toScalar().toDouble();
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
}

void check_log_normal(const Drawn& drawn) {
  if (!is_number(drawn.second)) return;
  const double std = drawn.second->toScalar().toDouble();
  TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
}

void check_cauchy(const Drawn& drawn) {
  TORCH_CHECK(c10::isFloatingType(drawn.dtype),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you "
              "specified ",
              c10::scalarTypeToTypeMeta(drawn.dtype));
  if (!is_number(drawn.second)) return;
  const double sigma = drawn.second->toScalar().toDouble();
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
}

void check_exponential(const Drawn& drawn) {
  TORCH_CHECK(c10::isFloatingType(drawn.dtype),
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but "
              "you specified ",
              drawn.dtype);
  if (!is_number(drawn.first)) return;
  const double lambda = drawn.first->toScalar().toDouble();
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
}

void check_geometric(const Drawn& drawn) {
  if (!is_number(drawn.first)) return;
  const double p = drawn.first->toScalar().toDouble();
  TORCH_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
}

void check_bernoulli(const Drawn& drawn) {
  if (!is_number(drawn.first)) return;
  const double p = drawn.first->toScalar().toDouble();
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

void check_dropout(const Drawn& drawn) {
  const double p = drawn.first->toScalar().toDouble();
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

// [first, second) of integers; without a first one it is 0, without a second one there is no upper bound.
void check_range(const Drawn& drawn) {
  const int64_t from = is_number(drawn.first) ? drawn.first->toScalar().toLong() : 0;
  if (!is_number(drawn.second)) return;
  const int64_t to = drawn.second->toScalar().toLong();
  TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from,
              " >= to=", to);
  at::native::templates::check_from_to_in_range(from, to - 1,
                                                c10::scalarTypeToTypeMeta(drawn.dtype));
}

// The range of a histogram; of equal ends PyTorch makes another one.
void check_histogram(const Drawn& drawn) {
  const double min = drawn.first->toScalar().toDouble(), max = drawn.second->toScalar().toDouble();
  TORCH_CHECK(std::isfinite(min) && std::isfinite(max), "torch.histc: range of [", min, ", ", max,
              "] is not finite");
  TORCH_CHECK(min <= max, "torch.histc: max must be larger than min");
}

// A number that becomes an element as it is: too large ones are refused.
void check_element(const Drawn& drawn) {
  if (drawn.first == nullptr) return;
  at::Scalar value;
  if (drawn.first->isTensor()) {
    const at::Tensor& tensor = drawn.first->toTensor();
    if (!tensor.is_complex()) return;
    value = tensor.device().is_cpu() ? tensor.item() : at::Scalar(c10::complex<double>(0, 1));
  } else {
    value = drawn.first->toScalar();
  }
  AT_DISPATCH_V2(drawn.dtype, "fill", AT_WRAP([&] { static_cast<void>(value.to<scalar_t>()); }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), c10::kHalf, c10::kBFloat16, c10::kBool,
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), AT_EXPAND(AT_FLOAT8_TYPES));
}

struct CheckRow {
  std::string_view base;           // without the trailing underscore of in-place forms
  std::string_view first, second;  // names of the arguments looked at
  Check check;
  c10::ScalarType dtype =
      c10::ScalarType::Undefined;  // of a factory not asked for one; Undefined: the default dtype
};
constexpr CheckRow kChecks[] = {
    {"uniform", "from", "to", check_uniform},
    {"rand", "", "", check_uniform},
    {"rand_like", "", "", check_uniform},
    {"normal", "mean", "std", check_normal},
    {"normal_functional", "mean", "std", check_normal},
    {"log_normal", "mean", "std", check_log_normal},
    {"cauchy", "median", "sigma", check_cauchy},
    {"exponential", "lambd", "", check_exponential},
    {"geometric", "p", "", check_geometric},
    {"bernoulli", "p", "", check_bernoulli},
    {"native_dropout", "p", "", check_dropout},
    {"random", "from", "to", check_range},
    {"randint", "low", "high", check_range, c10::ScalarType::Long},
    {"randint_like", "low", "high", check_range},
    {"histc", "min", "max", check_histogram},
    {"fill", "value", "", check_element},
    {"masked_fill", "value", "", check_element},
    {"index_fill", "value", "", check_element},
    {"constant_pad_nd", "value", "", check_element},
    {"scatter", "value", "", check_element},
};

// -- What is written to ---------------------------------------------------------------------------------------------------

// Positions of the arguments written to and of the tensors read.
struct Access {
  std::vector<size_t> written, read;
  size_t count;
};
using AccessCheck = void (*)(const Access& access, const c10::IValue* arguments);

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  return value.isTensorList() ? value.toTensorVector() : std::vector<at::Tensor>();
}

// Nothing that is read may lie in the memory written to.
void check_apart(const Access& access, const c10::IValue* arguments) {
  for (const size_t target : access.written) {
    const at::Tensor& out = arguments[target].toTensor();
    at::assert_no_internal_overlap(out);
    for (const size_t source : access.read) {
      for (const at::Tensor& tensor : tensors_of(arguments[source]))
        at::assert_no_overlap(out, tensor);
    }
  }
}

// out= has the first tensor's dtype.
void check_same_dtype(const Access& access, const c10::IValue* arguments) {
  const auto wanted = arguments[access.read.front()].toTensor().dtype();
  for (const size_t target : access.written) {
    const auto given = arguments[target].toTensor().dtype();
    TORCH_CHECK(given == wanted, "Expected out tensor to have dtype ", wanted, ", but got ", given,
                " instead");
  }
}

void check_gather(const Access& access, const c10::IValue* arguments) {
  check_same_dtype(access, arguments);
  check_apart(access, arguments);
}

void check_cat(const Access& access, const c10::IValue* arguments) {
  check_apart(access, arguments);
  const auto wanted = arguments[access.written.front()].toTensor().scalar_type();
  TORCH_CHECK_TYPE(
      c10::canCast(at::native::result_type(tensors_of(arguments[access.read.front()])), wanted),
      "torch.cat(): input types can't be cast to the desired output type ", wanted);
}

void check_multinomial(const Access& access, const c10::IValue* arguments) {
  const auto given = arguments[access.written.front()].toTensor().scalar_type();
  TORCH_CHECK(given == at::kLong, "multinomial expects Long tensor out, got: ", given);
}

struct AccessRow {
  std::string_view base;
  AccessCheck check;
};
constexpr AccessRow kAccessChecks[] = {
    {"gather", check_gather},      {"cat", check_cat},
    {"stack", check_cat},          {"index_select", check_apart},
    {"aminmax", check_same_dtype}, {"multinomial", check_multinomial},
};

int position(const c10::FunctionSchema& schema, std::string_view name) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].name() == name) return static_cast<int>(i);
  }
  return -1;
}

// Where in the schema the arguments are; looked up once an operator.
struct Positions {
  int first, second, dtype, out, tensor;
  size_t count;
};

Drawn read(const Positions& at, const Stack& stack, c10::ScalarType fallback) {
  const c10::IValue* arguments = stack.data() + stack.size() - at.count;
  Drawn drawn;
  if (at.first >= 0) drawn.first = arguments + at.first;
  if (at.second >= 0) drawn.second = arguments + at.second;
  if (at.dtype >= 0 && !arguments[at.dtype].isNone()) {
    drawn.dtype = arguments[at.dtype].toScalarType();
  } else if (at.out >= 0) {
    drawn.dtype = arguments[at.out].toTensor().scalar_type();
  } else if (at.tensor >= 0 && arguments[at.tensor].isTensor()) {
    drawn.dtype = arguments[at.tensor].toTensor().scalar_type();
  } else {
    drawn.dtype =
        fallback == c10::ScalarType::Undefined ? c10::get_default_dtype_as_scalartype() : fallback;
  }
  return drawn;
}

Access access_of(const c10::FunctionSchema& schema) {
  Access access{{}, {}, schema.arguments().size()};
  for (size_t i = 0; i < access.count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    (written ? access.written : access.read).push_back(i);
  }
  return access;
}

}  // namespace

ArgumentCheck argument_check(const c10::FunctionSchema& schema) {
  std::string base = schema.name().substr(schema.name().rfind(':') + 1);
  if (base.ends_with('_')) base.pop_back();
  for (const AccessRow& row : kAccessChecks) {
    if (row.base != base || !schema.is_mutable()) continue;
    return [&row, access = access_of(schema)](const Stack& stack) {
      row.check(access, stack.data() + stack.size() - access.count);
    };
  }
  for (const CheckRow& row : kChecks) {
    if (row.base != base) continue;
    const Positions at{position(schema, row.first), position(schema, row.second),
                       position(schema, "dtype"),   position(schema, "out"),
                       position(schema, "self"),    schema.arguments().size()};
    return [&row, at](const Stack& stack) { row.check(read(at, stack, row.dtype)); };
  }
  return {};
}

}  // namespace torch_tpu::aten
