// A client of the C API, with named tensors, an encoder and a cache. Each function makes one call of the
// library, in which allocations may fail, and returns its outcome.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "Injection.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::inject {

// The outcome of a call.
struct Status {
  bool succeeded = true;
  ErrorCode code = {};
  std::string message = {};
};

// The name of the current call, for reports.
inline std::atomic<const char*> currentCall = "nothing";

template <typename Body>
auto call(const char* name, Body&& body) {
  currentCall = name;
  const Armed armed;
  return body();
}

// Sizes: heads of queries and of the cache, elements of a vector, tokens of a step, slots.
inline constexpr uint64_t kHeads = 2, kHeadDim = 64, kTokens = 3, kCapacity = 8, kMeasuredCapacity = 256,
                          kCodeBytes = 32, kSequences = 3;
inline constexpr uint64_t kElements = kTokens * kHeads * kHeadDim;  // in a step

// Tensors: constant, name in reports, element type and shape. The first three are filled with numbers; those from
// kDenseKeys on are the memory of a cache, and those from kRowKeys on are views of others.
#define MNK_TENSORS(X)                                                          \
  X(kKeys, "keys", f32, kTokens, kHeads, kHeadDim)                              \
  X(kValues, "values", f32, kTokens, kHeads, kHeadDim)                          \
  X(kQueries, "queries", f32, kTokens, kHeads, kHeadDim)                        \
  X(kAttended, "attention", f32, kTokens, kHeads, kHeadDim)                     \
  X(kAttendedQuantized, "attention over codes", f32, kTokens, kHeads, kHeadDim) \
  X(kMerged, "merged partials", f32, kTokens, kHeads, kHeadDim)                 \
  X(kReadKeys, "dequantized keys", f32, kTokens, kHeads, kHeadDim)              \
  X(kReadValues, "dequantized values", f32, kTokens, kHeads, kHeadDim)          \
  X(kTurned, "Hadamard transform", f32, kTokens, kHeads, kHeadDim)              \
  X(kRotatedQueries, "rotated queries", f32, kTokens, kHeads, kHeadDim)         \
  X(kRotatedKeys, "rotated keys", f32, kTokens, kHeads, kHeadDim)               \
  X(kWrapped, "wrapped memory", f32, kTokens, kHeads, kHeadDim)                 \
  X(kDenseKeys, "dense keys", f32, kHeads, kCapacity, kHeadDim)                 \
  X(kDenseValues, "dense values", f32, kHeads, kCapacity, kHeadDim)             \
  X(kKeyCodes, "codes of keys", u8, kHeads, kCapacity, kCodeBytes)              \
  X(kValueCodes, "codes of values", u8, kHeads, kCapacity, kCodeBytes)          \
  X(kKeyScales, "scales of keys", f16, kHeads, kCapacity)                       \
  X(kValueScales, "scales of values", f16, kHeads, kCapacity)                   \
  X(kPartialSums, "sums of partials", f32, 1, kTokens, kHeads, kHeadDim)        \
  X(kPartialStats, "stats of partials", f32, 1, kTokens, kHeads, 2)             \
  X(kRowKeys, "keys of rows", f32, 2, kHeads, kHeadDim)                         \
  X(kRowValues, "values of rows", f32, 2, kHeads, kHeadDim)                     \
  X(kRowQueries, "queries of rows", f32, 2, kHeads, kHeadDim)                   \
  X(kRowAttended, "attention of rows", f32, 2, kHeads, kHeadDim)                \
  X(kPartSums, "sums of a part", f32, kTokens, kHeads, kHeadDim)                \
  X(kPartStats, "stats of a part", f32, kTokens, kHeads, 2)

enum Name : uint8_t {
#define MNK_NAME(name, ...) name,
  MNK_TENSORS(MNK_NAME) kNames
};

enum class Kind : uint8_t { f32, f16, u8 };
struct About {
  const char* name;
  Kind kind;
  std::array<uint64_t, 4> shape;
  size_t rank;
};
#define MNK_ABOUT(name, text, kind, ...) \
  {text, Kind::kind, {__VA_ARGS__}, std::initializer_list<uint64_t>{__VA_ARGS__}.size()},
inline constexpr About kAbout[] = {MNK_TENSORS(MNK_ABOUT)};

enum class Op : uint8_t {
  write,
  quantize,
  dequantize,
  hadamard,
  attend,
  attendQuantized,
  attendPartials,
  merge,
  rope,
  ropeNext,  // by the next positions of the cache's sequence 1, in two entries
  broken
};
inline constexpr Op kOps[] = {Op::write,           Op::quantize,       Op::dequantize, Op::hadamard, Op::attend,
                              Op::attendQuantized, Op::attendPartials, Op::merge,      Op::rope};

inline constexpr char kKernelText[] =
    "kernel void injected(device float* numbers [[buffer(0)]]) { numbers[0] = 1; }\nexport_kernel(injected)\n";

enum class Rotation : uint8_t { none, ofCache, listed };  // of a step; listed: by the cache's next positions

class Session {
 public:
  virtual ~Session() = default;

  virtual Status makeDevice(bool isMetal) = 0;
  // Compiles kernel text, then clears the device's registry.
  virtual Status compile() = 0;
  virtual Status makeTensor(Name name) = 0;
  // `released` counts how often the memory was released.
  virtual Status wrap(Name name, void* memory, uint64_t bytes, std::atomic<int>& released) = 0;
  virtual Status slice(Name name, Name of, uint64_t begin, uint64_t count) = 0;
  virtual Status reshape(Name name, Name of) = 0;
  virtual Status write(Name name, std::span<const float> from) = 0;
  virtual Status read(Name name, std::span<float> into) = 0;

  virtual Status plan(Op op) = 0;
  virtual Status makeEncoder() = 0;
  virtual Status measureOps() = 0;
  virtual Status encode(Op op) = 0;
  virtual Status commit(std::atomic<int>& finished) = 0;
  virtual Status wait() = 0;
  virtual void dropEncoder() = 0;
  // A step, recorded by an encoder.
  virtual Status makeRecording() = 0;
  virtual Status makeStep() = 0;
  virtual Status encodeStep() = 0;
  virtual Status runStep(std::atomic<int>& finished) = 0;

  virtual Status makeCache(bool isQuantized, uint32_t capacity) = 0;
  virtual Status prepare(const char* tuningFile, uint32_t rows) = 0;
  virtual Status append(uint32_t sequence) = 0;
  virtual Status attend(uint32_t sequence) = 0;
  virtual Status appendRows(std::span<const uint32_t> sequences) = 0;
  virtual Status attendRows(std::span<const uint32_t> sequences) = 0;
  virtual Status appendAndAttend(uint32_t sequence, Rotation rotation) = 0;
  virtual Status copy(uint32_t source, uint32_t target) = 0;
  // Makes a larger cache beside the cache.
  virtual Status grow(uint32_t capacity) = 0;
  virtual Status copyToLarger(uint32_t source, uint32_t target) = 0;
  virtual Status dequantize(uint32_t sequence) = 0;  // its first tokens
  virtual Status truncate(uint64_t position, uint32_t sequence) = 0;
  virtual Status text() = 0;
  virtual Status save(const char* path) = 0;
  virtual Status load(const char* path) = 0;  // replaces the cache
  virtual uint64_t position(uint32_t sequence) = 0;
  virtual bool isSuspect(uint32_t sequence) = 0;
  virtual void dropCache() = 0;

  // Releases everything except the device, then the device.
  virtual void dropTensors() = 0;
  virtual void dropDevice() = 0;
};

std::unique_ptr<Session> makeCSession();

}  // namespace mnk::inject
