// Named values to and from the C API's structs.
#include "pjrt/named_value.h"

#include <type_traits>

namespace torch_tpu::pjrt {

std::vector<PJRT_NamedValue> to_c(const NamedValues& values) {
  std::vector<PJRT_NamedValue> out;
  out.reserve(values.size());
  for (const auto& [name, value] : values) {
    PJRT_NamedValue item = {};
    item.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    item.name = name.c_str();
    item.name_size = name.size();
    item.value_size = 1;
    std::visit(
        [&item](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::string>) {
            item.type = PJRT_NamedValue_kString;
            item.string_value = v.c_str();
            item.value_size = v.size();
          } else if constexpr (std::is_same_v<T, bool>) {
            item.type = PJRT_NamedValue_kBool;
            item.bool_value = v;
          } else if constexpr (std::is_same_v<T, int64_t>) {
            item.type = PJRT_NamedValue_kInt64;
            item.int64_value = v;
          } else if constexpr (std::is_same_v<T, float>) {
            item.type = PJRT_NamedValue_kFloat;
            item.float_value = v;
          } else {
            item.type = PJRT_NamedValue_kInt64List;
            item.int64_array_value = v.data();
            item.value_size = v.size();
          }
        },
        value);
    out.push_back(item);
  }
  return out;
}

NamedValues from_c(const PJRT_NamedValue* values, size_t count) {
  NamedValues out;
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& item = values[i];
    const std::string name(item.name, item.name_size);
    switch (item.type) {
      case PJRT_NamedValue_kString:
        out[name] = std::string(item.string_value, item.value_size);
        break;
      case PJRT_NamedValue_kInt64:
        out[name] = item.int64_value;
        break;
      case PJRT_NamedValue_kInt64List:
        out[name] =
            std::vector<int64_t>(item.int64_array_value, item.int64_array_value + item.value_size);
        break;
      case PJRT_NamedValue_kFloat:
        out[name] = item.float_value;
        break;
      case PJRT_NamedValue_kBool:
        out[name] = item.bool_value;
        break;
    }
  }
  return out;
}

}  // namespace torch_tpu::pjrt
