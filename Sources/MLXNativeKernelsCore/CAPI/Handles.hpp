// The contents of mnk.h's opaque handles, and the conversion of every Result to a C result.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MLXNativeKernels/mnk.h"
#include "Support/Errors.hpp"

struct mnk_error {
  mnk::Error error;
  std::string message;
};
struct mnk_device {
  std::shared_ptr<mnk::Device> device;
  std::string kind;
  std::string name;
};
struct mnk_tensor {
  mnk::Tensor tensor;
};
struct mnk_library {
  std::shared_ptr<mnk::Library> library;
  std::vector<std::string> functions;
};
struct mnk_encoder {
  mnk::CommandEncoder encoder;
};
struct mnk_completion {
  mnk::Completion completion;
};
struct mnk_plan {
  mnk::Plan plan;
  std::string text;
};
struct mnk_cache {
  mnk::AttentionCache cache;
  std::deque<mnk_tensor> tensors = {};  // that the descriptor points to
  mnk_attention_cache_descriptor descriptor = {};
};

struct mnk_recorded_step {
  mnk::RecordedStep step;
};

namespace mnk::c {

inline Result<mnk_device*> handleFor(Result<std::shared_ptr<Device>> result) {
  if (!result) return std::move(result).error();
  return new mnk_device{*result, std::string((*result)->kind()), (*result)->name()};
}
inline Result<mnk_tensor*> handleFor(Result<Tensor> result) {
  if (!result) return std::move(result).error();
  return new mnk_tensor{*result};
}

inline Result<mnk_plan*> handleFor(Result<Plan> result) {
  if (!result) return std::move(result).error();
  return new mnk_plan{*result, result->text()};
}

// Includes the objects that the cache's descriptor points to.
Result<mnk_cache*> handleFor(Result<AttentionCache> result);

// Calls the caller's function, if there is one.
CommandEncoder::Finished finishedBy(mnk_finished finished, void* context);
mnk_counts countsFrom(const Summary::Counts& counts);
// Zeros for an unknown kind.
mnk_counts countsOf(const Summary& summary, const char* kind);

// The tensor of a handle that may be NULL.
inline std::optional<Tensor> optional(const mnk_tensor* tensor) {
  return tensor ? std::optional(tensor->tensor) : std::nullopt;
}

void store(mnk_error_out out, Error error) noexcept;
void release(mnk_error* error) noexcept;
Error nullArgument(std::string_view what);
// The error for a list that is refused before it is copied.
Error tooMany(std::string_view op, std::string_view what, uint64_t got, uint64_t most,
              std::string_view fix = "Pass fewer, or put the data in a tensor.");

// A required handle.
struct Needed {
  const void* handle;
  std::string_view name;
};

template <typename T, typename Body>
Result<T> attempt(std::initializer_list<Needed> needed, Body&& body) {
  return guarded("C API", [&]() -> Result<T> {
    for (const Needed& need : needed) {
      if (!need.handle) return nullArgument(need.name);
    }
    return body();
  });
}

// Runs a body that returns Result<Handle*> and returns the pointer.
template <typename Handle, typename Body>
Handle* make(mnk_error_out out, std::initializer_list<Needed> needed, Body&& body) noexcept {
  Result<Handle*> result = attempt<Handle*>(needed, body);
  if (result) return *result;
  store(out, std::move(result).error());
  return nullptr;
}

// Runs a body that returns Result<void>.
template <typename Body>
bool run(mnk_error_out out, std::initializer_list<Needed> needed, Body&& body) noexcept {
  Result<void> result = attempt<void>(needed, body);
  if (!result) store(out, std::move(result).error());
  return bool(result);
}

// A string that the caller releases, or null on failure.
template <typename Body>
char* copyText(Needed needed, Body&& body) noexcept {
  char* copy = nullptr;
  run(nullptr, {needed}, [&]() -> Result<void> {
    copy = strdup(body().c_str());
    return {};
  });
  return copy;
}

// Reads a required struct.
template <typename Struct>
Result<Struct> descriptor(std::string_view type, const Struct* input) {
  if (!input) return nullArgument(type);
  return *input;
}

Result<void> read(DType& into, mnk_dtype from);
Result<Shape> shape(const uint64_t* extents, size_t rank);

// A tensor over a new buffer, or the error of creating it.
inline Result<mnk_tensor*> tensorOver(Result<std::shared_ptr<Buffer>> buffer, mnk_dtype input, const uint64_t* extents,
                                      size_t rank, uint64_t byteOffset) {
  if (!buffer) return std::move(buffer).error();
  DType type{};
  MNK_TRY(read(type, input));
  MNK_TRY(auto tensorShape, shape(extents, rank));
  return handleFor(Tensor::over(*buffer, type, tensorShape, byteOffset));
}

}  // namespace mnk::c
