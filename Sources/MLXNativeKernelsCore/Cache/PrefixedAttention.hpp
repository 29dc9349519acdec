// Attention of rows whose first tokens are in other caches: a part over each prefix, a part over the rows' own cache,
// and the merge of all parts.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk {

// Tensors in the scratch memory of a plan. Ops are planned with tensors, so a buffer without bytes represents the
// memory until `place` puts the encoder's in its place.
class ScratchTensors {
 public:
  ScratchTensors();
  Result<Tensor> make(DType dtype, std::span<const uint64_t> extents);
  // Moves the plan's own scratch memory behind the tensors.
  void place(Plan& plan) const;

 private:
  std::shared_ptr<Buffer> buffer_;
  uint64_t bytes_ = 0;
};

// The attention of a step after prefixes.
class AttentionCache::State::PrefixedAttention {
 public:
  // Checks the step, without its queries. `state` is that of the rows' own cache.
  static Result<PrefixedAttention> make(CommandEncoder& encoder, const State& state, const ResolvedStep& step);

  uint64_t length() const;  // of all prefixes
  ScratchTensors& scratch() { return scratch_; }
  // Checks that no result shares memory with `sources` or a cache.
  Result<void> checkMemory(std::vector<NamedRange> sources) const;
  // How rows attend to one part, and where the part over the rows' own cache goes.
  const AttentionOptions& partOptions() const { return partOptions_; }
  Result<AttentionResults> makeParts(uint64_t heads);
  Result<Plan> planPrefixes(const std::shared_ptr<Device>& device, const HeadsView& queries) const;
  // Appends the merge to a plan and gives it the scratch memory.
  Result<void> finish(Plan& plan) const;
  // Notes what the plan reads, once it is encoded.
  void noteReads() const;

 private:
  struct Prefix {
    std::shared_ptr<State> state;
    CacheCursors::Recording* recording = nullptr;  // of the encoder, which owns it
    AttendedSequence attended;
  };

  PrefixedAttention(const State& state, const ResolvedStep& step)
      : state_(state), step_(step), rows_(RowCounts::of(step.entries)) {}
  AttentionResults part(uint64_t index) const;

  const State& state_;
  const ResolvedStep& step_;
  RowCounts rows_;
  std::vector<Prefix> prefixes_;
  AttentionResults results_;
  AttentionOptions options_, partOptions_;
  ScratchTensors scratch_;
  std::vector<AttentionPartials> parts_;  // of the prefixes, then of the rows' own cache
  AttentionPartials all_;
};

}  // namespace mnk
