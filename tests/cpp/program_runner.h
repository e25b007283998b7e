// Compiles and runs a module on the plugin that TEST_PJRT_PLUGIN names, for tests that compare values.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pjrt/buffer.h"
#include "pjrt/executable.h"
#include "stablehlo/types.h"

namespace torch_tpu::testing {

using Bytes = std::vector<uint8_t>;

struct HostArray {
  stablehlo::DType dtype;
  std::vector<int64_t> dims;
  Bytes bytes;
};

template <typename T>
HostArray host_array(stablehlo::DType dtype, std::vector<int64_t> dims,
                     const std::vector<T>& values) {
  HostArray array{dtype, std::move(dims), Bytes(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

template <typename T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

inline void require_ok(const pjrt::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.str());
}

template <typename T>
T take(pjrt::Result<T> result) {
  require_ok(result.status());
  return std::move(result).value();
}

inline bool has_plugin() {
  const char* path = std::getenv("TEST_PJRT_PLUGIN");
  return path != nullptr && *path != '\0';
}

inline const pjrt::Client& client() {
  static const std::unique_ptr<pjrt::Client> instance = [] {
    const pjrt::Plugin* plugin = take(pjrt::Plugin::load(std::getenv("TEST_PJRT_PLUGIN")));
    return take(pjrt::Client::create(*plugin));
  }();
  return *instance;
}

class Program {
 public:
  explicit Program(const std::string& mlir) {
    pjrt::Result<pjrt::Executable> compiled = pjrt::compile(client(), mlir, {});
    if (!compiled.ok()) throw std::runtime_error(compiled.status().str() + "\n" + mlir);
    executable_ = std::move(compiled).value();
  }

  // The outputs' bytes, row-major.
  std::vector<Bytes> run(const std::vector<HostArray>& arguments) const {
    const pjrt::Api& api = client().api();
    std::vector<pjrt::Buffer> inputs;
    std::vector<PJRT_Buffer*> raw;
    for (const HostArray& array : arguments) {
      inputs.push_back(take(pjrt::host_to_device(client(), client().devices().front(),
                                                 array.bytes.data(), array.dtype, array.dims)));
      raw.push_back(inputs.back().get());
    }
    std::vector<PJRT_Buffer*> outputs(executable_.num_outputs());
    require_ok(executable_.execute(raw.data(), raw.size(), outputs.data()));
    std::vector<Bytes> results;
    for (PJRT_Buffer* output : outputs) {
      pjrt::Buffer owned(api, output);
      Bytes bytes(take(pjrt::host_size(api, output)));
      require_ok(pjrt::device_to_host(api, output, bytes.data(), bytes.size()));
      results.push_back(std::move(bytes));
    }
    return results;
  }

 private:
  pjrt::Executable executable_;
};

}  // namespace torch_tpu::testing
