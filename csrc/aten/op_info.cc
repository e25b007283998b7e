#include "aten/op_info.h"

#include <algorithm>
#include <unordered_map>

namespace torch_tpu::aten {
namespace {

using lowering::find_row;
using lowering::OpRow;

ArgKind kind_of(const c10::Argument& arg) {
  c10::TypePtr type = arg.type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->castRaw<c10::OptionalType>()->getElementType();
  if (type->kind() == c10::TypeKind::ListType) {
    c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
    if (element->kind() == c10::TypeKind::OptionalType) {
      element = element->castRaw<c10::OptionalType>()->getElementType();
    }
    if (element->kind() == c10::TypeKind::TensorType) return ArgKind::kTensorList;
    const bool number =
        element->kind() == c10::TypeKind::NumberType || element->kind() == c10::TypeKind::FloatType;
    return number ? ArgKind::kNumberList : ArgKind::kStatic;
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return ArgKind::kTensor;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
      return ArgKind::kNumber;
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::GeneratorType:
      return ArgKind::kIgnored;
    default:
      return arg.name() == "pin_memory" ? ArgKind::kIgnored : ArgKind::kStatic;
  }
}

bool same_type(const c10::Argument& a, const c10::Argument& b) {
  return *a.real_type() == *b.real_type();
}

constexpr const char* kFactoryArguments[] = {"dtype", "layout", "device", "pin_memory"};

// The functional overload of an in-place or out= one: same base name, same arguments without the out= ones. With
// `factory`, those are followed by what a factory takes besides.
std::optional<c10::OperatorHandle> find_functional(const c10::FunctionSchema& schema, Form form,
                                                   bool factory) {
  std::string base = schema.name();
  if (form == Form::kInplace) base.pop_back();
  std::vector<const c10::Argument*> wanted;
  for (const c10::Argument& arg : schema.arguments()) {
    if (!arg.is_out()) wanted.push_back(&arg);
  }
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string, std::vector<std::string>>;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      (*map)[name.name].push_back(name.overload_name);
    }
    return map;
  }();
  const auto found = by_name->find(base);
  if (found == by_name->end()) return std::nullopt;
  for (const std::string& overload : found->second) {
    auto handle = c10::Dispatcher::singleton().findSchema({base, overload});
    if (!handle || handle->schema().is_mutable()) continue;
    const auto& candidate = handle->schema().arguments();
    const size_t extra = factory ? std::size(kFactoryArguments) : 0;
    if (candidate.size() != wanted.size() + extra || handle->schema().returns().empty()) continue;
    bool equal = true;
    for (size_t i = 0; i < wanted.size() && equal; ++i) {
      equal = candidate[i].name() == wanted[i]->name() && same_type(candidate[i], *wanted[i]);
    }
    for (size_t i = 0; i < extra && equal; ++i)
      equal = candidate[wanted.size() + i].name() == kFactoryArguments[i];
    if (equal) return handle;
  }
  return std::nullopt;
}

// "alpha=1,eps,exponent:small"
NumberPolicy policy_of(std::string_view statics, std::string_view name) {
  while (!statics.empty()) {
    const size_t comma = statics.find(',');
    std::string_view item = statics.substr(0, comma);
    statics = comma == std::string_view::npos ? "" : statics.substr(comma + 1);
    if (item == name) return NumberPolicy::kStatic;
    if (item.size() > name.size() && item.substr(0, name.size()) == name) {
      const std::string_view suffix = item.substr(name.size());
      if (suffix == "=1") return NumberPolicy::kStaticIfOne;
      if (suffix == ":small") return NumberPolicy::kStaticIfSmall;
    }
  }
  return NumberPolicy::kDynamic;
}

bool listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return false;
}

}  // namespace

std::string overload_name(const c10::FunctionSchema& schema) {
  std::string name = schema.name();
  if (const size_t colon = name.rfind("::");
      colon != std::string::npos && name.substr(0, colon) == "aten") {
    name = name.substr(colon + 2);
  }
  return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

OpInfo::OpInfo(const c10::OperatorHandle& op) : handle(op) {
  const c10::FunctionSchema& schema = op.schema();
  name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  label = schema.name().substr(schema.name().rfind(':') + 1);
  bool any_out = false, any_written = false;
  for (const c10::Argument& arg : schema.arguments()) {
    any_out |= arg.is_out();
    any_written |= arg.alias_info() != nullptr && arg.alias_info()->isWrite();
  }
  form = any_out ? Form::kOut : any_written ? Form::kInplace : Form::kFunctional;
  row = find_row(overload_name(schema));
  if (form != Form::kFunctional) {
    if (form == Form::kOut || label.back() == '_')
      functional = find_functional(schema, form, false);
    if (form == Form::kOut && row == nullptr && !functional) {
      functional = find_functional(schema, form, true);
      factory = functional.has_value();
    }
    if (row == nullptr && functional && !factory)
      row = find_row(overload_name(functional->schema()));
  }
  numbers_static = row == nullptr;
  structured = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
  composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);

  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& arg = schema.arguments()[i];
    ArgInfo info;
    info.name = arg.name();
    info.kind = kind_of(arg);
    info.is_out = arg.is_out();
    info.written = arg.alias_info() != nullptr && arg.alias_info()->isWrite();
    if (row == nullptr) {
      info.policy = NumberPolicy::kStatic;
    } else {
      info.policy = policy_of(row->statics, arg.name());
      if (listed(row->writes, arg.name())) info.written = true;
    }
    if (info.written) written.push_back(static_cast<int>(i));
    if (info.kind == ArgKind::kIgnored && arg.name() == "generator")
      generator = static_cast<int>(i);
    args.push_back(std::move(info));
  }
  // out= takes the functional form's results, which come before what the row writes besides.
  std::ranges::stable_partition(
      written, [this](int argument) { return args[static_cast<size_t>(argument)].is_out; });
  static constexpr std::string_view kWriteExpanded[] = {"fill_", "zero_"};
  writes_expanded = std::ranges::find(kWriteExpanded, label) != std::end(kWriteExpanded);
  // Elsewhere the composite kernel's calls count them, one for each tensor.
  counts_versions = form == Form::kInplace && composite &&
                    !op.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView);
  in_turn = composite && std::any_of(written.begin(), written.end(), [this](int argument) {
              return args[static_cast<size_t>(argument)].kind == ArgKind::kTensorList;
            });
  for (const c10::Argument& ret : schema.returns()) {
    ReturnInfo info{ret.type()->kind() == c10::TypeKind::ListType ? ReturnKind::kFreshList
                                                                  : ReturnKind::kFresh};
    if (ret.alias_info() != nullptr) {
      for (size_t i = 0; i < schema.arguments().size(); ++i) {
        const auto* alias = schema.arguments()[i].alias_info();
        if (alias != nullptr && alias->beforeSets() == ret.alias_info()->beforeSets()) {
          info = {ReturnKind::kArgument, static_cast<int>(i)};
        }
      }
    }
    if (ret.type()->kind() == c10::TypeKind::IntType) {
      const auto argument = schema.argumentIndexWithName(ret.name() == "max_q" ? "query" : "key");
      TORCH_INTERNAL_ASSERT(argument, name, ": an integer result that is not an extent");
      info = {ReturnKind::kExtent, *argument};
    }
    returns.push_back(info);
  }
}

}  // namespace torch_tpu::aten
