// Attention of rows whose first tokens are in other caches: a part over each prefix, a part over the rows' own cache,
// and the merge of all parts.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/MergePartials.hpp"

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

// A call that attends after prefixes.
class AttentionCache::State::PrefixedAttention {
 public:
  // Checks the call, without its queries. `state` is that of the rows' own cache.
  static Result<PrefixedAttention> make(std::string_view call, CommandEncoder& encoder, const State& state,
                                        std::span<const CachePrefix> after, std::span<const SequenceRows> entries,
                                        const AttentionResults& results, const AttentionOptions& options);

  uint64_t length() const;  // of all prefixes
  ScratchTensors& scratch() { return scratch_; }
  // Checks that no result shares memory with `sources` or a cache.
  Result<void> checkMemory(std::vector<NamedRange> sources) const;
  // How rows attend to one part, and where the part over the rows' own cache goes.
  const AttentionOptions& partOptions() const { return partOptions_; }
  Result<AttentionResults> makeParts(uint64_t heads);
  // Attends over the prefixes. `starts` are the positions of each entry's first row in its own sequence.
  Result<Plan> planPrefixes(const std::shared_ptr<Device>& device, const HeadsView& queries,
                            std::span<const uint64_t> starts) const;
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

  PrefixedAttention(std::string_view call, const State& state, std::span<const SequenceRows> entries)
      : call_(call), state_(state), entries_(entries.begin(), entries.end()), rows_(CallRows::of(entries)) {}
  AttentionResults part(uint64_t index) const;

  std::string_view call_;
  const State& state_;
  std::vector<SequenceRows> entries_;
  CallRows rows_;
  std::vector<Prefix> prefixes_;
  AttentionResults results_;
  AttentionOptions options_, partOptions_;
  ScratchTensors scratch_;
  std::vector<AttentionPartials> parts_;  // of the prefixes, then of the rows' own cache
  AttentionPartials all_;
};

}  // namespace mnk
