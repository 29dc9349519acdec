// FlashDecode on the devices here, against the devices' ceilings and plain C++.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Harness/Arguments.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/KVCodec.hpp"

namespace mnk::bench {

// How the cache stores its vectors: as f16, or quantized.
using Storage = std::optional<KVCodec>;
std::string nameOf(const Storage& storage);  // "f16", "turbo4", "mlx1-4"
std::vector<Storage> allStorages();

// One sequence whose newest rows attend to all its keys.
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
  std::vector<uint64_t> groups, headDims, lengths;
  uint64_t kvHeads = 8, rows = 1, latentDim = 0;

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

// Plans that each read at least this many bytes, of different parts of the memory, and only sum them. Of two divisions
// of the memory, one for GPUs and one for CPUs, it is the faster.
std::vector<Plan> planReads(const std::shared_ptr<Device>& device, uint64_t bytes, uint32_t copies);
// A plan with at least this many floating-point operations: it only multiplies 8x8 matrices of half and accumulates in
// f32, like attention with many rows.
Plan planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations);

// The options of `bench decode`.
struct DecodeOptions {
  std::string device;    // its kind; empty: all
  std::string jsonFile;  // empty: none
  Axes axes;             // empty lists have defaults
  AttentionOptions attention = {};
  uint32_t workers = 0;  // of the Host device; 0: one per core
  bool isCold = false;
  bool isTuning = false;

  std::vector<arguments::Option> table();
  std::vector<DecodeCase> cases() const;
};

// Times are medians per run.
struct Measurement {
  DecodeCase shape;
  std::string kernel;  // the first function of the plan
  uint64_t dispatches = 0;
  uint64_t runs = 0;
  double seconds = 0;
  std::optional<double> readSeconds = {};      // of a kernel that only reads the same number of bytes
  std::optional<double> multiplySeconds = {};  // of a kernel that only multiplies, with the same number of operations
  std::optional<double> plainSeconds = {};     // of plain C++ over f16
  std::optional<double> difference = {};       // the largest difference between its results and the op's, at f16
};

// Times FlashDecode at a shape, interleaved with its baselines.
Measurement measure(const std::shared_ptr<Device>& device, const DecodeCase& shape, const DecodeOptions& options);
// Prints the measurements; false if something is wrong.
bool measureDecode(const DecodeOptions& options);

}  // namespace mnk::bench
