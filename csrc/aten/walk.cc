#include "aten/walk.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cmath>

#include "aten/dtypes.h"
#include "device/current.h"

namespace torch_tpu::aten {
namespace {

constexpr uint64_t kAbsent = 0x9e3779b97f4a7c15;
constexpr uint64_t kList = 0xc2b2ae3d27d4eb4f;

// Marks arrays and slots seen in this walk, so that aliases are found without comparing all pairs. Under the mutex.
uint64_t g_walk = 0;

int64_t double_bits(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

[[noreturn]] void different_devices(c10::Device a, c10::Device b) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ", a,
              " and ", b, "!");
}

class Walker {
 public:
  Walker(const OpInfo& info, Walk& walk) : info_(info), walk_(walk), id_(++g_walk) {
    // The default dtype decides what factories and integer divisions give; it is smaller than an OpInfo.
    hasher_.add(reinterpret_cast<uint64_t>(&info) +
                static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()));
  }

  void run(const Stack& stack) {
    const size_t count = info_.args.size();
    const c10::IValue* values = stack.data() + (stack.size() - count);
    for (size_t i = 0; i < count; ++i) {
      argument_ = static_cast<int>(i);
      const ArgInfo& arg = info_.args[i];
      const c10::IValue& value = values[i];
      switch (arg.kind) {
        case ArgKind::kTensor:
          if (value.isTensor()) {
            tensor(value.unsafeToTensorImpl(), arg);
          } else {
            hasher_.add(kAbsent);
          }
          break;
        case ArgKind::kTensorList: {
          const auto list = list_of(value);
          hasher_.add(kList + list.size());
          for (const c10::IValue& element : list) {
            if (element.isTensor()) {
              tensor(element.unsafeToTensorImpl(), arg);
            } else {
              hasher_.add(kAbsent);
            }
          }
          break;
        }
        case ArgKind::kNumber:
          number(value, arg.policy);
          break;
        case ArgKind::kNumberList:
          if (value.isNone()) {
            hasher_.add(kAbsent);
            break;
          }
          if (value.isDoubleList()) {
            const auto list = value.toDoubleVector();
            hasher_.add(kList + list.size());
            for (const double x : list) number(c10::IValue(x), arg.policy);
          } else {
            const auto list = value.toListRef();
            hasher_.add(kList + list.size());
            for (const c10::IValue& element : list) number(element, arg.policy);
          }
          break;
        case ArgKind::kStatic:
          constant(value);
          break;
        case ArgKind::kIgnored:
          if (value.isDevice() && value.toDevice().has_index())
            factory_device_ = value.toDevice().index();
          break;
      }
    }
    if (walk_.device < 0)
      walk_.device = factory_device_ >= 0 ? factory_device_ : device::current_device();
    hasher_.add(static_cast<uint64_t>(walk_.device));
    walk_.key = hasher_.finish();
  }

 private:
  void tensor(c10::TensorImpl* impl, const ArgInfo& arg) {
    if (impl == c10::UndefinedTensorImpl::singleton()) {
      hasher_.add(kAbsent);
      return;
    }
    OperandRef& operand = walk_.operands.emplace_back();
    operand.impl = impl;
    operand.argument = argument_;
    if (impl->device_type() != c10::DeviceType::PrivateUse1) return host_scalar(impl, operand, arg);
    TORCH_CHECK(impl->has_storage(), info_.name,
                ": sparse and nested tensors are not supported on the tpu device");
    walk_.lazy |= arg.kind == ArgKind::kTensor && (impl->is_conj() || impl->is_neg());
    const int device = impl->device().index();
    if (walk_.device < 0) {
      walk_.device = device;
    } else if (walk_.device != device) {
      different_devices(
          c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(walk_.device)),
          impl->device());
    }
    const c10::DataPtr& data = impl->unsafe_storage().data_ptr();
    operand.slot = engine::slot_of(data);
    operand.offset = impl->storage_offset();
    const auto dtype = static_cast<uint64_t>(impl->dtype().toScalarType());
    if (operand.slot == nullptr) {  // a storage without memory (0 bytes), or not one of ours
      TORCH_CHECK(impl->unsafe_storage().nbytes() == 0, info_.name,
                  ": a storage on tpu was not made by this backend");
      hasher_.add(dtype | 1u << 16);
      sizes_and_strides(impl);
      return;
    }
    if (data.get_context() != operand.slot) [[unlikely]] {  // at::from_blob over an address of ours
      operand.offset += (static_cast<const char*>(data.get()) - operand.slot->address) /
                        static_cast<int64_t>(impl->dtype().itemsize());
    }
    // A captured program reads its operands where they lay at the capture.
    if (info_.row == nullptr) hasher_.add(static_cast<uint64_t>(operand.offset));
    uint64_t alias = 0;
    if (operand.slot->seen_walk == id_) {
      alias = 1u + operand.slot->seen_index;
      operand.same_slot = static_cast<int>(operand.slot->seen_index);
    } else {
      operand.slot->seen_walk = id_;
      operand.slot->seen_index = static_cast<uint32_t>(walk_.operands.size() - 1);
    }
    engine::Array* array = operand.slot->value.get();
    const engine::ArrayType* type = nullptr;
    if (array != nullptr) {
      type = operand.type = array->type;
      if (array->seen_walk == id_) {
        alias |= uint64_t{1u + array->seen_index} << 32;
        operand.same_array = static_cast<int>(array->seen_index);
      } else {
        array->seen_walk = id_;
        array->seen_index = static_cast<uint32_t>(walk_.operands.size() - 1);
      }
      // A tensor that is its whole storage, in order: the array's type says it all.
      if (operand.offset == 0 && impl->is_contiguous() &&
          impl->sizes() == c10::IntArrayRef(type->dims)) {
        hasher_.add(reinterpret_cast<uint64_t>(type) + dtype);
        if (alias != 0) hasher_.add(alias);
        return;
      }
    }
    hasher_.add(reinterpret_cast<uint64_t>(type) + (dtype | 2u << 16));
    hasher_.add(alias ^ static_cast<uint64_t>(operand.slot->bytes) << 20);
    sizes_and_strides(impl);
  }

  void sizes_and_strides(const c10::TensorImpl* impl) {
    const auto sizes = impl->sizes();
    const auto strides = impl->strides();
    hasher_.add(sizes.size());
    for (const int64_t s : sizes) hasher_.add(static_cast<uint64_t>(s));
    for (const int64_t s : strides) hasher_.add(static_cast<uint64_t>(s));
  }

  // A 0-d CPU tensor joins in as a number of its own dtype; any other CPU tensor is an error.
  void host_scalar(c10::TensorImpl* impl, OperandRef& operand, const ArgInfo& arg) {
    const c10::Device here(c10::DeviceType::PrivateUse1,
                           static_cast<c10::DeviceIndex>(std::max(walk_.device, 0)));
    if (impl->device_type() != c10::DeviceType::CPU || impl->dim() != 0 || arg.written ||
        impl->is_sparse()) {
      different_devices(here, impl->device());
    }
    const auto dtype = impl->dtype().toScalarType();
    NumberRef& n = walk_.numbers.emplace_back();
    operand.number = static_cast<int>(walk_.numbers.size() - 1);
    n.argument = argument_;
    n.dynamic = !info_.numbers_static && !c10::isComplexType(dtype);
    const c10::Scalar value =
        at::Tensor(
            c10::intrusive_ptr<c10::TensorImpl,
                               c10::UndefinedTensorImpl>::unsafe_reclaim_from_nonowning(impl))
            .item();
    set_number(n, value);
    hasher_.add(static_cast<uint64_t>(dtype) | 4u << 16 |
                (impl->is_wrapped_number() ? 8u << 16 : 0));
    if (!n.dynamic) hash_value(n);
  }

  static void set_number(NumberRef& n, const c10::Scalar& value) {
    if (value.isBoolean()) {
      n.kind = NumberRef::Kind::kBool;
      n.i = value.to<bool>();
    } else if (value.isIntegral(false)) {
      n.kind = NumberRef::Kind::kInt;
      n.i = value.to<int64_t>();
    } else if (value.isComplex()) {
      n.kind = NumberRef::Kind::kComplex;
      const auto z = value.to<c10::complex<double>>();
      n.f = z.real();
      n.im = z.imag();
    } else {
      n.kind = NumberRef::Kind::kFloat;
      n.f = value.to<double>();
    }
  }

  void number(const c10::IValue& value, NumberPolicy policy) {
    if (value.isNone()) {
      hasher_.add(kAbsent);
      return;
    }
    NumberRef& n = walk_.numbers.emplace_back();
    n.argument = argument_;
    if (value.isDouble()) {
      n.kind = NumberRef::Kind::kFloat;
      n.f = value.toDouble();
    } else if (value.isInt()) {
      n.kind = NumberRef::Kind::kInt;
      n.i = value.toInt();
    } else {
      set_number(n, value.toScalar());
    }
    n.dynamic = n.kind != NumberRef::Kind::kComplex && is_dynamic(n, policy);
    if (walk_.numbers.size() > 1 && n.dynamic) {
      // Lists of one value (an optimizer's step sizes) make equal kernels, which the compiler builds once.
      const NumberRef& before = walk_.numbers[walk_.numbers.size() - 2];
      n.repeated = before.dynamic && before.argument == n.argument && before.kind == n.kind &&
                   before.i == n.i && double_bits(before.f) == double_bits(n.f);
    }
    hasher_.add(static_cast<uint64_t>(n.kind) | (n.dynamic ? 16u : 32u) | (n.repeated ? 64u : 0u));
    if (!n.dynamic) hash_value(n);
  }

  static bool is_dynamic(const NumberRef& n, NumberPolicy policy) {
    const bool integral = n.kind != NumberRef::Kind::kFloat;
    const double value = integral ? static_cast<double>(n.i) : n.f;
    switch (policy) {
      case NumberPolicy::kDynamic:
        return true;
      case NumberPolicy::kStatic:
        return false;
      case NumberPolicy::kStaticIfOne:
        return value != 1;
      case NumberPolicy::kStaticIfSmall:
        return !(std::abs(value) <= 4 && value * 2 == std::floor(value * 2));
    }
    return true;
  }

  void hash_value(const NumberRef& n) {
    hasher_.add(static_cast<uint64_t>(n.i));
    hasher_.add(static_cast<uint64_t>(double_bits(n.f)));
    if (n.kind == NumberRef::Kind::kComplex) hasher_.add(static_cast<uint64_t>(double_bits(n.im)));
  }

  void constant(const c10::IValue& value) {
    if (value.isInt()) {
      hasher_.add(static_cast<uint64_t>(value.toInt()));
    } else if (value.isNone()) {
      hasher_.add(kAbsent);
    } else if (value.isBool()) {
      hasher_.add(value.toBool() ? 3 : 2);
    } else if (value.isIntList()) {
      const auto list = value.toIntList();
      hasher_.add(kList + list.size());
      for (size_t i = 0; i < list.size(); ++i) hasher_.add(static_cast<uint64_t>(list.get(i)));
    } else if (value.isBoolList()) {
      const auto list = value.toBoolList();
      hasher_.add(kList + list.size());
      for (size_t i = 0; i < list.size(); ++i) hasher_.add(list.get(i) ? 3 : 2);
    } else if (value.isString()) {
      const std::string& text = value.toStringRef();
      hasher_.add(text.size());
      hasher_.add_bytes(text.data(), text.size());
    } else if (value.isDouble()) {
      hasher_.add(static_cast<uint64_t>(double_bits(value.toDouble())));
    } else if (value.isList()) {
      const auto list = value.toListRef();
      hasher_.add(kList + list.size());
      for (const c10::IValue& element : list) constant(element);
    } else {
      TORCH_CHECK_NOT_IMPLEMENTED(false, info_.name, ": an argument of type ", value.tagKind(),
                                  " is not supported on the tpu device");
    }
  }

  const OpInfo& info_;
  Walk& walk_;
  uint64_t id_;
  int argument_ = 0;
  int factory_device_ = -1;
  ir::KeyHasher hasher_;
};

// The bytes from the operand's first element to the end of its last.
std::pair<int64_t, int64_t> extent(const OperandRef& operand) {
  const auto item = static_cast<int64_t>(operand.impl->dtype().itemsize());
  int64_t last = operand.offset;
  for (int64_t d = 0; d < operand.impl->dim(); ++d) {
    if (operand.impl->size(d) == 0) return {0, 0};
    last += (operand.impl->size(d) - 1) * operand.impl->stride(d);
  }
  return {operand.offset * item, (last + 1) * item};
}

}  // namespace

bool order_matters(const OpInfo& info, const Walk& walk) {
  struct Element {
    int root, place;  // first operand of the storage, position in its list
    bool written;
    std::pair<int64_t, int64_t> bytes;
  };
  bool any_shared = false;
  for (const OperandRef& operand : walk.operands) any_shared |= operand.same_slot >= 0;
  if (!any_shared) return false;
  std::vector<Element> elements;
  int argument = -1, place = 0;
  for (size_t i = 0; i < walk.operands.size(); ++i) {
    const OperandRef& operand = walk.operands[i];
    place = operand.argument == argument ? place + 1 : 0;
    argument = operand.argument;
    if (operand.slot == nullptr) continue;
    elements.push_back({operand.same_slot >= 0 ? operand.same_slot : static_cast<int>(i), place,
                        info.args[static_cast<size_t>(argument)].written, extent(operand)});
  }
  for (const Element& a : elements) {
    if (!a.written) continue;
    for (const Element& b : elements) {
      if (a.root == b.root && a.place != b.place && a.bytes.first < b.bytes.second &&
          b.bytes.first < a.bytes.second) {
        return true;
      }
    }
  }
  return false;
}

void walk_arguments(const OpInfo& info, const Stack& stack, Walk& walk) {
  Walker(info, walk).run(stack);
}

}  // namespace torch_tpu::aten
