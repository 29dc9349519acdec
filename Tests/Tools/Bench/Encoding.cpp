#include <ctime>
#include <numeric>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kHeads = 8, kHeadDim = 64;

enum class Encoded : uint8_t {
  appends,         // n calls that append a token to one sequence, in one encoder
  appendToMany,    // one call that appends a token to each of n sequences
  attendOverMany,  // one call with n sequences of one row each
  attendWithRows,  // one call with one sequence of n rows
};
constexpr std::pair<Encoded, const char*> kEncoded[] = {{Encoded::appends, "n appends of a token"},
                                                        {Encoded::appendToMany, "append to n sequences"},
                                                        {Encoded::attendOverMany, "attend over n sequences"},
                                                        {Encoded::attendWithRows, "attend with n rows"}};

// A cache and tokens for it.
struct Arena {
  std::shared_ptr<Device> device;
  AttentionCache cache;
  Tensor tokens, results;
  std::vector<uint32_t> sequences;
};

Arena makeArena(uint32_t n, bool hasManySequences) {
  auto device = need(host::makeDevice({.workers = 1}));
  auto cache = need(AttentionCache::make(device, {.kvHeads = kHeads,
                                                  .headDim = kHeadDim,
                                                  .capacity = hasManySequences ? 2 : n,
                                                  .sequences = hasManySequences ? n : 1}));
  const auto tokens = [&] { return makeTensor(device, DType::f16, {n, kHeads, kHeadDim}); };
  Arena arena{device, cache, tokens(), tokens(), std::vector<uint32_t>(hasManySequences ? n : 1)};
  std::iota(arena.sequences.begin(), arena.sequences.end(), 0);
  return arena;
}

void appendAll(Arena& arena, CommandEncoder& encoder) {
  need(arena.cache.append(encoder, {.keys = arena.tokens, .values = arena.tokens, .sequences = arena.sequences}));
}

void encode(Encoded encoded, Arena& arena, CommandEncoder& encoder) {
  switch (encoded) {
    case Encoded::appends:
      for (uint64_t token = 0; token < arena.tokens.shape()[0]; ++token) {
        auto one = need(arena.tokens.slice(token, 1));
        need(arena.cache.append(encoder, one, one));
      }
      return;
    case Encoded::appendToMany:
      return appendAll(arena, encoder);
    case Encoded::attendOverMany:
    case Encoded::attendWithRows:
      need(arena.cache.attend(
          encoder, {.queries = arena.tokens, .results = {.output = arena.results}, .sequences = arena.sequences}));
  }
}

// The minimum of several runs, in seconds of CPU time for all n, which other programs do not affect.
double secondsOf(Encoded encoded, uint32_t n) {
  auto arena = makeArena(n, encoded == Encoded::appendToMany || encoded == Encoded::attendOverMany);
  const auto run = [&] {
    CommandEncoder encoder(arena.device);
    if (encoded == Encoded::attendOverMany || encoded == Encoded::attendWithRows) appendAll(arena, encoder);
    const std::clock_t start = std::clock();
    encode(encoded, arena, encoder);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  return leastSeconds(kRepetitions / 6, {run})[0];
}

}  // namespace

void benchEncoding() {
  fmt::print("\nEncoding for {} heads of {}, f16, for each of n; a ratio is that of 16K to that of 1K\n", kHeads,
             kHeadDim);
  constexpr uint32_t kFew = 1024, kMany = 16 * kFew;
  for (const auto& [encoded, name] : kEncoded) {
    fmt::print("  {:<24}", name);
    double first = 0, last = 0;
    for (uint32_t n = kFew; n <= kMany; n *= 4) {
      last = secondsOf(encoded, n) / n;
      if (n == kFew) first = last;
      fmt::print("{:3}K {:7.2f} us   ", n / kFew, last * 1e6);
    }
    fmt::print("ratio {:.2f}\n", last / first);
  }
}

}  // namespace mnk::bench
