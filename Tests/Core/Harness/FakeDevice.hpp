// A Device that runs nothing and records everything: the objects it made and the contents of each submission, in order.
// It can be set to fail, and to delay completions until the test finishes them.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"

namespace mnk::test {

class FakeDevice : public Device {
 public:
  // The calls that can be made to fail.
  enum class Call : uint8_t {
    makeBuffer,
    makeShippedLibrary,
    makeLibrary,
    makePipeline,
    makeSubmission,
    dispatch,
    prepare,
    commit,
  };

  struct Function {
    uint32_t maxThreads = 1024;
    std::vector<Pipeline::Argument> arguments = {};
    uint32_t staticThreadgroupBytes = 0;
  };

  // The contents of one submission. `trace` lists functions and represents a barrier as "|": "produce | consume".
  struct Recorded {
    std::string label;
    std::string trace;
    std::vector<ReadyDispatch> dispatches;
  };

  static std::shared_ptr<FakeDevice> make();

  // The call fails `times` times, after `skip` calls that succeed.
  void failAt(Call call, uint32_t skip = 0, uint32_t times = 1);
  // The number of calls, successful or not.
  uint64_t tried(Call call) const;
  uint64_t bytesMade() const { return bytesMade_; }  // of all buffers
  // By default, pipelines of a function have no arguments and allow 1024 threads.
  void describe(const std::string& function, Function as);

  // From now on work finishes only through finishNext.
  void holdCompletions();
  // Finishes the oldest held submission; false if there is none.
  bool finishNext(const Result<void>& outcome, double deviceSeconds = 0);

  // Called before the processor reads this device's memory, and when work is committed.
  std::function<void()> onRead, onCommit;
  // Runs the work, and returns the seconds it takes.
  std::function<double(const Recorded&)> onRun;
  DeviceProfile itsProfile;
  std::vector<std::string> shippedFunctions;

  std::vector<Recorded> committed() const;
  std::vector<Recorded> takeCommitted();  // and clears them
  uint64_t droppedSubmissions() const { return dropped_; }
  DeviceLimits& changeLimits() { return limits_; }

  std::string_view kind() const override { return "fake"; }
  std::string name() const override { return "Fake"; }
  const DeviceLimits& limits() const override { return limits_; }
  Result<std::shared_ptr<Buffer>> makeBuffer(uint64_t bytes) override;
  Result<std::shared_ptr<Buffer>> wrapMemory(void* memory, uint64_t bytes, std::function<void()> release) override;
  Result<std::unique_ptr<Submission>> makeSubmission(std::string_view label) override;

 protected:
  DeviceProfile basicProfile() const override { return itsProfile; }
  Result<std::shared_ptr<Library>> makeShippedLibrary() override;
  Result<std::shared_ptr<Library>> makeLibrary(const LibrarySource& source) override;
  Result<std::shared_ptr<Pipeline>> makePipeline(const std::shared_ptr<Library>& library,
                                                 const KernelKey& key) override;

 private:
  class FakeSubmission;
  struct Failure {
    uint32_t skip = 0;
    uint32_t times = 0;
  };

  FakeDevice();
  std::optional<Error> attempt(Call call);

  DeviceLimits limits_;
  mutable std::mutex mutex_;
  std::map<Call, Failure> failures_;
  std::map<Call, uint64_t> tried_;
  std::map<std::string, Function> functions_;
  std::vector<Recorded> committed_;
  bool isHolding_ = false;
  std::deque<std::function<void(SubmissionReport)>> held_;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> bytesMade_ = 0;
};

// The error that a FakeDevice fails with.
Error fakeFailure();

// A dispatch of one thread.
Dispatch fakeDispatch(const std::string& function, std::vector<Binding> bindings = {});
// A dispatch that reads all of some tensors and writes all of others.
Dispatch fakeDispatch(const std::string& function, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes);

}  // namespace mnk::test
