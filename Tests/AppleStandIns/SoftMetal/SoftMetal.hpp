// Metal in software, seen by tests: what machine it plays, what it shall fail at, and what it saw. Kernels run on the
// Host device. Everything is validated; what Apple would abort on is a sentence of takeViolations().
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace softmetal {

// Where a GPU can sample its timestamps; those that sample between dispatches sample passes, too.
enum class Sampling : uint8_t { none, passes, dispatches };

// One GPU. Numbers of families are those of MTLGPUFamily; the first Apple silicon is the model.
struct DeviceDescription {
  std::string name = "Soft M1";
  std::vector<int64_t> families = {1001, 1002, 1003, 1004, 1005, 1006, 1007, 2002, 3001, 3002, 3003, 5001};
  uint32_t threadExecutionWidth = 32;
  uint32_t maxTotalThreadsPerThreadgroup = 1024;  // of every pipeline
  uint32_t staticThreadgroupMemoryLength = 0;     // of every pipeline
  uint32_t maxThreadgroupMemoryLength = 32 * 1024;
  std::array<uint64_t, 3> maxThreadsPerThreadgroup = {1024, 1024, 1024};
  uint64_t maxBufferLength = uint64_t(8) << 30;
  uint64_t recommendedMaxWorkingSetSize = uint64_t(10) << 30;
  bool hasUnifiedMemory = true;
  bool isLowPower = false;
  bool isRemovable = false;
  bool isHeadless = false;
  Sampling sampling = Sampling::passes;
  bool takesSamples = true;  // or leaves zeros in sample buffers, as some systems do

  bool operator==(const DeviceDescription&) const = default;
};

struct BundleDescription {
  std::string path;
  std::string identifier;
  std::string resources;  // empty: Contents/Resources or Resources where there is one, else the path itself
  bool isFramework = false;
};

// The devices are read when a device is asked for; those that exist stay as they are.
struct Machine {
  std::vector<DeviceDescription> devices = {DeviceDescription()};  // the first is the default; none: no Metal
  // Reflection lists what needs no binding too: a buffer that the kernel does not use, and an array of its own.
  bool reflectsOthers = false;
  // The completion handlers of a command buffer that goes without a commit are called, as some systems do.
  bool callsHandlersOfDropped = false;
  bool hasMathMode = false;  // MTLCompileOptions has setMathMode:, as since macOS 15
  // The newest Metal Shading Language of its compiler, and of its compiled libraries: text of a newer one is refused,
  // and before 3.2 no function orders threadgroups.
  uint64_t newestLanguage = 4 << 16;
  double compileSeconds = 0;  // how long it takes at least to compile a text
};
// At first, and after reset(), the one that MNK_SOFT_METAL_MACHINE names:
//   metal-3.1     the compiler of macOS 14
//   paravirtual   the GPU of a virtual machine, which lacks what the kernels need, and timestamps
//   dispatch-timestamps   a GPU that samples its timestamps between dispatches
//   no-timestamps   a GPU that does not sample them
Machine& machine();

void setMainBundle(BundleDescription bundle);
void setBundles(std::vector<BundleDescription> bundles);

// Calls that can be made to give nil, with an NSError where the call has one.
enum class Call : uint8_t { buffer, commandQueue, commandBuffer, encoder, library, function, pipeline, sampleBuffer };
enum class When : uint8_t { before, after };

class Faults {
 public:
  // The call fails `times` times, after `skip` calls that succeed.
  void failAt(Call call, uint32_t skip = 0, uint32_t times = 1);
  // From now on command buffers end with MTLCommandBufferErrorDeviceRemoved, and other new objects are nil.
  void loseDevice();
  // The command buffer that is committed after `skip` others ends with a code of MTLCommandBufferError, before or after
  // its work was done.
  void failCommandBuffer(uint32_t skip, int64_t code, When when = When::before);

  // Committed command buffers wait, and run in order when released.
  void holdWork();
  void releaseWork();
  // Command buffers complete, but their completion handlers wait.
  void holdHandlers();
  // Lets the oldest waiting handlers run, on a thread of their own, and waits for them: those of `count` command
  // buffers, or all, which also ends the holding. Returns how many command buffers had been waiting.
  size_t releaseHandlers(size_t count = SIZE_MAX);
  // The handlers of a command buffer run after this many later ones have completed.
  void delayHandlers(uint32_t laterCommandBuffers);
};
Faults faults();

// What was seen since the last call, oldest first.
std::vector<std::string> takeViolations();

// Objects that have not been deallocated: class, label, message that made it, references. Command buffers are objects
// until their handlers have run, so these calls wait for that.
std::vector<std::string> liveObjects();
size_t liveCount();
struct Mark {
  uint64_t serial = 0;
};
Mark mark();
std::vector<std::string> liveObjectsSince(Mark since);
// Makes a violation of each object made since the mark that is still alive, and returns how many there are.
size_t reportLeaks(Mark since);

// Waits until all committed command buffers that are not held have completed and their handlers have run.
void waitUntilIdle();
// Everything back to the start: releases what is held, waits for it, forgets violations, faults, bundles, counters and
// dead objects. Living objects live on.
void reset();

struct Counters {
  uint64_t commandBuffers = 0;  // committed
  uint64_t encoders = 0;
  uint64_t dispatches = 0;
  uint64_t barriers = 0;
  uint64_t inlineBytes = 0;  // through setBytes
  uint64_t buffers = 0;
  uint64_t compiles = 0;  // of library text, whether or not the result was known already
  uint64_t pipelines = 0;
};
Counters counters();
// All texts that were compiled, oldest first.
std::vector<std::string> compiledTexts();
// How many different pipelines were made so far, since a system keeps those that it has compiled. reset() does not
// change it.
uint64_t pipelinesMade();

// What the command buffer that was committed last holds: "encoder 'step' concurrent", "barrier",
// "dispatch kvCacheMove_16 grid 4x2x3 group 4x2x3"; a grid of whole threadgroups reads "groups 4x2x3"; "sample 3",
// "update fence", "wait for fence".
std::vector<std::string> trace();
// The debug groups that were around its dispatches, innermost, in order; empty where there was none.
std::vector<std::string> debugGroups();

// "-[MTLBuffer contents]", "+[NSString string]"; sorted, and for the whole life of the process. What was sent may not
// be implemented.
std::vector<std::string> selectorsSent();
std::vector<std::string> selectorsImplemented();

struct CompileOptions {
  uint64_t languageVersion = 0;
  bool fastMathEnabled = true;
  std::optional<int64_t> mathMode;  // where it was set
  std::map<std::string, std::string> macros;
};
// What the last newLibraryWithSource: was given; nothing where that was nil, or there was none.
std::optional<CompileOptions> lastCompileOptions();

// Where the calling thread is: in the software Metal, in a handler that it has called, or in neither. For tests that
// make allocations of the product fail, and not those of the software Metal.
enum class Place : uint8_t { elsewhere, inside, handler };
Place place();

// A file that newLibraryWithURL: and newLibraryWithFile: take for a metallib.
struct Metallib {
  std::string linked;              // the label of a library that is linked into the program
  std::string text;                // or kernel text
  std::vector<std::string> added;  // names that functionNames lists too; they have no code
  std::vector<std::string> hidden;
};
// False where the file cannot be written.
bool writeMetallib(const std::string& path, const Metallib& contents);

}  // namespace softmetal
