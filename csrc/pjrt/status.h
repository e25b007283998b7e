// Status and Result<T>: how this layer reports failure. No exceptions; one pointer's test on
// success.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pjrt_c_api.h"

namespace torch_tpu::pjrt {

// The values of PJRT_Error_Code (and of absl::StatusCode).
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

const char* name(Code code);  // "INVALID_ARGUMENT"

// Success, or a code and a message. Copies share the message. Immutable, so safe to read from any
// thread.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : error_(std::make_shared<const Error>(Error{code, std::move(message)})) {}

  bool ok() const { return error_ == nullptr; }
  Code code() const { return error_ ? error_->code : Code::kOk; }
  const std::string& message() const;
  std::string str() const;  // "INVALID_ARGUMENT: message", or "OK"
  // The same code with `prefix` and ": " before the message; success stays success.
  Status with_prefix(std::string_view prefix) const;

 private:
  struct Error {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Error> error_;
};

// A value, or the status that says why there is none. value() may be called only when ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: returned as is
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

using Api = PJRT_Api;

// Whether the plugin behind `api` is new enough to have `entry`: a table ends where the plugin's
// version ended.
#define TT_PJRT_HAS(api, entry)                                                \
  ((api).struct_size >= offsetof(PJRT_Api, entry) + sizeof(PJRT_Api::entry) && \
   (api).entry != nullptr)

// Reads and destroys `error`, which must not be null.
Status take_error(const Api& api, PJRT_Error* error);

// Success for null; else reads and destroys the error.
inline Status to_status(const Api& api, PJRT_Error* error) {
  if (error == nullptr) [[likely]]
    return Status();
  return take_error(api, error);
}

// UNIMPLEMENTED: the plugin is too old for `entry`.
Status missing_entry(const char* entry);

}  // namespace torch_tpu::pjrt
