#include "aten/node.h"

#include <ATen/native/TypeProperties.h>

#include "aten/dtypes.h"

namespace torch_tpu::aten {
namespace {

c10::Scalar as_scalar(const NumberRef& n) {
  switch (n.kind) {
    case NumberRef::Kind::kBool:
      return c10::Scalar(n.i != 0);
    case NumberRef::Kind::kInt:
      return c10::Scalar(n.i);
    case NumberRef::Kind::kFloat:
      return c10::Scalar(n.f);
    case NumberRef::Kind::kComplex:
      return c10::Scalar(c10::complex<double>(n.f, n.im));
  }
  return {};
}

bool wide(c10::ScalarType t) {
  return t == c10::ScalarType::Double || t == c10::ScalarType::ComplexDouble;
}

class NodeBuilder {
 public:
  NodeBuilder(const OpInfo& info, const Walk& walk, const std::vector<int>& values,
              std::vector<DType>& scalars, bool constants)
      : info_(info), walk_(walk), values_(values), scalars_(scalars), constants_(constants) {}

  ir::Node build(c10::ArrayRef<c10::IValue> args) {
    node_.op = std::string(info_.row != nullptr ? info_.row->name : std::string_view(info_.name));
    const c10::ScalarType promoted = promoted_type(info_, walk_);
    node_.promoted = to_dtype(promoted);
    float_type_ = wide(promoted) ? DType::kF64 : DType::kF32;
    for (const OperandRef& operand : walk_.operands) {
      if (operand.slot != nullptr && wide(operand.impl->dtype().toScalarType()))
        float_type_ = DType::kF64;
    }
    for (size_t i = 0; i < args.size(); ++i) {  // a factory's values are as exact as its dtype
      if (info_.args[i].name == "dtype" && args[i].isInt() &&
          wide(static_cast<c10::ScalarType>(args[i].toInt()))) {
        float_type_ = DType::kF64;
      }
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const ArgInfo& arg = info_.args[i];
      ir::Arg converted = argument(arg, args[i]);
      if (arg.is_out) continue;
      node_.names.push_back(arg.name);
      node_.args.push_back(std::move(converted));
    }
    return std::move(node_);
  }

 private:
  ir::Arg argument(const ArgInfo& arg, const c10::IValue& value) {
    switch (arg.kind) {
      case ArgKind::kTensor:
        return ir::TensorArg{value.isTensor() ? tensor(value) : -1};
      case ArgKind::kTensorList: {
        if (value.isNone()) return ir::None{};
        ir::TensorListArg list;
        for (const c10::IValue& element : list_of(value)) {
          list.operands.push_back(element.isTensor() ? tensor(element) : -1);
        }
        return list;
      }
      case ArgKind::kNumber:
        if (value.isNone()) return ir::None{};
        return number();
      case ArgKind::kNumberList: {
        if (value.isNone()) return ir::None{};
        std::vector<ir::Number> list;
        const size_t count =
            value.isDoubleList() ? value.toDoubleList().size() : value.toListRef().size();
        for (size_t i = 0; i < count; ++i) list.push_back(number());
        return list;
      }
      case ArgKind::kStatic:
        return constant(arg, value);
      case ArgKind::kIgnored:
        return ir::None{};
    }
    return ir::None{};
  }

  int tensor(const c10::IValue& value) {
    c10::TensorImpl* impl = value.unsafeToTensorImpl();
    if (impl == c10::UndefinedTensorImpl::singleton()) return -1;
    const size_t index = next_operand_++;
    const OperandRef& ref = walk_.operands[index];
    ir::Operand operand;
    if (ref.number >= 0) {
      const NumberRef& n = walk_.numbers[next_number_++];
      DType dtype = to_dtype(impl->dtype().toScalarType());
      operand.wrapped_number = impl->is_wrapped_number();
      if (operand.wrapped_number && dtype == DType::kF64) dtype = float_type_;
      operand.view.dtype = dtype;
      const ir::Number number = to_number(n);
      operand.scalar_slot = number.slot;
      if (number.slot < 0) {
        operand.is_constant = true;
        operand.constant = number;
      }
    } else {
      operand.value = values_[index];
      operand.view = view_of(impl, ref.offset);
    }
    node_.operands.push_back(std::move(operand));
    return static_cast<int>(index);
  }

  ir::Number number() { return to_number(walk_.numbers[next_number_++]); }

  ir::Number to_number(const NumberRef& n) {
    ir::Number out;
    out.kind = static_cast<ir::Number::Kind>(n.kind);
    out.i = n.i;
    out.f = n.f;
    out.im = n.im;
    if (n.repeated && !constants_) {
      out.slot = static_cast<int>(scalars_.size()) - 1;
    } else if (n.dynamic && !constants_) {
      out.slot = static_cast<int>(scalars_.size());
      scalars_.push_back(n.kind == NumberRef::Kind::kFloat ? float_type_ : DType::kI64);
    }
    return out;
  }

  ir::Arg constant(const ArgInfo& arg, const c10::IValue& value) {
    if (value.isNone()) return ir::None{};
    if (value.isInt()) {
      if (arg.name == "dtype" || arg.name.ends_with("_dtype") || arg.name == "self_dtype") {
        return to_dtype(static_cast<c10::ScalarType>(value.toInt()));
      }
      return integer(value.toInt());
    }
    if (value.isBool()) {
      ir::Number n;
      n.kind = ir::Number::Kind::kBool;
      n.i = value.toBool();
      return n;
    }
    if (value.isDouble()) {
      ir::Number n;
      n.kind = ir::Number::Kind::kFloat;
      n.f = value.toDouble();
      return n;
    }
    if (value.isIntList()) return value.toIntVector();
    if (value.isBoolList()) {
      const auto list = value.toBoolList();
      std::vector<bool> out;
      for (size_t i = 0; i < list.size(); ++i) out.push_back(list.get(i));
      return out;
    }
    if (value.isString()) return value.toStringRef();
    if (value.isList()) {  // SymInt[] and int[] that arrive as generic lists
      std::vector<int64_t> out;
      for (const c10::IValue& element : value.toListRef()) out.push_back(element.toInt());
      return out;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(false, info_.name, ": argument ", arg.name,
                                " is not supported on the tpu device");
  }

  static ir::Number integer(int64_t value) {
    ir::Number n;
    n.kind = ir::Number::Kind::kInt;
    n.i = value;
    return n;
  }

  const OpInfo& info_;
  const Walk& walk_;
  const std::vector<int>& values_;
  std::vector<DType>& scalars_;
  bool constants_;
  ir::Node node_;
  DType float_type_ = DType::kF32;
  size_t next_operand_ = 0, next_number_ = 0;
};

}  // namespace

ir::ViewSpec view_of(const c10::TensorImpl* impl, int64_t offset) {
  ir::ViewSpec view;
  view.dtype = to_dtype(impl->dtype().toScalarType());
  for (const int64_t s : impl->sizes()) view.sizes.emplace_back(s);
  view.strides.assign(impl->strides().begin(), impl->strides().end());
  view.offset = offset;
  return view;
}

c10::ScalarType promoted_type(const OpInfo& info, const Walk& walk) {
  // Copies convert to what they write to: they are no promotion, which not all pairs of dtypes have.
  if (info.row != nullptr && (info.row->name == "copy" || info.row->name == "_foreach_copy") &&
      !walk.operands.empty()) {
    return walk.operands.front().impl->dtype().toScalarType();
  }
  at::native::ResultTypeState state = {};
  bool any = false;
  for (const OperandRef& operand : walk.operands) {
    if (info.args[static_cast<size_t>(operand.argument)].is_out) continue;
    state = at::native::update_result_type_state(borrow(operand.impl), state);
    any = true;
  }
  for (size_t i = 0; i < walk.numbers.size(); ++i) {
    const NumberRef& n = walk.numbers[i];
    const ArgInfo& arg = info.args[static_cast<size_t>(n.argument)];
    if (arg.kind != ArgKind::kNumber) continue;
    const auto type = info.handle.schema().arguments()[static_cast<size_t>(n.argument)].type();
    const bool scalar =
        type->kind() == c10::TypeKind::NumberType ||
        (type->kind() == c10::TypeKind::OptionalType &&
         type->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::NumberType);
    // alpha and beta scale; they do not take part in promotion.
    if (!scalar || arg.name == "alpha" || arg.name == "beta") continue;
    state = at::native::update_result_type_state(as_scalar(n), state);
    any = true;
  }
  return any ? at::native::result_type(state) : c10::get_default_dtype_as_scalartype();
}

ir::Node make_node(const OpInfo& info, const Walk& walk, c10::ArrayRef<c10::IValue> args,
                   const std::vector<int>& values, std::vector<stablehlo::DType>& scalars,
                   bool numbers_as_constants) {
  return NodeBuilder(info, walk, values, scalars, numbers_as_constants).build(args);
}

}  // namespace torch_tpu::aten
