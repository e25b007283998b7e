#include "aten/op_cache.h"

#include <mutex>
#include <unordered_map>

namespace torch_tpu::aten {

const OpInfo& op_info(const c10::OperatorHandle& handle) {
  static auto* mutex = new std::mutex;
  static auto* infos = new std::unordered_map<c10::OperatorName, std::unique_ptr<OpInfo>>;
  std::lock_guard lock(*mutex);
  auto& entry = (*infos)[handle.operator_name()];
  if (!entry) entry = std::make_unique<OpInfo>(handle);
  return *entry;
}

}  // namespace torch_tpu::aten
