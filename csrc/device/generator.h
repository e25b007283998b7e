// The device's random number generator: a seed and an offset on the host.
// Each random operator takes (seed, offset) as arguments and advances the offset by kOffsetStep.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <optional>

namespace torch_tpu::device {

// PyTorch's CUDA generator counts offsets in multiples of four; code that reads 16-byte states expects the same.
inline constexpr uint64_t kOffsetStep = 4;

struct RandomState {
  uint64_t seed = 0, offset = 0;
};

class TpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit TpuGenerator(c10::DeviceIndex device);
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override { return state_.offset; }
  uint64_t current_seed() const override { return state_.seed; }
  uint64_t seed() override;
  // 16 bytes: seed and offset.
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  RandomState next();

 private:
  TpuGenerator* clone_impl() const override;
  RandomState state_;
};

const at::Generator& default_generator(int device);
// The state a random operator draws from; `generator` defaults to the device's own.
RandomState next_random(const std::optional<at::Generator>& generator, int device);

}  // namespace torch_tpu::device
