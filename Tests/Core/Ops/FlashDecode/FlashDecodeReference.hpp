// What FlashDecode and MergePartials define, from the bytes of operands, in double and in plain loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk::test {

// Bytes of operands by their names: "queries"; "keys" and "values" of a dense cache; "key codes", "key scales",
// "key means", "key channel scales", "value codes", "value scales" and "value means" of a quantized one; "mask",
// "slopes", "sinks".
using OperandBytes = std::map<std::string, std::vector<std::byte>, std::less<>>;

// Where a cache keeps its vectors, whether they are dense or codes.
struct CacheGeometry {
  uint64_t sequences = 1;
  uint64_t heads = 0;
  uint64_t capacity = 0;
  KVLayout layout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::linear;
  uint64_t pinned = 0;

  // Vectors before this one.
  uint64_t indexOf(uint64_t sequence, uint64_t head, uint64_t slot) const;
};
CacheGeometry geometryOf(const FlashDecode& op);

struct HeldKey {
  int64_t position = 0;
  uint64_t slot = 0;
};
// The keys that a cache holds of a sequence, the oldest first.
std::vector<HeldKey> heldKeys(const CacheGeometry& cache, const AttendedSequence& sequence);

// The first element of a query in its tensor. Sequences with numbers of rows share the rows of one.
uint64_t queryStart(const FlashDecode& op, uint64_t sequence, uint64_t row, uint64_t head);

// The position of a query row; below zero where there are more rows than positions.
int64_t rowPosition(const AttendedSequence& sequence, uint64_t rows, uint64_t row);
bool isVisible(const FlashDecode& op, int64_t keyPosition, int64_t rowPosition);

// Where a mask is asked: a sequence, head and row of the queries, and a key, counted from the oldest.
struct MaskPlace {
  uint64_t sequence = 0;
  uint64_t head = 0;
  uint64_t row = 0;
  uint64_t key = 0;
};
double maskElement(const Tensor& mask, const std::vector<std::byte>& bytes, const MaskPlace& place);

struct AttendedRow {
  std::vector<double> output;
  double logSumExp = -std::numeric_limits<double>::infinity();  // the sink's score included, if any
  double largest = -std::numeric_limits<double>::infinity();    // of the scores
  double sum = 0;                                               // of e^(score - largest)
  // The largest sum of magnitudes that a score with any weight is made of. What f32 loses goes by it.
  double magnitude = 0;
  bool seesKeys = false;  // with a score above -inf
};

// Rows in the order of the queries: by sequence, row and head.
std::vector<AttendedRow> attended(const FlashDecode& op, const OperandBytes& bytes);

// Parts that are to be merged: sums [parts, rows, headDim], stats [parts, rows, 2]. Row r is one of head r mod heads,
// whose sink, if any, is sinks[r mod heads].
struct PartsToMerge {
  uint64_t parts = 1;
  uint64_t rows = 1;
  uint64_t headDim = 0;
  std::span<const float> sums;
  std::span<const float> stats;
  std::span<const float> sinks = {};
};
std::vector<AttendedRow> merged(const PartsToMerge& parts);

}  // namespace mnk::test
