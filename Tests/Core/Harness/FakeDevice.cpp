#include "Harness/FakeDevice.hpp"

#include <sys/mman.h>

#include <new>
#include <optional>
#include <thread>

#include "Runtime/WorkInFlight.hpp"

namespace mnk::test {

namespace {

// Pages that the system clears when they are touched: plans ask for much scratch memory that no test uses.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes + 1) {  // none is an error
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(mapped);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(begin_, bytes_); }
  std::byte* begin() const { return begin_; }

 private:
  uint64_t bytes_;
  std::byte* begin_;
};

class FakeBuffer : public Buffer {
 public:
  FakeBuffer(std::weak_ptr<Device> device, uint64_t bytes)
      : Buffer(bytes), device_(std::move(device)), owned_(std::in_place, bytes), memory_(owned_->begin()) {
    live_.begin(range());
  }
  FakeBuffer(std::weak_ptr<Device> device, void* memory, uint64_t bytes, std::function<void()> release)
      : Buffer(bytes),
        device_(std::move(device)),
        memory_(static_cast<std::byte*>(memory)),
        release_(std::move(release)) {
    live_.begin(range());
  }
  ~FakeBuffer() override {
    live_.end();
    if (release_) release_();
  }

  std::shared_ptr<Device> device() const override { return device_.lock(); }
  MemoryRange range() const override {
    const auto begin = reinterpret_cast<uintptr_t>(memory_);
    return {.space = nullptr, .begin = begin, .end = begin + length()};
  }
  std::byte* contents() override { return memory_; }

 protected:
  Result<void> copyOut(uint64_t offset, std::span<std::byte> into) const override {
    const auto fake = std::static_pointer_cast<FakeDevice>(device_.lock());
    if (fake && fake->onRead) fake->onRead();
    return Buffer::copyOut(offset, into);
  }

 private:
  std::weak_ptr<Device> device_;  // weak, because the device retains dispatches, which retain buffers
  std::optional<Pages> owned_;
  std::byte* memory_;
  std::function<void()> release_;
  LiveMemory live_;
};

class FakeLibrary : public Library {
 public:
  explicit FakeLibrary(std::string label, std::vector<std::string> functions = {})
      : label_(std::move(label)), functions_(std::move(functions)) {}
  std::string_view label() const override { return label_; }
  const LibraryOrigin& origin() const override { return origin_; }
  std::vector<std::string> functionNames() const override { return functions_; }

 private:
  std::string label_;
  std::vector<std::string> functions_;
  LibraryOrigin origin_;
};

class FakePipeline : public Pipeline {
 public:
  explicit FakePipeline(FakeDevice::Function function) : function_(std::move(function)) {}
  uint32_t maxThreadsPerThreadgroup() const override { return function_.maxThreads; }
  uint32_t staticThreadgroupBytes() const override { return function_.staticThreadgroupBytes; }
  std::span<const Argument> arguments() const override { return function_.arguments; }

 private:
  FakeDevice::Function function_;
};

}  // namespace

class FakeDevice::FakeSubmission : public Submission {
 public:
  FakeSubmission(std::shared_ptr<FakeDevice> device, std::string_view label) : device_(std::move(device)) {
    recorded_.label = label;
  }
  ~FakeSubmission() override {
    if (!isCommitted_) ++device_->dropped_;
    if (isCommitted_ && finished_) finished_({.outcome = {}, .deviceSeconds = seconds_});
  }

  Result<void> dispatch(SharedDispatch shared, std::span<BoundMemory> memory) override {
    if (auto error = device_->attempt(Call::dispatch)) return *error;
    addToTrace(shared->dispatch.kernel.function);
    recorded_.dispatches.push_back(withMemory(*shared, memory));
    return {};
  }

  void barrier() override { addToTrace("|"); }

  Result<void> prepare(std::function<void(SubmissionReport)> finished) override {
    if (auto error = device_->attempt(Call::prepare)) return *error;
    finished_ = std::move(finished);
    return {};
  }

  void discardPrepared() noexcept override { finished_ = {}; }

  // Work that is not held finishes when the submission ends.
  Result<void> commit() noexcept override {
    if (const auto call = std::exchange(device_->onCommit, {})) call();
    if (auto error = device_->attempt(Call::commit)) return *error;
    isCommitted_ = true;
    if (device_->onRun) seconds_ = device_->onRun(recorded_);
    std::lock_guard lock(device_->mutex_);
    device_->committed_.push_back(std::move(recorded_));
    if (device_->isHolding_) device_->held_.push_back(std::exchange(finished_, {}));
    return {};
  }

 private:
  void addToTrace(const std::string& word) { recorded_.trace += (recorded_.trace.empty() ? "" : " ") + word; }

  std::shared_ptr<FakeDevice> device_;
  Recorded recorded_;
  std::function<void(SubmissionReport)> finished_;
  bool isCommitted_ = false;
  double seconds_ = 0;
};

FakeDevice::FakeDevice() {
  limits_.maxBufferBytes = uint64_t{1} << 30;
}

std::shared_ptr<FakeDevice> FakeDevice::make() {
  return std::shared_ptr<FakeDevice>(new FakeDevice());
}

void FakeDevice::failAt(Call call, uint32_t skip, uint32_t times) {
  std::lock_guard lock(mutex_);
  failures_[call] = {skip, times};
}

uint64_t FakeDevice::tried(Call call) const {
  std::lock_guard lock(mutex_);
  const auto found = tried_.find(call);
  return found == tried_.end() ? 0 : found->second;
}

std::optional<Error> FakeDevice::attempt(Call call) {
  std::lock_guard lock(mutex_);
  ++tried_[call];
  Failure& failure = failures_[call];
  if (failure.times == 0) return std::nullopt;
  if (failure.skip != 0) return --failure.skip, std::nullopt;
  --failure.times;
  return fakeFailure();
}

void FakeDevice::describe(const std::string& function, Function as) {
  std::lock_guard lock(mutex_);
  functions_[function] = std::move(as);
}

void FakeDevice::holdCompletions() {
  std::lock_guard lock(mutex_);
  isHolding_ = true;
}

bool FakeDevice::finishNext(const Result<void>& outcome, double deviceSeconds) {
  std::function<void(SubmissionReport)> finished;
  {
    std::lock_guard lock(mutex_);
    if (held_.empty()) return false;
    finished = std::move(held_.front());
    held_.pop_front();
  }
  finished({.outcome = outcome, .deviceSeconds = deviceSeconds});
  return true;
}

std::vector<FakeDevice::Recorded> FakeDevice::takeCommitted() {
  std::lock_guard lock(mutex_);
  return std::exchange(committed_, {});
}

std::vector<FakeDevice::Recorded> FakeDevice::committed() const {
  std::lock_guard lock(mutex_);
  return committed_;
}

Result<std::shared_ptr<Buffer>> FakeDevice::makeBuffer(uint64_t bytes) {
  if (auto error = attempt(Call::makeBuffer)) return *error;
  bytesMade_ += bytes;
  return std::shared_ptr<Buffer>(std::make_shared<FakeBuffer>(weak_from_this(), bytes));
}

Result<std::shared_ptr<Buffer>> FakeDevice::wrapMemory(void* memory, uint64_t bytes, std::function<void()> release) {
  return std::shared_ptr<Buffer>(std::make_shared<FakeBuffer>(weak_from_this(), memory, bytes, std::move(release)));
}

Result<std::unique_ptr<Submission>> FakeDevice::makeSubmission(std::string_view label) {
  if (auto error = attempt(Call::makeSubmission)) return *error;
  auto self = std::static_pointer_cast<FakeDevice>(shared_from_this());
  return std::unique_ptr<Submission>(std::make_unique<FakeSubmission>(std::move(self), label));
}

Result<std::shared_ptr<Library>> FakeDevice::makeShippedLibrary() {
  if (auto error = attempt(Call::makeShippedLibrary)) return *error;
  return std::shared_ptr<Library>(std::make_shared<FakeLibrary>("shipped", shippedFunctions));
}

Result<std::shared_ptr<Library>> FakeDevice::makeLibrary(const LibrarySource& source) {
  if (auto error = attempt(Call::makeLibrary)) return *error;
  return std::shared_ptr<Library>(std::make_shared<FakeLibrary>(source.label));
}

Result<std::shared_ptr<Pipeline>> FakeDevice::makePipeline(const std::shared_ptr<Library>&, const KernelKey& key) {
  if (auto error = attempt(Call::makePipeline)) return *error;
  // Building takes a while, in which other threads may ask for the same pipeline.
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
  Function function;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = functions_.find(key.function); found != functions_.end()) function = found->second;
  }
  return std::shared_ptr<Pipeline>(std::make_shared<FakePipeline>(std::move(function)));
}

Error fakeFailure() {
  return {.code = ErrorCode::deviceFault,
          .op = "FakeDevice",
          .what = "the fake device was told to fail",
          .got = "a planned failure",
          .expected = "success",
          .fix = "None: the test asked for it."};
}

Dispatch fakeDispatch(const std::string& function, std::vector<Binding> bindings) {
  Dispatch dispatch;
  dispatch.kernel.function = function;
  dispatch.kind = "Fake";
  dispatch.buffers = std::move(bindings);
  return dispatch;
}

Dispatch fakeDispatch(const std::string& function, const std::vector<Tensor>& reads,
                      const std::vector<Tensor>& writes) {
  std::vector<Binding> bindings;
  uint32_t index = 0;
  for (const Tensor& tensor : reads) bindings.push_back(Binding::whole(index++, tensor, Access::read));
  for (const Tensor& tensor : writes) bindings.push_back(Binding::whole(index++, tensor, Access::write));
  return fakeDispatch(function, std::move(bindings));
}

}  // namespace mnk::test
