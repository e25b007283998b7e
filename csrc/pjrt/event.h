// RAII over PJRT_Event: something the plugin will have done, or failed to do.
#pragma once

#include <functional>
#include <utility>

#include "pjrt/status.h"

namespace torch_tpu::pjrt {

// Owns an event and destroys it; the work it stands for goes on regardless. Move-only. Different
// threads may call the const methods of one event at the same time. An empty event is ready and ok.
class Event {
 public:
  Event() = default;
  Event(const Api& api, PJRT_Event* event) : api_(&api), event_(event) {}
  Event(Event&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      event_ = std::exchange(other.event_, nullptr);
    }
    return *this;
  }
  ~Event() { reset(); }

  explicit operator bool() const { return event_ != nullptr; }
  PJRT_Event* get() const { return event_; }
  PJRT_Event* release() { return std::exchange(event_, nullptr); }
  void reset();

  // Blocks until the event is ready. Returns the error of the work where it failed.
  Status await() const;
  // Does not block. A plugin that cannot tell counts as ready: await() then says what happened.
  bool is_ready() const;
  // Calls `callback` once with the status of the work: at once where the event is ready, else later
  // on a thread of the plugin, where it must be short and must not wait for the device. The event
  // may be destroyed before that. On failure to register the callback is not called.
  Status on_ready(std::function<void(Status)> callback) const;

 private:
  const Api* api_ = nullptr;
  PJRT_Event* event_ = nullptr;
};

inline void Event::reset() {
  if (event_ == nullptr) return;
  PJRT_Event_Destroy_Args args = {};
  args.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
  args.event = std::exchange(event_, nullptr);
  PJRT_Error* error = api_->PJRT_Event_Destroy(&args);
  if (error != nullptr) [[unlikely]]
    (void)take_error(*api_, error);
}

inline Status Event::await() const {
  if (event_ == nullptr) return Status();
  PJRT_Event_Await_Args args = {};
  args.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  args.event = event_;
  return to_status(*api_, api_->PJRT_Event_Await(&args));
}

inline bool Event::is_ready() const {
  if (event_ == nullptr) return true;
  PJRT_Event_IsReady_Args args = {};
  args.struct_size = PJRT_Event_IsReady_Args_STRUCT_SIZE;
  args.event = event_;
  PJRT_Error* error = api_->PJRT_Event_IsReady(&args);
  if (error != nullptr) [[unlikely]] {
    (void)take_error(*api_, error);
    return true;
  }
  return args.is_ready;
}

}  // namespace torch_tpu::pjrt
