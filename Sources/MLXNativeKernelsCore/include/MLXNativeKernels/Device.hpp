// A Device makes buffers, libraries and pipelines and runs submissions, in the order they are committed. Devices may be
// used from several threads, but not in a forked child process, which does not have the parent's threads.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class FailureLog;
class KernelRegistry;
class PlanCache;
class MeasuredTuning;
class ScratchPool;

struct DeviceLimits {
  uint32_t maxThreadsPerThreadgroup = 1024;
  uint32_t maxThreadgroupMemoryBytes = 32 * 1024;
  uint32_t maxInlineBytes = 4 * 1024;
  uint32_t bufferIndices = 31;
  uint32_t threadgroupMemoryIndices = 8;
  uint32_t simdgroupWidth = 32;
  uint64_t maxBufferBytes = 0;
};

// Which two neighbors of a row of an 8x8 simdgroup matrix a lane holds: lanes in the order of rows, or rows and columns
// interleaved over the bits of a lane's number, as on Apple GPUs.
enum class MatrixLayout : uint8_t { unknown, interleaved, rowMajor };

// What plans depend on besides their op, as far as it is known. An empty profile is that of an unknown GPU. The Host
// device has its own kernels and lacks some of those for GPUs, so that a plan runs on it only if it was made for it.
struct DeviceProfile {
  std::string family;  // "host", "apple9", "mac2"; empty: unknown
  uint32_t cores = 0;  // 0: unknown
  MatrixLayout matrixLayout = MatrixLayout::unknown;
  // Whether a threadgroup can read what others of its dispatch have stored, in order.
  bool ordersThreadgroups = false;
  // Choices that `prepare` has measured, or found in its file, for plans to follow; null: none yet.
  std::shared_ptr<const MeasuredTuning> measuredTuning = {};
};

// Where compiled kernels were found.
struct LibraryOrigin {
  using Kind = LibraryOriginKind;
  Kind kind = Kind::program;
  // If it was a file; of the embedded text: the compiled library that it replaces because of that one's fast math.
  std::string path;

  std::string text() const;  // "module bundle (/…/default.metallib)"
};

// Compiled kernels.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string_view label() const = 0;
  virtual const LibraryOrigin& origin() const = 0;
  virtual std::vector<std::string> functionNames() const = 0;
};

// Where the caller's own library comes from. Its source is Metal Shading Language with the macros of
// Shaders/Common/MetalCompat.h, which need no include: export_kernel or instantiate_kernel for what can be dispatched,
// pipeline_constant, threadgroup_array, threadgroup_memory.
struct LibrarySource {
  enum class Kind : uint8_t { text, path };
  Kind kind = Kind::text;
  std::string value;  // Metal Shading Language, or the path of a file that holds it (on Metal also a .metallib)
  std::string label;  // for messages
};

// A function with its constants, ready to run.
class Pipeline {
 public:
  struct Argument {
    enum class Kind : uint8_t { buffer, threadgroupMemory };
    Kind kind = Kind::buffer;
    uint32_t index = 0;
    uint32_t minimumBytes = 0;  // of what it points to: one element, or the structure
    uint32_t alignment = 1;     // of what it points to
    bool mayBeEmpty = false;    // a buffer without bytes may be bound, which the kernel then must not touch
    bool isReadOnly = false;    // only then inline bytes may be bound
  };
  virtual ~Pipeline() = default;
  virtual uint32_t maxThreadsPerThreadgroup() const = 0;
  // Static threadgroup memory of the function, if it is known.
  virtual uint32_t staticThreadgroupBytes() const { return 0; }
  // Arguments that must be bound before the function can run.
  virtual std::span<const Argument> arguments() const = 0;
};

// A dispatch that has passed every check, with its pipeline and threadgroup size.
struct ReadyDispatch {
  Dispatch dispatch;
  std::shared_ptr<Pipeline> pipeline;
  Size3 threadgroup{1, 1, 1};
};

// The memory of a buffer of a dispatch.
struct BoundMemory {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;
};
// Dispatches that differ only in memory share everything else. The memory of each binding is passed separately; the
// buffers and offsets of its own bindings are unused.
using SharedDispatch = std::shared_ptr<const ReadyDispatch>;
// Takes the memory out of a dispatch, and puts it back.
std::vector<BoundMemory> takeMemory(Dispatch& dispatch);
ReadyDispatch withMemory(const ReadyDispatch& shared, std::span<const BoundMemory> memory);

struct SubmissionReport {
  Result<void> outcome;
  double deviceSeconds = 0;
  std::map<std::string, double> opSeconds = {};  // by Dispatch::kind; empty: unknown
};

// Work in the app's command buffer runs once the app commits it, and the app's handlers may run before the end of the
// work is reported.
enum class WorkProgress : uint8_t { notStarted, underWay, done, failed };

// One command buffer being filled. Dispatches with no barrier between them may run in any order or at once.
class Submission {
 public:
  virtual ~Submission() = default;
  // Moves the memory out of the span.
  virtual Result<void> dispatch(SharedDispatch shared, std::span<BoundMemory> memory) = 0;
  Result<void> dispatch(ReadyDispatch ready);
  virtual void barrier() = 0;
  // Asks for the seconds of each op in the report, before `prepare`. A device that cannot measure them ignores it.
  virtual void measureOps() {}
  // Allocates all that `commit` needs. May be called again, also after more was recorded; the last call counts.
  virtual Result<void> prepare(std::function<void(SubmissionReport)> finished) = 0;
  // Drops what `prepare` made, `finished` included.
  virtual void discardPrepared() noexcept = 0;
  // Called last, at most once, after `prepare`; a submission that is destroyed without it runs nothing. `finished` runs
  // once, on a thread of the device, when the work is done or has failed; if this call fails, it does not run.
  virtual Result<void> commit() noexcept = 0;
  // Reports the progress of committed work until its end is reported; on any thread, also after the submission is
  // destroyed. Null: it is under way until its end is reported.
  virtual std::function<WorkProgress()> progress() const { return {}; }
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // The GPU on Apple platforms, the Host device elsewhere, or the one that MNK_DEVICE (host or metal) names. Callers
  // share one object while any of them holds it.
  static Result<std::shared_ptr<Device>> makeDefault();
  static std::vector<std::shared_ptr<Device>> all();

  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view kind() const = 0;  // "host", "metal"
  virtual std::string name() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  // What is known so far; loads the shipped library and runs nothing.
  DeviceProfile profile() noexcept;
  // The profile with what only a small dispatch can find out, which waits for earlier work when it is first needed. In
  // a handler of finished work, which cannot wait, or if the dispatch fails, it stays unknown and a later call tries
  // again.
  DeviceProfile probe() noexcept;
  // The same without copies. Never null.
  std::shared_ptr<const DeviceProfile> sharedProfile() noexcept;
  std::shared_ptr<const DeviceProfile> sharedProbe() noexcept;

  // Zeroed memory. A length of zero is allowed and gives a buffer that holds nothing.
  virtual Result<std::shared_ptr<Buffer>> makeBuffer(uint64_t bytes) = 0;
  // Memory whose bytes are undefined until they are written, so that it costs nothing where nothing is written. A
  // device that checks fills it with NaN, and full checking reports kernels that read bytes which nothing has written.
  virtual Result<std::shared_ptr<Buffer>> makeUndefinedBuffer(uint64_t bytes) { return makeBuffer(bytes); }
  // Caller-owned memory, used without a copy. `release` runs once, when the last user is gone; it runs before the call
  // returns if the call fails. It may run on a thread of the device and must not wait for the device's work; on a
  // thread of the Host device such waits are errors (wouldDeadlock).
  virtual Result<std::shared_ptr<Buffer>> wrapMemory(void* memory, uint64_t bytes, std::function<void()> release) = 0;

  virtual Result<std::unique_ptr<Submission>> makeSubmission(std::string_view label) = 0;

  // The newest failure of work submitted on this device, for logs.
  std::optional<Error> lastFailure() const;

  // Libraries and pipelines are made once and kept here.
  KernelRegistry& registry() { return *registry_; }
  // Memory that ops need between their dispatches.
  ScratchPool& scratch() { return *scratch_; }
  // Plans of ops that repeat.
  PlanCache& planCache() { return *knownPlans_; }

 protected:
  Device();
  friend class KernelRegistry;
  // The part of the profile that is known without running anything.
  virtual DeviceProfile basicProfile() const { return {}; }
  virtual Result<std::shared_ptr<Library>> makeShippedLibrary() = 0;
  virtual Result<std::shared_ptr<Library>> makeLibrary(const LibrarySource& source) = 0;
  virtual Result<std::shared_ptr<Pipeline>> makePipeline(const std::shared_ptr<Library>& library,
                                                         const KernelKey& key) = 0;

 private:
  friend class CommandEncoder;
  friend class Preparing;
  std::optional<bool> ordersThreadgroups();
  // Changes what the profile consists of. Old plans are released last, so that none of them is kept or found afterward.
  template <typename Change>
  void learn(const Change& change);
  void useMeasuredTuning(std::shared_ptr<const MeasuredTuning> tuning);
  void forgetLibrary() noexcept;

  std::unique_ptr<KernelRegistry> registry_;
  std::shared_ptr<ScratchPool> scratch_;
  std::unique_ptr<PlanCache> knownPlans_;
  std::shared_ptr<FailureLog> failures_;
  std::mutex committing_;  // work runs in the order in which caches advance
  std::mutex preparing_;   // concurrent work would falsify measurements
  std::mutex probing_;
  std::mutex asking_;  // for what follows
  std::optional<MatrixLayout> matrixLayout_;
  std::optional<bool> ordersThreadgroups_;
  std::shared_ptr<const MeasuredTuning> measuredTuning_;
  std::shared_ptr<const DeviceProfile> known_;  // null once any of these has changed
};

// Makes each library and each pipeline of a device once and hands it out to any thread. A failed build is not kept, so
// a later call tries again. A library is identified by its source or by its path: a file that changed is read again
// only after clear().
class KernelRegistry {
 public:
  explicit KernelRegistry(Device& device);
  ~KernelRegistry();

  Result<std::shared_ptr<Library>> shippedLibrary();
  Result<std::shared_ptr<Library>> library(const LibrarySource& source);
  Result<std::shared_ptr<Pipeline>> pipeline(const KernelKey& key);

  size_t pipelineCount() const;
  // Releases pipelines and libraries; those in use stay valid until their last user is gone.
  void clear() noexcept;

 private:
  template <typename T>
  struct Slot;
  // The slot at a place among those below, which is made if there is none.
  template <typename T, typename Place>
  std::shared_ptr<Slot<T>> slotAt(Place place);
  using PipelineKey = std::pair<std::shared_ptr<Library>, std::pair<std::string, std::vector<FunctionConstant>>>;

  Device& device_;
  mutable std::mutex mutex_;
  std::shared_ptr<Slot<Library>> shipped_;  // made by the first use
  std::map<std::pair<LibrarySource::Kind, std::string>, std::shared_ptr<Slot<Library>>> libraries_;
  std::map<PipelineKey, std::shared_ptr<Slot<Pipeline>>> pipelines_;
};

}  // namespace mnk
