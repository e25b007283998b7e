#include "aten/describe.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <sstream>

#include "aten/walk.h"

namespace torch_tpu::aten {
namespace {

std::string dtype_text(const at::Tensor& t) {
  return std::string(c10::getDtypeNames(t.scalar_type()).first);
}

std::string tensor_text(const at::Tensor& t) {
  if (!t.defined()) return "None";
  std::string text = dtype_text(t) + c10::str(t.sizes());
  if (t.device().is_cpu()) text += " on cpu";
  if (!t.is_contiguous()) text += " with strides " + c10::str(t.strides());
  return text;
}

std::string value_text(const c10::IValue& value) {
  if (value.isTensor()) return tensor_text(value.toTensor());
  if (value.isList()) {
    std::string text = "[";
    for (const c10::IValue& element : value.toListRef()) {
      text += (text.size() == 1 ? "" : ", ") + value_text(element);
    }
    return text + "]";
  }
  std::ostringstream out;
  out << value;
  return out.str();
}

using Parts = std::vector<std::pair<std::string, std::string>>;

void add_tensor(const std::string& name, const at::Tensor& t, Parts& parts) {
  if (!t.defined()) {
    parts.emplace_back(name, "None");
    return;
  }
  parts.emplace_back(name + ".dtype", dtype_text(t));
  for (int64_t d = 0; d < t.dim(); ++d) {
    parts.emplace_back(name + ".shape[" + std::to_string(d) + "]", std::to_string(t.size(d)));
  }
  if (!t.is_contiguous()) parts.emplace_back(name + ".stride()", c10::str(t.strides()));
}

const c10::IValue& argument(const OpInfo& info, const Stack& stack, size_t i) {
  return stack[stack.size() - info.args.size() + i];
}

}  // namespace

std::string describe_call(const OpInfo& info, const Stack& stack) {
  std::string text = overload_name(info.handle.schema()) + "(";
  for (size_t i = 0; i < info.args.size(); ++i) {
    const c10::IValue& value = argument(info, stack, i);
    if (value.isNone() || info.args[i].kind == ArgKind::kIgnored) continue;
    if (text.back() != '(') text += ", ";
    text += info.args[i].name + ": " + value_text(value);
  }
  return text + ")";
}

Parts key_parts(const OpInfo& info, const Stack& stack) {
  Parts parts;
  for (size_t i = 0; i < info.args.size(); ++i) {
    const ArgInfo& arg = info.args[i];
    const c10::IValue& value = argument(info, stack, i);
    switch (arg.kind) {
      case ArgKind::kTensor:
        if (value.isTensor()) add_tensor(arg.name, value.toTensor(), parts);
        break;
      case ArgKind::kTensorList: {
        size_t place = 0;
        for (const c10::IValue& element : list_of(value)) {
          const std::string name = arg.name + "[" + std::to_string(place++) + "]";
          if (element.isTensor()) add_tensor(name, element.toTensor(), parts);
        }
        break;
      }
      case ArgKind::kNumber:
      case ArgKind::kNumberList:
        if (info.numbers_static || arg.policy == NumberPolicy::kStatic) {
          parts.emplace_back(arg.name, value_text(value));
        }
        break;
      case ArgKind::kStatic:
        parts.emplace_back(arg.name, value_text(value));
        break;
      case ArgKind::kIgnored:
        break;
    }
  }
  return parts;
}

}  // namespace torch_tpu::aten
