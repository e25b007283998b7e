// Named values: the options and attributes that cross the PJRT C API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt/status.h"

namespace torch_tpu::pjrt {

using Value = std::variant<std::string, bool, int64_t, std::vector<int64_t>, float>;
using NamedValues = std::map<std::string, Value>;

// The C structs for `values`. They point into `values`, which must outlive the result unchanged.
std::vector<PJRT_NamedValue> to_c(const NamedValues& values);

// A copy of the plugin's values; kinds this header does not know are left out.
NamedValues from_c(const PJRT_NamedValue* values, size_t count);

}  // namespace torch_tpu::pjrt
