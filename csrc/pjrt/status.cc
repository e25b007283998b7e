// Status values, and reading the plugin's errors.
#include "pjrt/status.h"

namespace torch_tpu::pjrt {

const char* name(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

const std::string& Status::message() const {
  static const std::string empty;
  return error_ ? error_->message : empty;
}

std::string Status::str() const {
  if (ok()) return "OK";
  return std::string(name(code())) + ": " + message();
}

Status Status::with_prefix(std::string_view prefix) const {
  if (ok()) return *this;
  return Status(code(), std::string(prefix) + ": " + message());
}

Status take_error(const Api& api, PJRT_Error* error) {
  PJRT_Error_Message_Args message = {};
  message.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE;
  message.error = error;
  api.PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);

  PJRT_Error_GetCode_Args code = {};
  code.struct_size = PJRT_Error_GetCode_Args_STRUCT_SIZE;
  code.error = error;
  PJRT_Error* second = api.PJRT_Error_GetCode(&code);
  const bool known = second == nullptr && code.code != PJRT_Error_Code_OK;

  PJRT_Error_Destroy_Args destroy = {};
  destroy.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE;
  destroy.error = error;
  api.PJRT_Error_Destroy(&destroy);
  if (second != nullptr) {
    destroy.error = second;
    api.PJRT_Error_Destroy(&destroy);
  }
  return Status(known ? static_cast<Code>(code.code) : Code::kUnknown, std::move(text));
}

Status missing_entry(const char* entry) {
  return Status(Code::kUnimplemented,
                std::string("the PJRT plugin is too old: it has no ") + entry);
}

}  // namespace torch_tpu::pjrt
