// The tests' interface to the software Metal: the simulated machine, injected failures, and observations. Kernels run
// on the Host device. Everything is validated; an error on which Apple's Metal aborts is listed by takeViolations().
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace softmetal {

// Where a GPU can sample timestamps; `dispatches` includes passes.
enum class Sampling : uint8_t { none, passes, dispatches };

// One GPU. Family numbers are those of MTLGPUFamily; the defaults model the first Apple silicon.
struct DeviceDescription {
  std::string name = "Soft M1";
  std::vector<int64_t> families = {1001, 1002, 1003, 1004, 1005, 1006, 1007, 2002, 3001, 3002, 3003, 5001};
  uint32_t threadExecutionWidth = 32;
  uint32_t maxTotalThreadsPerThreadgroup = 1024;  // of every pipeline
  uint32_t staticThreadgroupMemoryLength = 0;     // of every pipeline
  uint32_t maxThreadgroupMemoryLength = 32 * 1024;
  std::array<uint64_t, 3> maxThreadsPerThreadgroup = {1024, 1024, 1024};
  uint64_t maxBufferLength = uint64_t(8) << 30;
  Sampling sampling = Sampling::passes;
  bool takesSamples = true;  // false leaves zeros in sample buffers, as some systems do

  bool operator==(const DeviceDescription&) const = default;
};

// The list is read when a device is requested; existing devices do not change.
struct Machine {
  std::vector<DeviceDescription> devices = {DeviceDescription()};  // the first is the default; empty: no Metal
  // Reflection also lists unused buffers and the kernel's own arrays, which need no binding.
  bool reflectsOthers = false;
  // Calls the completion handlers of a command buffer that is never committed, as some systems do.
  bool callsHandlersOfDropped = false;
  // The newest Metal Shading Language version of its compiler and compiled libraries: newer source is refused, and
  // before 3.2 no function orders threadgroups.
  uint64_t newestLanguage = 4 << 16;
  double compileSeconds = 0;  // the minimum time to compile a text
  uint32_t gpuCoreCount = 0;  // of every GPU, as the system's registry reports it; 0: it does not
};
// Initially, and after reset(), the machine that MNK_SOFT_METAL_MACHINE names:
//   metal-3.1     the compiler of macOS 14
//   paravirtual   the GPU of a virtual machine, which lacks features that the kernels need, and timestamps
Machine& machine();

struct BundleDescription {
  std::string path = ".";
  std::string resources = {};  // empty: the path
};
void setMainBundle(BundleDescription bundle);

// Calls that can be made to return nil, with an NSError if the call has one.
enum class Call : uint8_t { buffer, commandQueue, commandBuffer, encoder, library, function, pipeline, sampleBuffer };
enum class When : uint8_t { before, after };

class Faults {
 public:
  // Fails the call `times` times, after `skip` successful calls.
  void failAt(Call call, uint32_t skip = 0, uint32_t times = 1);
  // From now on, command buffers end with MTLCommandBufferErrorDeviceRemoved, and other new objects are nil.
  void loseDevice();
  // Ends the command buffer that is committed after `skip` others with an MTLCommandBufferError code, before or after
  // its work.
  void failCommandBuffer(uint32_t skip, int64_t code, When when = When::before);

  // Holds committed command buffers, which run in order when released.
  void holdWork();
  void releaseWork();
  // Command buffers complete, but their completion handlers are held.
  void holdHandlers();
  // Runs the oldest held handlers on their thread and waits for them: those of `count` command buffers, or all, which
  // also ends the hold. Returns the number of command buffers that were held.
  size_t releaseHandlers(size_t count = SIZE_MAX);
};
Faults faults();

// Violations since the last call, oldest first.
std::vector<std::string> takeViolations();

// Objects that have not been deallocated: class, label, creating message, references. Command buffers are alive until
// their handlers have run, so these calls wait for them.
struct Mark {
  uint64_t serial = 0;
};
Mark mark();
std::vector<std::string> liveObjectsSince(Mark since);
// Records a violation for each object created since the mark that is still alive, and returns their number.
size_t reportLeaks(Mark since);

// Waits until all committed command buffers that are not held have completed and their handlers have run.
void waitUntilIdle();
// Resets everything: releases held work and waits for it, and clears violations, faults, bundles, counters and
// deallocated objects. Live objects are unaffected.
void reset();

struct Counters {
  uint64_t commandBuffers = 0;  // committed
  uint64_t encoders = 0;
  uint64_t inlineBytes = 0;  // set by setBytes
  uint64_t buffers = 0;
  uint64_t compiles = 0;  // of library text, including cached ones
  uint64_t pipelines = 0;
};
Counters counters();
void clearCounters();
// All compiled texts, oldest first.
std::vector<std::string> compiledTexts();
// The number of different pipelines created so far, since a system caches compiled ones. reset() does not change it.
uint64_t pipelinesMade();

// The contents of the last committed command buffer: "encoder 'step' concurrent", "barrier", "dispatch kvCacheMove_16
// grid 4x2x3 group 4x2x3"; a grid of whole threadgroups is "groups 4x2x3"; "sample 3", "update fence", "wait for
// fence".
std::vector<std::string> trace();
// The innermost debug group of each dispatch, in order; empty without one.
std::vector<std::string> debugGroups();

// "-[MTLBuffer contents]", "+[NSString string]"; sorted, since the process started.
std::vector<std::string> selectorsSent();
std::vector<std::string> selectorsImplemented();

struct CompileOptions {
  uint64_t languageVersion = 0;
  bool fastMathEnabled = true;
};
// The options of the last newLibraryWithSource:; empty if they were nil, or if there was no call.
std::optional<CompileOptions> lastCompileOptions();

// Where the calling thread is: in the software Metal, in a handler that it called, or in neither. Lets tests fail only
// the allocations of the library.
enum class Place : uint8_t { elsewhere, inside, handler };
Place place();

// The contents of a file that newLibraryWithURL: and newLibraryWithFile: accept as a metallib.
struct Metallib {
  std::string linked;              // the label of a library that is linked into the program
  std::string text;                // or kernel source
  std::vector<std::string> added;  // additional names without code for functionNames
  std::vector<std::string> hidden;
};
// False if the file cannot be written.
bool writeMetallib(const std::string& path, const Metallib& contents);

}  // namespace softmetal
