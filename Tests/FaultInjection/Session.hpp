// A client of the C++ or the C API, with named tensors, an encoder and a cache. Each function makes one call of the
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
inline constexpr uint64_t kHeads = 2, kHeadDim = 64, kTokens = 3, kCapacity = 8, kCodeBytes = 32, kSequences = 3;
inline constexpr uint64_t kElements = kTokens * kHeads * kHeadDim;  // in a step

enum Name : uint8_t {
  // [tokens, heads, headDim]; the first three are filled with numbers.
  kKeys,
  kValues,
  kQueries,
  kAttended,
  kAttendedQuantized,
  kMerged,
  kReadKeys,
  kReadValues,
  kTurned,
  kRotatedQueries,
  kRotatedKeys,
  kWrapped,
  // Memory of a cache.
  kDenseKeys,
  kDenseValues,
  kKeyCodes,
  kValueCodes,
  kKeyScales,
  kValueScales,
  kPartialSums,
  kPartialStats,
  // Views of others.
  kRowKeys,
  kRowValues,
  kRowQueries,
  kRowAttended,
  kPartSums,
  kPartStats,
  kNames
};

enum class Kind : uint8_t { f32, f16, u8 };
struct About {
  const char* name;
  Kind kind;
  std::array<uint64_t, 4> shape;
  size_t rank;
};
inline constexpr About kAbout[kNames] = {
    {"keys", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"values", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"queries", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"attention", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"attention over codes", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"merged partials", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"dequantized keys", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"dequantized values", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"Hadamard transform", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"rotated queries", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"rotated keys", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"wrapped memory", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"dense keys", Kind::f32, {kHeads, kCapacity, kHeadDim}, 3},
    {"dense values", Kind::f32, {kHeads, kCapacity, kHeadDim}, 3},
    {"codes of keys", Kind::u8, {kHeads, kCapacity, kCodeBytes}, 3},
    {"codes of values", Kind::u8, {kHeads, kCapacity, kCodeBytes}, 3},
    {"scales of keys", Kind::f16, {kHeads, kCapacity}, 2},
    {"scales of values", Kind::f16, {kHeads, kCapacity}, 2},
    {"sums of partials", Kind::f32, {1, kTokens, kHeads, kHeadDim}, 4},
    {"stats of partials", Kind::f32, {1, kTokens, kHeads, 2}, 4},
    {"keys of rows", Kind::f32, {2, kHeads, kHeadDim}, 3},
    {"values of rows", Kind::f32, {2, kHeads, kHeadDim}, 3},
    {"queries of rows", Kind::f32, {2, kHeads, kHeadDim}, 3},
    {"attention of rows", Kind::f32, {2, kHeads, kHeadDim}, 3},
    {"sums of a part", Kind::f32, {kTokens, kHeads, kHeadDim}, 3},
    {"stats of a part", Kind::f32, {kTokens, kHeads, 2}, 3},
};

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
  broken
};
inline constexpr Op kOps[] = {Op::write,           Op::quantize,       Op::dequantize, Op::hadamard, Op::attend,
                              Op::attendQuantized, Op::attendPartials, Op::merge,      Op::rope};

inline constexpr char kKernelText[] =
    "kernel void injected(device float* numbers [[buffer(0)]]) { numbers[0] = 1; }\nexport_kernel(injected)\n";

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
  virtual uint64_t runs() = 0;  // 0 without a step
  virtual void setRuns(uint64_t runs) = 0;

  virtual Status makeCache(bool isQuantized) = 0;
  virtual Status prepare(const char* tuningFile) = 0;
  virtual Status append(uint32_t sequence) = 0;
  virtual Status attend(uint32_t sequence) = 0;
  virtual Status appendRows(std::span<const uint32_t> sequences) = 0;
  virtual Status attendRows(std::span<const uint32_t> sequences) = 0;
  virtual Status appendAndAttend(uint32_t sequence, bool isRotated) = 0;
  virtual Status copy(uint32_t source, uint32_t target) = 0;
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

std::unique_ptr<Session> makeCppSession();
std::unique_ptr<Session> makeCSession();

}  // namespace mnk::inject
