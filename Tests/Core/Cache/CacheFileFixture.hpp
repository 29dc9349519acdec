// Files of caches: a folder that is removed afterwards, bytes to damage, and caches to compare.
#pragma once
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "Cache/QuantizedCacheFixture.hpp"
#include "MLXNativeKernels/mnk_version.h"
#include "Support/Crc32.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::test {

inline constexpr uint64_t kPlenty = 1 << 20;

class CacheFolder {
 public:
  std::string path(const std::string& name = "cache") const { return (directory_->path() / name).string(); }
  size_t fileCount() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(directory_->path()), std::filesystem::directory_iterator()));
  }

 private:
  std::optional<host::TemporaryDirectory> directory_ = host::TemporaryDirectory::make();
};

inline std::vector<std::byte> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void writeFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Overwrites a number in a file and fixes the checksum, so that loading fails because of the number.
template <typename Number>
void forge(std::vector<std::byte>& file, size_t offset, Number number) {
  std::memcpy(&file[offset], &number, sizeof number);
  Crc32 sum;
  sum.add(std::span(file).first(file.size() - 4));
  const uint32_t value = sum.value();
  std::memcpy(&file[file.size() - 4], &value, sizeof value);
}

// Slots of a sequence's readable positions, oldest first.
inline std::vector<uint64_t> heldSlots(const AttentionCache& cache, uint32_t sequence) {
  const uint64_t next = *cache.nextPosition(sequence), pinned = std::min<uint64_t>(cache.view().pinned, next);
  std::vector<uint64_t> slots;
  for (uint64_t position = 0; position < pinned; ++position) slots.push_back(position);
  for (uint64_t position = next - (*cache.count(sequence) - pinned); position < next; ++position) {
    slots.push_back(cache.view().slotOf(position));
  }
  return slots;
}

// The contents of a cache: keys and values of all readable positions, with their scales.
inline std::vector<std::byte> contents(const AttentionCache& cache) {
  const CacheBytes bytes(cache);
  std::vector<std::byte> all;
  for (uint32_t sequence = 0; sequence < cache.descriptor().sequences; ++sequence) {
    for (const uint64_t slot : heldSlots(cache, sequence)) {
      const std::vector<std::byte> held = bytes.ofSlot(sequence, slot);
      all.insert(all.end(), held.begin(), held.end());
    }
  }
  return all;
}

inline void expectSameChannels(const std::optional<Tensor>& got, const std::optional<Tensor>& expected) {
  EXPECT_EQ(got.has_value(), expected.has_value());
  if (got && expected) EXPECT(bytesOf(*got) == bytesOf(*expected));
}

// Compares descriptors, positions and bytes.
inline void expectSame(const AttentionCache& got, const AttentionCache& expected) {
  const AttentionCacheDescriptor &a = got.descriptor(), &b = expected.descriptor();
  EXPECT(a.kvHeads == b.kvHeads && a.headDim == b.headDim && a.valueHeadDim == b.valueHeadDim);
  EXPECT(a.capacity == b.capacity && a.sequences == b.sequences && a.dtype == b.dtype);
  EXPECT(a.whenFull == b.whenFull && a.pinned == b.pinned && a.latentDim == b.latentDim);
  EXPECT_EQ(a.slidingWindow.has_value(), b.slidingWindow.has_value());
  if (a.slidingWindow && b.slidingWindow) EXPECT_EQ(a.slidingWindow->window, b.slidingWindow->window);
  EXPECT_EQ(a.quantized.has_value(), b.quantized.has_value());
  if (a.quantized && b.quantized) {
    EXPECT(a.quantized->keyCodec() == b.quantized->keyCodec() &&
           a.quantized->valueCodec() == b.quantized->valueCodec());
    EXPECT(a.quantized->options == b.quantized->options && a.quantized->planes == b.quantized->planes);
    expectSameChannels(a.quantized->keyMeans, b.quantized->keyMeans);
    expectSameChannels(a.quantized->valueMeans, b.quantized->valueMeans);
    expectSameChannels(a.quantized->keyChannelScales, b.quantized->keyChannelScales);
  }
  for (uint32_t sequence = 0; sequence < b.sequences; ++sequence) {
    EXPECT_EQ(*got.nextPosition(sequence), *expected.nextPosition(sequence));
    EXPECT_EQ(*got.count(sequence), *expected.count(sequence));
    EXPECT(!got.isSuspect(sequence));
  }
  EXPECT(contents(got) == contents(expected));
}

// Appends the same tokens to all caches, which have the same descriptor.
inline void appendAlike(const std::shared_ptr<Device>& device, Seeded& random, std::vector<AttentionCache> caches,
                        uint64_t count, uint32_t sequence = 0) {
  const AttentionCacheDescriptor& d = caches[0].descriptor();
  const Tensor keys = someTokens(device, random, count, d.kvHeads, d.headDim);
  const Tensor values = someTokens(device, random, count, d.kvHeads, d.valueHeadDim);
  CommandEncoder encoder(device);
  for (AttentionCache& cache : caches) REQUIRE(cache.append(encoder, keys, values, sequence));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

}  // namespace mnk::test
