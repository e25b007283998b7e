// Control flow and operations that the plugin defines: loops, branches, custom calls, barriers.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kWhile = "stablehlo.while";
constexpr const char* kIf = "stablehlo.if";
constexpr const char* kCustomCall = "stablehlo.custom_call";

std::vector<Type> types_of(std::string_view op, const std::vector<Value>& values) {
  std::vector<Type> types;
  for (const Value& v : values) {
    require(static_cast<bool>(v), op, "an operand is missing");
    types.push_back(v.type());
  }
  return types;
}

bool is_scalar_pred(const Value& v) { return v && v.dtype() == DType::kPred && v.rank() == 0; }

}  // namespace

std::vector<Value> Builder::while_loop(const std::vector<Value>& inits, const Body& condition,
                                       const Body& body) {
  require(!inits.empty(), kWhile, "a loop needs a value to carry");
  const std::vector<Type> types = types_of(kWhile, inits);
  const Impl::RegionText test = impl_->region(kWhile, types, Impl::Capture::kAllowed, condition);
  if (test.results.size() != 1 || !is_scalar_pred(test.results[0])) {
    fail(kWhile, "its condition must return one 0-d i1, got " + describe(test.results));
  }
  const Impl::RegionText step = impl_->region(kWhile, types, Impl::Capture::kAllowed, body);
  if (types_of(kWhile, step.results) != types) {
    fail(kWhile,
         "its body returns " + describe(step.results) + " for the carried " + describe(inits));
  }
  return impl_->emit_many(kWhile, inits, types, {}, "(" + test.text + ", " + step.text + ")");
}

std::vector<Value> Builder::if_else(Value pred, const std::function<std::vector<Value>()>& on_true,
                                    const std::function<std::vector<Value>()>& on_false) {
  if (!is_scalar_pred(pred))
    fail(kIf, "the predicate must be a 0-d i1, got " + describe({&pred, 1}));
  const auto branch = [&](const std::function<std::vector<Value>()>& f) {
    return impl_->region(kIf, {}, Impl::Capture::kAllowed,
                         [&f](const std::vector<Value>&) { return f(); });
  };
  const Impl::RegionText first = branch(on_true);
  const Impl::RegionText second = branch(on_false);
  const std::vector<Type> types = types_of(kIf, first.results);
  if (types_of(kIf, second.results) != types) {
    fail(kIf,
         "its branches return " + describe(first.results) + " and " + describe(second.results));
  }
  if (types.empty()) return {};
  return impl_->emit_many(kIf, {&pred, 1}, types, {}, "(" + first.text + ", " + second.text + ")");
}

std::vector<Value> Builder::custom_call(const std::string& target, const std::vector<Value>& xs,
                                        const std::vector<Type>& results,
                                        const std::string& backend_config) {
  std::vector<Value> operands;
  for (const Value& x : xs) {
    require(static_cast<bool>(x), kCustomCall, "an operand is missing");
    if (!all_static(x.dims()))
      fail(kCustomCall, target + " takes no run-time sizes: " + describe(xs));
  }
  for (const Type& type : results) {
    if (!all_static(type.dims)) fail(kCustomCall, target + " cannot return " + type.str());
  }
  std::string name;
  append_quoted(&name, target);
  std::string config;
  append_quoted(&config, backend_config);
  const std::string attributes =
      Attributes().raw("call_target_name", name).raw("backend_config", config).text();
  return impl_->emit_many(kCustomCall, xs, results, attributes);
}

std::vector<Value> Builder::optimization_barrier(const std::vector<Value>& xs) {
  static constexpr const char* kName = "stablehlo.optimization_barrier";
  if (xs.empty()) return {};
  return impl_->emit_many(kName, xs, types_of(kName, xs));
}

}  // namespace torch_tpu::stablehlo
