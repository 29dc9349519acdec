// A target makes calls of one function of the C API, valid and adversarial ones, and knows what each must do. The
// fuzzer draws a case, runs it, and counts what came of it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "Arena.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::fuzz {

using test::Seeded;

struct Verdict {
  std::string refusal = {};  // what the error said; empty where the call was accepted
  mnk_error_code code = {};
  std::string message = {};  // all of the error
  std::string failure = {};  // what went wrong; empty where the outcome is the right one
};

// One call with everything that it needs, made in an arena and run there once.
class Case {
 public:
  virtual ~Case() = default;
  virtual std::string text() const = 0;  // the descriptor in words, or the calls that were made
  virtual Verdict run(Arena& arena) = 0;
};

struct Target {
  std::string_view name;
  uint32_t share;                          // of the cases, relative to the other targets
  std::vector<std::string_view> refusals;  // what errors say; a long run must have met each
  std::unique_ptr<Case> (*make)(Arena& arena, Seeded& random);
};

// A new op adds its target here, and to the list in Target.cpp.
const std::vector<Target>& targets();
Target attentionCacheTarget();
Target cacheFileTarget();
Target farWriteTarget();
Target flashDecodeTarget();
Target hadamardTarget();
Target kvCacheDequantizeTarget();
Target kvCacheQuantizeTarget();
Target kvCacheWriteTarget();
Target multiRoPETarget();

// What a call says that failed with an error. An error that lacks one of its parts is a failure.
Verdict refusalBy(const mnk_error* error);
// The outcome of a call that must be refused with `expected`, or accepted where that is empty.
Verdict checkResult(const test::Caught& caught, bool isAccepted, std::string_view expected);

}  // namespace mnk::fuzz
