// The measured choices for FlashDecode on one device.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk {

struct AttentionShape;

// How a FlashDecode runs, unless the caller sets it.
struct FlashDecodeChoice {
  bool usesMatrices = false;
  bool usesPrefill = false;  // by the prefill kernel, which few rows take over a latent cache alone
  uint32_t rowsPerTile = 0;  // of the matrix and the prefill kernel: rows of a simdgroup, and keys of a tile
  uint32_t tileKeys = 0;
  uint32_t simdgroups = 0;  // of a threadgroup
  uint32_t splits = 0;
  bool mergesInKernel = false;

  bool operator==(const FlashDecodeChoice&) const = default;
  std::string text() const;  // "matrix 8x16, 8 simdgroups, 16 splits, merged together"
};

// What the speed of a FlashDecode depends on besides the device.
struct FlashDecodeWorkload {
  std::string storage;  // "f16", "turbo4:3" for keys of 4 bits and values of 3, "f16:turbo4" for dense keys
  DType queries = DType::f16;
  uint64_t keyDim = 0;
  uint64_t valueDim = 0;
  uint64_t rows = 0;      // of each head of the cache: heads of its group, times tokens
  bool isPrompt = false;  // in one dispatch of the prefill kernel; then tokens are rounded up to a power of two
  uint64_t heads = 0;     // of the cache, in all sequences
  uint64_t keys = 0;      // of the longest sequence

  static FlashDecodeWorkload of(const AttentionShape& shape, bool isPrompt = false);
  auto operator<=>(const FlashDecodeWorkload&) const = default;
  std::string text() const;  // "turbo4:4, head dim 128, 4 rows of f16, 8 heads, 4096 keys"
};

class MeasuredTuning {
 public:
  // The choice for the nearest measured workload that has half to twice the number of keys and is otherwise equal.
  std::optional<FlashDecodeChoice> find(const FlashDecodeWorkload& workload) const;
  void set(const FlashDecodeWorkload& workload, const FlashDecodeChoice& choice);
  // Adds the choices of `other` for new workloads.
  void add(const MeasuredTuning& other) { choices_.insert(other.choices_.begin(), other.choices_.end()); }
  size_t size() const { return choices_.size(); }
  bool operator==(const MeasuredTuning&) const = default;

  // One line for each workload.
  std::string lines() const;
  // Parses the output of `lines`. Returns nullopt if the text is malformed or names a kernel that does not exist.
  static std::optional<MeasuredTuning> parse(std::string_view lines);

 private:
  std::map<FlashDecodeWorkload, FlashDecodeChoice> choices_;  // ordered by `keys` last
};

}  // namespace mnk
