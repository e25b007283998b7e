// Callbacks on events.
#include "pjrt/event.h"

#include <memory>

namespace torch_tpu::pjrt {
namespace {

struct Callback {
  const Api& api;
  std::function<void(Status)> function;
};

void call(PJRT_Error* error, void* user_arg) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(user_arg));
  callback->function(to_status(callback->api, error));
}

}  // namespace

Status Event::on_ready(std::function<void(Status)> callback) const {
  if (event_ == nullptr) {
    callback(Status());
    return Status();
  }
  auto owned = std::make_unique<Callback>(Callback{*api_, std::move(callback)});
  PJRT_Event_OnReady_Args args = {};
  args.struct_size = PJRT_Event_OnReady_Args_STRUCT_SIZE;
  args.event = event_;
  args.callback = &call;
  args.user_arg = owned.get();
  PJRT_Error* error = api_->PJRT_Event_OnReady(&args);
  if (error != nullptr) return take_error(*api_, error);
  owned.release();  // NOLINT: call() owns it now
  return Status();
}

}  // namespace torch_tpu::pjrt
