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

Result<Arena> makeArena(uint32_t n, bool hasManySequences) {
  auto device = host::makeDevice({.workers = 1});
  if (!device) return std::move(device).error();
  auto cache = AttentionCache::make(*device, {.kvHeads = kHeads,
                                              .headDim = kHeadDim,
                                              .capacity = hasManySequences ? 2 : n,
                                              .sequences = hasManySequences ? n : 1});
  if (!cache) return std::move(cache).error();
  auto tokens = makeTensor(*device, DType::f16, {n, kHeads, kHeadDim});
  if (!tokens) return std::move(tokens).error();
  auto results = makeTensor(*device, DType::f16, {n, kHeads, kHeadDim});
  if (!results) return std::move(results).error();
  Arena arena{*device, *cache, *tokens, *results, std::vector<uint32_t>(hasManySequences ? n : 1)};
  std::iota(arena.sequences.begin(), arena.sequences.end(), 0);
  return arena;
}

Result<void> appendAll(Arena& arena, CommandEncoder& encoder) {
  return arena.cache.append(encoder, {.keys = arena.tokens, .values = arena.tokens, .sequences = arena.sequences});
}

Result<void> encode(Encoded encoded, Arena& arena, CommandEncoder& encoder) {
  switch (encoded) {
    case Encoded::appends:
      for (uint64_t token = 0; token < arena.tokens.shape()[0]; ++token) {
        auto one = arena.tokens.slice(token, 1);
        if (!one) return std::move(one).error();
        if (auto appended = arena.cache.append(encoder, *one, *one); !appended) return appended;
      }
      return {};
    case Encoded::appendToMany:
      return appendAll(arena, encoder);
    case Encoded::attendOverMany:
    case Encoded::attendWithRows:
      return arena.cache.attend(
          encoder, {.queries = arena.tokens, .results = {.output = arena.results}, .sequences = arena.sequences});
  }
  return {};
}

// The minimum of several runs, in seconds of CPU time for all n, which other programs do not affect.
Result<double> secondsOf(Encoded encoded, uint32_t n) {
  auto arena = makeArena(n, encoded == Encoded::appendToMany || encoded == Encoded::attendOverMany);
  if (!arena) return std::move(arena).error();
  auto least = leastSeconds(kRepetitions / 6, {[&]() -> Result<double> {
                              CommandEncoder encoder(arena->device);
                              if (encoded == Encoded::attendOverMany || encoded == Encoded::attendWithRows) {
                                auto appended = appendAll(*arena, encoder);
                                if (!appended) return std::move(appended).error();
                              }
                              const std::clock_t start = std::clock();
                              if (auto done = encode(encoded, *arena, encoder); !done) return std::move(done).error();
                              return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
                            }});
  if (!least) return std::move(least).error();
  return least->front();
}

}  // namespace

Result<void> benchEncoding() {
  fmt::print("\nEncoding for {} heads of {}, f16, for each of n; a ratio is that of 16K to that of 1K\n", kHeads,
             kHeadDim);
  constexpr uint32_t kFew = 1024, kMany = 16 * kFew;
  for (const auto& [encoded, name] : kEncoded) {
    fmt::print("  {:<24}", name);
    double first = 0, last = 0;
    for (uint32_t n = kFew; n <= kMany; n *= 4) {
      auto seconds = secondsOf(encoded, n);
      if (!seconds) return std::move(seconds).error();
      last = *seconds / n;
      if (n == kFew) first = last;
      fmt::print("{:3}K {:7.2f} us   ", n / kFew, last * 1e6);
    }
    fmt::print("ratio {:.2f}\n", last / first);
  }
  return {};
}

}  // namespace mnk::bench
