// FlashDecode at one shape, with device memory: a number of copies of a filled cache, each with its op. The contents
// are deterministic.
#pragma once
#include <memory>
#include <vector>

#include "DecodeCase.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk::bench {

struct DecodeProblem {
  std::shared_ptr<Device> device;
  std::vector<FlashDecode> ops;

  static Result<DecodeProblem> make(const std::shared_ptr<Device>& device, const DecodeCase& shape, uint32_t copies);

  Result<std::vector<Plan>> plans(const AttentionOptions& options) const;
};

// The work of a plan, from its dispatches.
struct ChosenWork {
  std::string kernel;  // the first function's name
  uint32_t splits = 0;
  uint64_t dispatches = 0;

  static ChosenWork of(const Plan& plan);
};

}  // namespace mnk::bench
