// Result<T> is a value or an Error; true means success. An Error names what is wrong, what was got,
// what was expected and how to fix it. Every call of the C++ API that can fail returns one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace mnk {

enum class ErrorCode : uint32_t {
  invalidArgument = 1,  // the caller's request breaks a rule; nothing was encoded
  unsupported,          // the device or this build lacks something
  outOfMemory,
  libraryNotFound,
  shaderBuild,    // the kernel text does not compile, or lacks the function
  deviceFault,    // the device stopped a submission
  deviceLost,     // the device is gone, or takes no more work of this process
  timeout,        // the device stopped a submission that took too long
  pageFault,      // a kernel touched memory that is not its own
  notPermitted,   // the system forbids work on the device now, such as in the background
  wouldDeadlock,  // waiting here could never end
};

std::string_view name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::invalidArgument;
  std::string op;  // the op or object that refused
  std::string what;
  std::string got;
  std::string expected;
  std::string fix;
  bool retryable = false;  // the same call may succeed later

  // All parts as one text: "KVCacheWrite: what (got …, expected …). Fix."
  std::string message() const;
};

// An error inside of a Result. Copies and moves are defined elsewhere, or every caller would inline those of five
// texts.
class StoredError {
 public:
  StoredError(const Error& error);
  StoredError(Error&& error) noexcept;
  StoredError(const StoredError&);
  StoredError(StoredError&&) noexcept;
  StoredError& operator=(const StoredError&);
  StoredError& operator=(StoredError&&) noexcept;
  ~StoredError();

  Error value;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(const Error& error) : state_(std::in_place_index<1>, error) {}
  Result(Error&& error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Error& error() const& { return std::get_if<1>(&state_)->value; }
  Error&& error() && { return std::move(std::get_if<1>(&state_)->value); }

 private:
  std::variant<T, StoredError> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(const Error& error) : error_(error) {}
  Result(Error&& error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  const Error& error() const& { return error_->value; }
  Error&& error() && { return std::move(error_->value); }

 private:
  std::optional<StoredError> error_;
};

}  // namespace mnk
