#include "device/generator.h"

#include <ATen/Functions.h>
#include <ATen/Utils.h>
#include <ATen/core/GeneratorForPrivateuseone.h>

#include <array>
#include <mutex>

#include "engine/memory.h"

namespace torch_tpu::device {

TpuGenerator::TpuGenerator(c10::DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, device),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {
  state_.seed = c10::default_rng_seed_val;
}

void TpuGenerator::set_current_seed(uint64_t seed) { state_ = {seed, 0}; }

void TpuGenerator::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % kOffsetStep == 0, "offset must be a multiple of ", kOffsetStep);
  state_.offset = offset;
}

uint64_t TpuGenerator::seed() {
  const uint64_t seed = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(seed);
  return seed;
}

void TpuGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK_TYPE(state.device_type() == c10::DeviceType::CPU &&
                       state.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                   "RNG state must be a torch.ByteTensor");
  TORCH_CHECK(state.numel() == sizeof state_ && state.is_contiguous(),
              "RNG state of a tpu generator has ", sizeof state_, " bytes (seed and offset), got ",
              state.numel());
  std::memcpy(&state_, state.data(), sizeof state_);
}

c10::intrusive_ptr<c10::TensorImpl> TpuGenerator::get_state() const {
  at::Tensor state =
      at::empty({sizeof state_}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  std::memcpy(state.mutable_data_ptr(), &state_, sizeof state_);
  return state.getIntrusivePtr();
}

RandomState TpuGenerator::next() {
  const RandomState now = state_;
  state_.offset += kOffsetStep;
  return now;
}

TpuGenerator* TpuGenerator::clone_impl() const {
  auto* copy = new TpuGenerator(device().index());
  copy->state_ = state_;
  return copy;
}

const at::Generator& default_generator(int device) {
  static auto* generators = [] {
    auto* made = new std::array<at::Generator, engine::kMaxDevices>;
    for (int i = 0; i < engine::kMaxDevices; ++i) {
      (*made)[static_cast<size_t>(i)] =
          at::make_generator<TpuGenerator>(static_cast<c10::DeviceIndex>(i));
    }
    return made;
  }();
  TORCH_CHECK(device >= 0 && device < engine::kMaxDevices, "invalid tpu device index ", device);
  return (*generators)[static_cast<size_t>(device)];
}

RandomState next_random(const std::optional<at::Generator>& generator, int device) {
  at::Generator used = generator && generator->defined() ? *generator : default_generator(device);
  TORCH_CHECK(used.device().type() == c10::DeviceType::PrivateUse1,
              "Expected a 'tpu' device type for generator but found '", used.device().type(), "'");
  std::lock_guard lock(used.mutex());
  return static_cast<TpuGenerator*>(used.unsafeGetGeneratorImpl())->next();
}

}  // namespace torch_tpu::device
