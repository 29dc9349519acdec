// One shape at which FlashDecode is measured, one sequence whose newest rows attend to all its keys, and the op there.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk::bench {

// How the cache stores its vectors: as f16 or quantized.
struct Storage {
  std::optional<KVCodec> codec = {};

  std::string text() const;  // "f16", "turbo4", "mlx1-4"
  static std::vector<Storage> all();
  static Storage f16() { return {}; }
  static Storage turbo(uint32_t bits) { return {KVCodec{.bits = bits}}; }

  // Bytes of one vector.
  uint64_t bytes(uint64_t headDim) const;
};

struct DecodeCase {
  Storage storage = {};
  uint64_t kvHeads = 8;
  uint64_t group = 4;  // query heads per KV head
  uint64_t headDim = 128;
  uint64_t length = 4096;
  uint64_t rows = 1;
  uint64_t latentDim = 0;  // of a latent cache, in which keys hold `headDim` elements behind values

  uint64_t valueDim() const { return latentDim != 0 ? latentDim : headDim; }
  uint64_t queryDim() const { return latentDim + headDim; }
  uint64_t heads() const { return kvHeads * group; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(queryDim())); }
  // The minimum memory traffic: keys and values once, queries and results.
  uint64_t bytes() const;
  // Floating-point operations of the products of queries and keys, and of probabilities and values, for causal rows.
  uint64_t operations() const;
};

// The lists whose combinations are the shapes.
struct Axes {
  std::vector<Storage> storages;
  std::vector<uint64_t> groups;
  std::vector<uint64_t> headDims;
  std::vector<uint64_t> lengths;
  uint64_t kvHeads = 8;
  uint64_t rows = 1;
  uint64_t latentDim = 0;

  static Axes everything();
  // Every combination that the codecs support.
  std::vector<DecodeCase> cases() const;
};

// A few lengths, and at the middle one each axis varied alone; and prompts, unless there are several rows. Then a
// latent cache with 128 query heads.
std::vector<DecodeCase> shortList(uint64_t kvHeads, uint64_t rows);

// FlashDecode at one shape: a number of copies of a filled cache, each with its op. The contents are deterministic.
struct DecodeProblem {
  std::shared_ptr<Device> device;
  std::vector<FlashDecode> ops = {};

  DecodeProblem(const std::shared_ptr<Device>& device, const DecodeCase& shape, uint32_t copies);
  std::vector<Plan> plans(const AttentionOptions& options) const;
};

}  // namespace mnk::bench
