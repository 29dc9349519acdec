// What an encoder has recorded so far, and how it records.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/HazardTracker.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Runtime/RotatedRows.hpp"
#include "Runtime/WorkInFlight.hpp"

#if defined(__APPLE__)
#include <os/signpost.h>

#include <utility>
#endif

namespace mnk {

// Signpost intervals for Instruments on Apple platforms: the CPU time of a step, from construction until `end` or
// destruction.
class SignpostInterval {
 public:
  enum class Name { encode, commit };

#if defined(__APPLE__)
  SignpostInterval(Name name, const std::string& label) noexcept : name_(name) {
    if (!os_signpost_enabled(log())) return;
    id_ = os_signpost_id_generate(log());
    // The names must be literals.
    if (name_ == Name::encode) {
      os_signpost_interval_begin(log(), id_, "Encode", "%{public}s", label.c_str());
    } else {
      os_signpost_interval_begin(log(), id_, "Commit", "%{public}s", label.c_str());
    }
  }
  void end() noexcept {
    const os_signpost_id_t id = std::exchange(id_, OS_SIGNPOST_ID_NULL);
    if (id == OS_SIGNPOST_ID_NULL) return;
    if (name_ == Name::encode) {
      os_signpost_interval_end(log(), id, "Encode");
    } else {
      os_signpost_interval_end(log(), id, "Commit");
    }
  }

 private:
  static os_log_t log() noexcept {
    static const os_log_t shared = os_log_create("MLXNativeKernels", OS_LOG_CATEGORY_POINTS_OF_INTEREST);
    return shared;
  }

  Name name_;
  os_signpost_id_t id_ = OS_SIGNPOST_ID_NULL;  // null: nothing to end

 public:
#else
  SignpostInterval(Name, const std::string&) noexcept {}
  void end() noexcept {}
#endif
  ~SignpostInterval() {
    end();
  }
  SignpostInterval(const SignpostInterval&) = delete;
  SignpostInterval& operator=(const SignpostInterval&) = delete;
};

struct CommandEncoder::Impl {
  explicit Impl(std::string name) : label(std::move(name)), encoding(SignpostInterval::Name::encode, label) {}

  struct CompletionTask;
  struct Participation {
    const void* key;
    std::shared_ptr<EncodingParticipant> participant;
  };

  // Scratch memory of a plan, in a buffer of the encoder; null if the plan needs none.
  struct ScratchRange {
    const std::shared_ptr<Buffer>* buffer = nullptr;
    uint64_t start = 0;
    uint64_t bytes = 0;
  };
  struct PlanScratch {
    ScratchRange scratch;
    ScratchRange zeroed;
  };

  std::shared_ptr<Device> device;
  std::string label;
  SignpostInterval encoding;
  std::unique_ptr<Submission> submission;  // made by the first use
  TouchedIndex hazards;                    // since the last barrier
  std::vector<Touched> touched;            // accesses of recorded dispatches, followed by those being encoded
  size_t touchedEnd = 0;                   // end of the recorded ones in `touched`
  OpenStep openStep;                       // publishes the recorded ones
  std::shared_ptr<Buffer> scratch;         // all plans share it; hazards order them
  std::shared_ptr<Buffer> zeroed;          // each plan has its own part, zeroed when it is encoded
  uint64_t zeroedUsed = 0;
  Summary summary;
  std::vector<Participation> participants;
  // Dispatches being encoded, with the ends of their ranges in `memory` and `touched`.
  struct Ready {
    std::shared_ptr<const CountedDispatch> dispatch;
    size_t memoryEnd = 0;
    size_t touchedEnd = 0;
  };
  std::vector<Ready> ready;
  std::vector<BoundMemory> memory;
  std::vector<PatchedPlan> patched;  // recent plans of repeated ops
  size_t nextPatched = 0;            // index of the next one to replace
  uint64_t timesCleared = 0;         // value of PlanCache::timesCleared when `patched` was filled
  bool isCommitted = false;
  bool hasFixedPositions = false;
  bool hasAppend = false;
  bool isShared = false;  // the app has the submission too
  std::unique_ptr<RotatedRows> rotated;
  bool isMidway = false;         // a dispatch was added to the submission but not yet to the records above
  std::optional<Error> failure;  // set if the submission contains only part of a call and must not run

  // Releases what was being encoded, even after a failure.
  struct ReadyScope {
    Impl& impl;
    ~ReadyScope() {
      impl.ready.clear();
      impl.memory.clear();
      impl.touched.resize(std::min(impl.touchedEnd, impl.touched.size()));
    }
  };

  Result<void> open();
  Result<CountedDispatch> prepare(const Dispatch& dispatch, const PlanScratch& acquired) const;
  void addReady(std::shared_ptr<const CountedDispatch> dispatch) {
    ready.push_back({std::move(dispatch), memory.size(), 0});
  }
  Result<void> record(const std::shared_ptr<const CountedDispatch>& next, std::span<BoundMemory> memory,
                      std::span<const Touched> accesses);
  Result<ScratchRange> acquire(uint64_t bytes);
  Result<ScratchRange> acquireZeroed(uint64_t bytes);
  Result<PlanScratch> acquireFor(uint64_t scratchBytes, uint64_t zeroedBytes);
  Result<void> makeReady(std::span<const Dispatch> dispatches, uint64_t scratchBytes, uint64_t zeroedBytes);
  template <typename IsForm>
  const PatchedPlan* patchedAt(const OpPositions& positions, IsForm isForm);
  const PatchedPlan& patch(const RepeatedOp& op, std::shared_ptr<const CachedPlan> form,
                           std::shared_ptr<const CachedPlan> plan, const OpPositions& positions);
  template <typename MemoryOf>
  Result<void> recordPatched(const PatchedPlan& patched, MemoryOf memoryOf);
  void keep(const RepeatedOp& op, const OpForm& form, const Plan& plan,
            std::vector<std::shared_ptr<const CountedDispatch>> encoded, uint64_t timesCleared);
  Result<void> recordReady();
  Result<void> noteTouched();
  Result<void> advance(SubmittedWork& work);
};

}  // namespace mnk
