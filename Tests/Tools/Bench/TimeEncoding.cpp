#include "TimeEncoding.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kHeads = 8, kHeadDim = 64;

// A cache and tokens for it, whose memory is never accessed.
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
  auto shape = Shape::make({n, kHeads, kHeadDim});
  if (!shape) return std::move(shape).error();
  auto tokens = Tensor::zeros(*device, DType::f16, *shape);
  if (!tokens) return std::move(tokens).error();
  auto results = Tensor::zeros(*device, DType::f16, *shape);
  if (!results) return std::move(results).error();
  Arena arena{*device, *cache, *tokens, *results, std::vector<uint32_t>(hasManySequences ? n : 1)};
  std::iota(arena.sequences.begin(), arena.sequences.end(), 0);
  return arena;
}

Result<void> appendAll(Arena& arena, CommandEncoder& encoder) {
  return arena.cache.append(encoder, arena.tokens, arena.tokens, arena.sequences);
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
      return arena.cache.attend(encoder, arena.tokens, {.into = arena.results}, {}, arena.sequences);
  }
  return {};
}

}  // namespace

const char* name(Encoded encoded) {
  switch (encoded) {
    case Encoded::appends:
      return "n appends of a token";
    case Encoded::appendToMany:
      return "append to n sequences";
    case Encoded::attendOverMany:
      return "attend over n sequences";
    case Encoded::attendWithRows:
      return "attend with n rows";
  }
  return "";
}

Result<double> timeEncoding(Encoded encoded, uint32_t n, uint32_t repetitions) {
  auto arena = makeArena(n, encoded == Encoded::appendToMany || encoded == Encoded::attendOverMany);
  if (!arena) return std::move(arena).error();
  double least = INFINITY;
  for (uint32_t i = 0; i < repetitions; ++i) {
    CommandEncoder encoder(arena->device);
    if (encoded == Encoded::attendOverMany || encoded == Encoded::attendWithRows) {
      if (auto appended = appendAll(*arena, encoder); !appended) return std::move(appended).error();
    }
    const std::clock_t start = std::clock();  // CPU time of this process, independent of the machine's load
    if (auto done = encode(encoded, *arena, encoder); !done) return std::move(done).error();
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

}  // namespace mnk::bench
