// FlashDecode at one shape, with memory of the device: as many copies of a filled cache as are asked for, each with its
// op. The numbers are the same every time.
#pragma once
#include <memory>
#include <vector>

#include "DecodeCase.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"

namespace mnk::bench::decode {

// A pattern of numbers whose length shares no factor with a vector's, again and again.
void fillWithHalves(std::byte* memory, uint64_t bytes, float least, float most);

struct DecodeProblem {
  std::shared_ptr<Device> device;
  std::vector<FlashDecode> ops;

  static Result<DecodeProblem> make(const std::shared_ptr<Device>& device, const DecodeCase& shape, uint32_t copies);

  Result<std::vector<Plan>> plans(const AttentionOptions& options) const;
};

// What a plan will run, as its dispatches say.
struct ChosenWork {
  std::string kernel;  // the first function's name
  uint32_t splits = 0;
  uint64_t dispatches = 0;

  static ChosenWork of(const Plan& plan);
};

}  // namespace mnk::bench::decode
