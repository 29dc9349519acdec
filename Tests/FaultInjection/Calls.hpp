// Calls of the C API in which allocations may fail.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "Injection.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::inject {

// The outcome of a call.
struct Status {
  bool succeeded = true;
  ErrorCode code = {};
  std::string message = {};
};
// A call that can be made again.
using Step = std::function<Status()>;

// The name of the current call, for reports.
inline std::atomic<const char*> currentCall = "nothing";

template <typename Body>
auto call(const char* name, Body&& body) {
  currentCall = name;
  const Armed armed;
  return body();
}

// The error that a call stored, or a message that it stored none.
inline Status failure(mnk_error* error) {
  Status status{false, static_cast<ErrorCode>(mnk_error_get_code(error)), mnk_error_message(error)};
  if (!error) status.message = "no error was stored";
  mnk_error_release(error);
  return status;
}

// A call that takes an error and returns whether it succeeded.
template <typename Body>
Status run(const char* name, Body body) {
  mnk_error* error = nullptr;
  return call(name, [&] { return body(&error); }) ? Status() : failure(error);
}

#define MNK_RELEASE(name)                   \
  inline void release(mnk_##name* handle) { \
    mnk_##name##_release(handle);           \
  }
MNK_RELEASE(device)
MNK_RELEASE(library)
MNK_RELEASE(tensor)
MNK_RELEASE(plan)
MNK_RELEASE(encoder)
MNK_RELEASE(completion)
MNK_RELEASE(recorded_step)
MNK_RELEASE(cache)

template <typename Handle>
void drop(Handle*& kept) {
  call("release", [&] { release(kept); });
  kept = nullptr;
}

// A call that returns an object, which replaces `kept`.
template <typename Handle, typename Body>
Status make(const char* name, Handle*& kept, Body body) {
  mnk_error* error = nullptr;
  Handle* handle = call(name, [&] { return body(&error); });
  if (!handle) return failure(error);
  drop(kept);
  kept = handle;
  return {};
}

// The same for one function of the API, whose last argument is the error.
#define RUN(function, ...) inject::run(#function, [&](mnk_error_out error) { return function(__VA_ARGS__, error); })
#define MAKE(kept, function, ...) \
  inject::make(#function, kept, [&](mnk_error_out error) { return function(__VA_ARGS__, error); })
// Steps that are one such call.
#define RUNS(...) [=, this] { return RUN(__VA_ARGS__); }
#define MAKES(...) [=, this] { return MAKE(__VA_ARGS__); }

// Releases a text that the caller owns; null means that memory was exhausted.
inline Status copied(char* text) {
  if (!text) return {false, ErrorCode::outOfMemory, "no text"};
  mnk_text_release(text);
  return {};
}

inline void count(void* counter) {
  ++*static_cast<std::atomic<int>*>(counter);
}

}  // namespace mnk::inject
