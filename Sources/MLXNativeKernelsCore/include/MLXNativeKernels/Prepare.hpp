// Does ahead of time what the first steps over caches would do: compiles the kernels, finds out what the device can do,
// and optionally measures which kernels are the fastest on it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/Generated/CacheStorage.hpp"

namespace mnk {

struct Preparation {
  std::vector<AttentionCache> caches = {};  // of one device; such as one for each layer
  uint32_t queryHeads = 0;                  // as steps have them; 0: the number of KV heads
  uint32_t rows = 1;                        // most tokens of a sequence in one step; 1 is always prepared
  DType dtype = DType::f32;                 // of steps' queries, results, keys and values: f32, f16 or bf16
  AttentionOptions options = {};            // that steps attend with
  std::optional<RotaryEmbedding> rotary = {};
  Tuning tuning = Tuning::table;
  std::string tuningFile = {};  // a tuning file, or none yet; empty: a file in the user's caches folder
};

struct PreparationSummary {
  uint64_t kernels = 0;   // ready to run
  uint64_t measured = 0;  // shapes that this call measured
  uint64_t known = 0;     // shapes that were measured before
  double seconds = 0;
  std::string tuningFile = {};        // that holds the measured choices; empty: none does
  std::optional<Error> notKept = {};  // why they could not be written there

  std::string text() const;  // "12 kernels, 3 shapes measured, 0 known, 0.4 s"
};

// Waits for the device; in a handler of finished work that is an error (wouldDeadlock). Plans that were made before do
// not change. Steps with other dtypes, options or shapes run too, and compile what they need when they are first
// planned.
Result<PreparationSummary> prepare(const std::shared_ptr<Device>& device, const Preparation& preparation);

}  // namespace mnk
