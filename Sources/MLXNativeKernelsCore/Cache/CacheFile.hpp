// The file that AttentionCache saves, version 4 to 6. All numbers are little endian; what they mean never changes.
// Version 5 differs only in its storage.
// Version 6 is that of a latent cache of any storage, whose latentDim is its valueHeadDim.
// Versions 1 to 3, with other codebooks of turbo, are refused.
//
//   offset  bytes
//        0      8   "MNKCACHE"
//        8      2   version: 6 of a latent cache, else 4, or 5 where storage is 2 or 3
//       10      2   minor and major version of the package that saved the file, a byte each; 0 before 0.2
//       12     20   kvHeads, headDim, valueHeadDim, capacity, sequences
//       32      4   dtype of what is dense: 0 f32, 1 f16, 2 bf16; 3 u8 where nothing is
//       36      4   when full: 0 fail, 1 overwrite the oldest
//       40      4   pinned positions
//       44      4   storage: 0 dense, 1 quantized, 2 quantized keys and dense values, 3 dense keys and quantized
//                   values. Of a dense cache the fields up to 84 are 0.
//       48      4   codec: 0 turbo, 1 mlx1, 2 mlx1Unrotated, 3 mlx1Affine4
//       52      8   bits of keys, bits of values; 0 of what is dense
//       60      4   scale factor, f32
//       64      4   candidates: 1, 5 or 17
//       68      8   scale of keys, scale of values: 0 unbiased, 1 least squares
//       76      4   vectors that are not finite: 0 become zero, 1 get a scale that is NaN
//       80      4   sum of 1 where means of keys follow, 2 means of values, 4 channel scales of keys
//       84      4   window of a sliding-window cache, else 0
//       88          for each sequence u64 next position, u64 highest next position since its last reset, at most
//                   2^62
//                   means of keys, means of values, channel scales of keys, f32, those that follow
//                   for each sequence and head the slots below min(highest, capacity): keys, scales of keys, values,
//                   scales of values, as QuantizedKVPlane and KVCodec.hpp define them, without scales of what
//                   is dense; slots that hold no position which can be read may hold anything
//                4  CRC-32 of all bytes before it
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "Cache/CacheCursors.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk {

struct CacheFileHeader {
  static constexpr size_t kBytes = 88;
  using Bytes = std::array<std::byte, kBytes>;

  AttentionCacheDescriptor descriptor;  // without the tensors that follow
  bool hasKeyMeans = false;
  bool hasValueMeans = false;
  bool hasKeyChannelScales = false;

  // `start` is what the file begins with, up to the length of a header.
  static Result<CacheFileHeader> decode(std::span<const std::byte> start);
  Bytes encode() const;

  // Bytes of keys and values with their scales; nullopt on overflow.
  std::optional<uint64_t> cacheBytes() const;
  // Bytes of the rest: cursors, means and channel scales.
  uint64_t besideBytes() const;
  // The length of the file for these cursors.
  std::optional<uint64_t> fileBytes(std::span<const CacheCursor> cursors) const;
  CacheSlots slots() const { return {descriptor.capacity, descriptor.whenFull, descriptor.pinned}; }
};

// The window of a descriptor that has one, with the most rows and drafts that its capacity serves.
SlidingWindow servedWindow(const AttentionCacheDescriptor& descriptor);

constexpr size_t kCursorBytes = 16;
std::array<std::byte, kCursorBytes> encode(const CacheCursor& cursor);
CacheCursor decodeCursor(std::span<const std::byte, kCursorBytes> bytes);

constexpr size_t kChecksumBytes = 4;
std::array<std::byte, kChecksumBytes> encodeChecksum(uint32_t sum);

// An error about a file.
Error cacheFileError(std::string_view what, std::string got, std::string expected, std::string_view fix);
Error truncatedFile(uint64_t got, uint64_t expected);

}  // namespace mnk
