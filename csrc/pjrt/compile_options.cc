// CompileOptionsProto in protobuf's wire format. Field numbers are those of
// xla/pjrt/proto/compile_options.proto.
#include "pjrt/compile_options.h"

#include <cstring>
#include <string_view>
#include <type_traits>

namespace torch_tpu::pjrt {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2 };

// A message under construction. Fields appear in the order of the calls.
class Message {
 public:
  void integer(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3 | kVarint);
    varint(static_cast<uint64_t>(value));
  }
  void flag(int field, bool value) {
    if (value) integer(field, 1);
  }
  void real(int field, double value) {
    varint(static_cast<uint64_t>(field) << 3 | kFixed64);
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
  }
  void bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | kBytes);
    varint(value.size());
    bytes_ += value;
  }
  void packed(int field, const std::vector<int64_t>& values) {
    Message items;
    for (const int64_t value : values) items.varint(static_cast<uint64_t>(value));
    bytes(field, items.bytes_);
  }
  const std::string& str() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

std::string device_assignment(const CompileOptions& options) {
  Message assignment;
  assignment.integer(1, options.num_replicas);
  assignment.integer(2, options.num_partitions);
  for (int64_t partition = 0; partition < options.num_partitions; ++partition) {
    std::vector<int64_t> devices;
    for (int64_t replica = 0; replica < options.num_replicas; ++replica) {
      devices.push_back(options.device_assignment.at(
          static_cast<size_t>(replica * options.num_partitions + partition)));
    }
    Message computation;
    computation.packed(1, devices);
    assignment.bytes(3, computation.str());
  }
  return assignment.str();
}

std::string build_options(const CompileOptions& options) {
  Message build;
  build.integer(1, options.device_ordinal);
  build.integer(4, options.num_replicas);
  build.integer(5, options.num_partitions);
  build.flag(6, options.use_spmd_partitioning);
  if (!options.device_assignment.empty()) build.bytes(9, device_assignment(options));
  build.flag(19, options.use_shardy);
  if (options.optimization_level != OptimizationLevel::kDefault) {
    build.integer(24, static_cast<int64_t>(options.optimization_level));
  }
  return build.str();
}

using OverrideValue = std::variant<std::string, bool, int64_t, double>;

std::string override_entry(const std::string& name, const OverrideValue& value) {
  Message option;
  std::visit(
      [&option](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          option.bytes(1, v);
        } else if constexpr (std::is_same_v<T, bool>) {
          option.integer(2, v ? 1 : 0);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          option.integer(3, v);
        } else {
          option.real(4, v);
        }
      },
      value);
  Message entry;
  entry.bytes(1, name);
  entry.bytes(2, option.str());
  return entry.str();
}

}  // namespace

std::string CompileOptions::serialize() const {
  Message options;
  options.bytes(3, build_options(*this));
  options.flag(4, compile_portable_executable);
  for (const auto& [name, value] : env_option_overrides) {
    options.bytes(7, override_entry(name, value));
  }
  return options.str();
}

}  // namespace torch_tpu::pjrt
