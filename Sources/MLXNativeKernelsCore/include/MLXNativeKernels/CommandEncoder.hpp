// Records ops and dispatches into one command buffer, places barriers where two dispatches touch the same bytes,
// and submits. A call that fails records nothing. One encoder belongs to one thread at a time.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// What was recorded; deviceSeconds is known once the work has finished.
struct Summary {
  struct Counts {
    uint64_t dispatches = 0;
    uint64_t bytesRead = 0;
    uint64_t bytesWritten = 0;
    // Time on the device. For one kind it is 0 unless the encoder was asked to measure ops, the device can, and the
    // work is done; then `total` holds that of all kinds, which leaves out the time between them.
    double deviceSeconds = 0;
  };
  Counts total;
  uint64_t barriers = 0;
  double deviceSeconds = 0;
  std::map<std::string, Counts> kinds;  // by Dispatch::kind
  std::string warning = {};             // the first of its plans' warnings

  // "4 dispatches, 3 barriers, 1.1 MB read, 8.0 KB written, 41 µs", and the warning
  std::string text() const;
};

// Submitted work.
class Completion {
 public:
  // Waits until the work is done; every call returns the same result, except that the counts by kind are missing if
  // there is no memory for them. In a handler of finished work it is an error (wouldDeadlock) if this work is not done.
  // Work in the app's command buffer is done only after the app commits.
  Result<Summary> wait() const;
  bool isDone() const;
  // What was submitted; its time is 0 until the work is done.
  Summary summary() const;

 private:
  friend class CommandEncoder;
  struct State;
  std::shared_ptr<State> state_;
};

// An object that follows the outcome of an encoder, such as a cache whose position advances with it.
class EncodingParticipant {
 public:
  virtual ~EncodingParticipant() = default;
  // All that the encoder is to do is recorded. Returns whether it is complete in itself, whatever others do meanwhile.
  virtual Result<void> checkComplete() { return {}; }
  // The encoder is being committed. Returns whether it may be. If one participant refuses, nothing is submitted and
  // none advances.
  virtual Result<void> check() = 0;
  // All participants have agreed.
  virtual void advance() noexcept = 0;
  // The submitted work is done or has failed.
  virtual void finished(const Result<void>& outcome) noexcept = 0;

  // The one lock of the process under which participants are checked and advance, so that no thread sees some of an
  // encoder's advanced and others not. What else uses their state takes it too. `check` and `advance` must not take it
  // again, and so must not use or release caches and encoders; `finished` is called without it.
  static std::mutex& mutex();
};

class CallMemo;
class OpPositions;
class RepeatedOp;
class RotatedRows;

class CommandEncoder {
 public:
  explicit CommandEncoder(std::shared_ptr<Device> device, std::string label = "");
  // Encodes with `body`, commits and waits. Nothing runs if `body` fails.
  static Result<Summary> run(const std::shared_ptr<Device>& device,
                             const std::function<Result<void>(CommandEncoder&)>& body, std::string label = "");
  // Records into a submission that exists already, such as one over the app's command buffer.
  CommandEncoder(std::shared_ptr<Device> device, std::unique_ptr<Submission> into);
  ~CommandEncoder();  // without commit: nothing runs, nothing advances
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;

  // Plans an op and records it. A call that would read memory which failed work was to write fails likewise, until
  // the memory is written again.
  template <typename Op>
  Result<void> encode(const Op& op) {
    if constexpr (requires { encodeRepeated(*this, op); }) {
      return remembering([&]() -> Call { return [op](CommandEncoder& encoder) { return encoder.encode(op); }; },
                         [&] { return encodeRepeated(*this, op); }, true);
    } else if constexpr (requires(Device & target) { plan(op, target); }) {
      return device() ? encode(plan(op, *device())) : encode(plan(op));
    } else {
      return encode(plan(op));
    }
  }
  Result<void> encode(const Plan& plan);
  // For encodeRepeated only. If an op repeats with other positions and memory, only what depends on these is planned
  // again.
  Result<void> repeat(RepeatedOp& op);
  // In a call that a RecordedStep makes again: true if its op, at these positions, was recorded without being planned.
  Result<bool> repeatAt(const OpPositions& positions);
  bool isRepeating() const { return memo_ != nullptr; }  // whether such a call is made again
  // By value, so that the error of a plan that was just made is passed on without a copy, which could fail.
  Result<void> encode(Result<Plan> planned) { return planned ? encode(*planned) : std::move(planned).error(); }
  // Records one dispatch, for the caller's own kernels.
  Result<void> dispatch(const Dispatch& dispatch);
  // Orders everything recorded so far before everything that follows.
  Result<void> barrier();

  // Measures how long each kind of op takes on the device, for Summary::kinds. It may be called at any time before
  // `commit`. Ops then run one after another, even where they need no barrier, and on Apple GPUs consecutive dispatches
  // of one kind form their own compute pass, which costs some microseconds: measure only the steps that you look at.
  Result<void> measureOps();

  using Finished = std::function<void(const Result<Summary>&)>;
  // Submits. If that succeeds, `finished` runs exactly once when the work is done, on a thread of the device; otherwise
  // it does not run. It can read the results of this work. It cannot wait for other work, which may need that thread:
  // such waits fail with wouldDeadlock.
  // Work that reads what earlier, failed work was to write fails too.
  Result<Completion> commit(Finished finished = {});
  // Drops what was recorded and not committed, as the end of the encoder does: its tensors can be written again.
  void discard() noexcept;

  const Summary& summary() const;
  const std::shared_ptr<Device>& device() const;

  // The participant that joined under this key, or null.
  EncodingParticipant* participant(const void* key) const;
  Result<void> join(const void* key, std::shared_ptr<EncodingParticipant> participant);

  // A call that a RecordedStep makes again.
  using Call = std::function<Result<void>(CommandEncoder&)>;
  // Runs `body`, the whole of a call. A recording keeps what `make` returns, a Call that does the same, unless `body`
  // fails or is part of another call that is kept. With `hasOneForm` the call repeats one op, which differs only in
  // positions from run to run, so that a run can reuse what the previous one found out.
  template <typename Make, typename Body>
  Result<void> remembering(const Make& make, const Body& body, bool hasOneForm = false) {
    return calls_ ? remember(std::cref(make), std::cref(body), hasOneForm) : body();
  }
  bool isRecording() const { return calls_ != nullptr; }  // between its calls
  // What a recording cannot combine, because caches advance with every run: rotary positions that stay, and appends.
  void noteFixedPositions() noexcept;
  void noteAppend() noexcept;
  // The rows that were rotated by positions that follow a cache; null before the first, and always if other work may
  // run between what this encoder records.
  const RotatedRows* rotatedRows() const;
  RotatedRows* makeRotatedRows();

 private:
  friend class RecordedStep;
  friend class StepRecording;
  struct RememberedCall {
    Call call;
    std::shared_ptr<CallMemo> memo;  // null: it may repeat other ops every time
  };
  Result<void> remember(const std::function<Call()>& make, const std::function<Result<void>()>& body, bool hasOneForm);
  static Error neverRuns(std::string_view got);  // of the encoder of a recording
  Result<void> checkRecorded() const;            // whether all that was recorded can run
  // From now on nothing can be recorded or committed. Releases what was recorded.
  void fail(const Error& error) noexcept;
  const std::string& label() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<std::vector<RememberedCall>> calls_;  // of a recording; null while one of them is encoded
  uint64_t callCount_ = 0;                              // of a recording, with those of the steps in it
  uint32_t nesting_ = 0;                                // of a recording: steps within steps
  CallMemo* memo_ = nullptr;                            // of the call that is made again; the next op takes it
};

// A step that is recorded once and run many times, such as all layers of a token. It keeps the calls that were made. A
// run makes them again: appends start where their caches then end, and attention covers what the caches then hold. A
// run follows every rule of an encoder: all caches advance or none, and what no longer fits is an error before anything
// runs. The device keeps plans, so that a repeated call is cheap.
//   caches                             advance with every run
//   rotary positions                   follow a cache, if they are its next ones or are not given to appendAndAttend;
//                                      numbers and lists stay, and are refused in a step that appends to a cache
//   other positions, lists, tensors    stay; a tensor is read when the step runs
// A recording has at most 131,072 calls, with those of the steps in it, and steps are nested at most 16 deep.
// A step keeps the tensors and caches that it uses. Threads may share it. One that was moved from, or never recorded,
// has no device, and running it is an error.
class RecordedStep {
 public:
  RecordedStep() = default;
  // Encodes with `body`, so that every rule is checked, and keeps the calls. Nothing runs and nothing advances. The
  // encoder cannot be committed.
  static Result<RecordedStep> record(std::shared_ptr<Device> device,
                                     const std::function<Result<void>(CommandEncoder&)>& body, std::string label = "");

  // Encodes the step and commits it, as CommandEncoder::commit does. Refused, with a retryable error, if another thread
  // changed a cache that it uses meanwhile.
  Result<Completion> run(CommandEncoder::Finished finished = {}) const;
  // Encodes the step, together with the other work of this encoder. If a later call of the step is refused, the encoder
  // cannot be committed.
  Result<void> encode(CommandEncoder& into) const;

  // What was recorded. Later runs may differ, as more keys are divided among more threadgroups.
  const Summary& summary() const;
  const std::shared_ptr<Device>& device() const;

 private:
  friend class StepRecording;
  static Result<void> makeAgain(const CommandEncoder::RememberedCall& remembered, CommandEncoder& into);

  struct State;
  std::shared_ptr<State> state_;
};

// A recording in two parts, for APIs that pass no function.
class StepRecording {
 public:
  // The encoder, which is new, keeps its calls from now on.
  static void begin(CommandEncoder& encoder);
  // The step that was recorded. The encoder cannot be used afterward.
  static Result<RecordedStep> end(CommandEncoder& encoder);
};

}  // namespace mnk
