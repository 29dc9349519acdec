#include "MetalFailures.hpp"

#include <algorithm>
#include <iterator>

#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

struct Failure {
  MTL::CommandBufferError code;
  ErrorCode means;
  bool retryable;
  std::string_view name;
  std::string_view what;
  std::string_view expected;
  std::string_view fix;
};

constexpr std::string_view kReport = "Please report this with the label and the kernels that ran.";

constexpr Failure kFailures[] = {
    {MTL::CommandBufferErrorInternal, ErrorCode::deviceFault, false, "internal error", "the GPU failed",
     "work that runs to its end", kReport},
    {MTL::CommandBufferErrorTimeout, ErrorCode::timeout, true, "timeout", "the GPU was stopped, it took too long",
     "work that the system lets finish", "Submit less work at a time, or try again when the GPU is less busy."},
    {MTL::CommandBufferErrorPageFault, ErrorCode::pageFault, false, "page fault",
     "a kernel touched memory that is not its own", "accesses inside of bound buffers",
     "Check the sizes that were bound; run the same work on the Host device with full checking."},
    {MTL::CommandBufferErrorAccessRevoked, ErrorCode::deviceLost, false, "access revoked",
     "the system takes no more GPU work of this process", "a process without earlier GPU faults",
     "Correct what failed before, and start the process again."},
    {MTL::CommandBufferErrorNotPermitted, ErrorCode::notPermitted, true, "not permitted",
     "the system forbids GPU work now", "an app in the foreground, or one with a permission for the background",
     "Submit again when the app is active."},
    {MTL::CommandBufferErrorOutOfMemory, ErrorCode::outOfMemory, true, "out of memory", "the GPU had too little memory",
     "buffers that fit into memory together", "Free buffers, or submit less work at a time."},
    {MTL::CommandBufferErrorInvalidResource, ErrorCode::deviceFault, false, "invalid resource",
     "a buffer was gone when the GPU needed it", "buffers that live until the work is done",
     "Keep the app's own buffers until the work is done, and do not make them purgeable."},
    {MTL::CommandBufferErrorMemoryless, ErrorCode::deviceFault, false, "memoryless", "memoryless storage ran out",
     "no memoryless storage", kReport},
    {MTL::CommandBufferErrorDeviceRemoved, ErrorCode::deviceLost, false, "device removed", "the GPU was taken away",
     "a GPU that stays connected", "Make a device of another GPU."},
    {MTL::CommandBufferErrorStackOverflow, ErrorCode::deviceFault, false, "stack overflow",
     "a kernel used more stack than there is", "kernels with small private arrays",
     "Use smaller private arrays and no recursion."},
};

}  // namespace

Error commandBufferError(const NS::Error* error, std::string_view label) {
  const NS::Integer code = error ? error->code() : 0;
  const bool isOfACommandBuffer = error && text(error->domain()) == "MTLCommandBufferErrorDomain";
  const auto* known = std::find_if(std::begin(kFailures), std::end(kFailures), [&](const Failure& failure) {
    return isOfACommandBuffer && static_cast<NS::Integer>(failure.code) == code;
  });
  const Failure unknown{MTL::CommandBufferErrorNone,
                        ErrorCode::deviceFault,
                        false,
                        "unknown error",
                        "the GPU failed",
                        "work that runs to its end",
                        kReport};
  const Failure& failure = known == std::end(kFailures) ? unknown : *known;
  Error result = metalError(failure.means, std::string(failure.what),
                            fmt::format("{} ({}): {}", failure.name, code, reason(error)),
                            std::string(failure.expected), std::string(failure.fix));
  if (!label.empty()) result.what += fmt::format(" in '{}'", label);
  result.retryable = failure.retryable;
  return result;
}

}  // namespace mnk::metal
