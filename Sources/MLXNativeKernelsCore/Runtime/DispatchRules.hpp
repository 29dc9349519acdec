// Rules that every dispatch must satisfy before it is recorded, including those of the caller's kernels.
#pragma once
#include <span>

#include "MLXNativeKernels/Device.hpp"
#include "Support/Errors.hpp"

namespace mnk {

struct DispatchCheck {
  const Dispatch& dispatch;
  const Device& device;
  const Pipeline& pipeline;
};

std::span<const Rule<DispatchCheck>> dispatchRules();

}  // namespace mnk
