// Result<T> is a value or an Error; true means success. An Error reports what is wrong, what was passed, what was
// expected and how to fix it. Every call of the C++ API that can fail returns one.
#pragma once
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "MLXNativeKernels/Generated/Basics.hpp"

namespace mnk {

struct Error {
  ErrorCode code = ErrorCode::invalidArgument;
  std::string op;  // the op or object that refused the call
  std::string what;
  std::string got;
  std::string expected;
  std::string fix;
  bool retryable = false;  // the same call may succeed later

  // All parts as one string: "KVCacheWrite: what (got …, expected …). Fix."
  std::string message() const;
};

// An error inside of a Result. Copies and moves are defined elsewhere, so that callers do not inline those of five
// strings.
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

// A hand-written union: std::variant takes several times as long to compile.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : isValue_(true), value_(std::move(value)) {}
  Result(const Error& error) : isValue_(false), error_(error) {}
  Result(Error&& error) : isValue_(false), error_(std::move(error)) {}

  Result(const Result& other) requires std::is_copy_constructible_v<T> : isValue_(other.isValue_) {
    if (isValue_) {
      new (&value_) T(other.value_);
    } else {
      new (&error_) StoredError(other.error_);
    }
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : isValue_(other.isValue_) {
    if (isValue_) {
      new (&value_) T(std::move(other.value_));
    } else {
      new (&error_) StoredError(std::move(other.error_));
    }
  }
  Result& operator=(Result other) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T>, "a result would be left without a value");
    this->~Result();
    return *new (this) Result(std::move(other));
  }
  ~Result() {
    if (isValue_) {
      value_.~T();
    } else {
      error_.~StoredError();
    }
  }

  explicit operator bool() const { return isValue_; }
  T& operator*() & { return value_; }
  const T& operator*() const& { return value_; }
  T&& operator*() && { return std::move(value_); }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  const Error& error() const& { return error_.value; }
  Error&& error() && { return std::move(error_.value); }

 private:
  bool isValue_;
  union {
    T value_;
    StoredError error_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept {}  // not defaulted: `return {}` would clear the memory of the error first
  Result(const Error& error) : error_(error) {}
  Result(Error&& error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  const Error& error() const& { return error_->value; }
  Error&& error() && { return std::move(error_->value); }

 private:
  std::optional<StoredError> error_;
};

}  // namespace mnk
