// AttentionCache::save and load. CacheFileFormat.hpp says what lies where.
#include <algorithm>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Cache/CacheFileFormat.hpp"
#include "Support/Bytes.hpp"
#include "Support/Crc32.hpp"
#include "Support/Errors.hpp"
#include "Support/File.hpp"

namespace mnk {

namespace {

// Limit for data other than keys and values, such as cursors, even if the cache itself is small.
constexpr uint64_t kAlwaysAllowed = 1 << 20;

class SummingWriter {
 public:
  explicit SummingWriter(FileReplacement& file) : file_(file) {}
  Result<void> write(std::span<const std::byte> bytes) {
    sum_.add(bytes);
    return file_.write(bytes);
  }
  uint32_t sum() const { return sum_.value(); }

 private:
  FileReplacement& file_;
  Crc32 sum_;
};

class SummingReader {
 public:
  explicit SummingReader(FileReader& file) : file_(file) {}
  Result<void> read(std::span<std::byte> into) {
    MNK_TRY(file_.read(into));
    sum_.add(into);
    return {};
  }
  uint32_t sum() const { return sum_.value(); }

 private:
  FileReader& file_;
  Crc32 sum_;
};

// Bytes of a plane that are contiguous in memory and in the file.
struct Run {
  Buffer& buffer;
  std::optional<uint64_t> offset;  // none: the slots hold no readable position, and have no place in memory
  std::span<std::byte> bytes;      // staging buffer of the same length, for `body` to fill
};

// Slots that a file holds of a sequence, and where they begin in memory; nowhere if they hold no readable position.
struct FileSlots {
  uint64_t count;
  std::optional<uint64_t> begin;
};
std::vector<FileSlots> fileSlots(const CacheSlots& slots, const CacheCursor& cursor, const CacheSlots& inMemory) {
  std::vector<FileSlots> all;
  uint64_t end = 0;
  const auto skipTo = [&](uint64_t slot) {
    if (slot > end) all.push_back({slot - end, std::nullopt});
    end = std::max(end, slot);
  };
  const uint64_t oldest = slots.oldestKept(cursor), ring = slots.capacity - slots.pinned;
  for (const SlotRun& held : slots.heldSlots(cursor)) {
    if (held.count == 0) continue;
    skipTo(held.begin);
    uint64_t position = held.begin;
    if (oldest != 0 && held.begin >= slots.pinned) {
      position = oldest + (held.begin + ring - slots.slotOf(oldest)) % ring;
    }
    for (uint64_t left = held.count, count; left != 0; left -= count, position += count) {
      const uint64_t begin = inMemory.slotOf(position);
      count = std::min(left, (begin < inMemory.pinned ? inMemory.pinned : inMemory.capacity) - begin);
      all.push_back({count, begin});
    }
    end = held.begin + held.count;
  }
  skipTo(slots.used(cursor));
  return all;
}

// Every slot that a file holds, in its order and a piece at a time.
template <typename Body>
Result<void> forEachRun(const CacheStorage& storage, const CacheSlots& slots, const CacheSlots& inMemory,
                        std::span<const CacheCursor> cursors, uint64_t heads, Body body) {
  std::vector<std::byte> piece(1 << 18);
  for (size_t sequence = 0; sequence < cursors.size(); ++sequence) {
    const std::vector<FileSlots> parts = fileSlots(slots, cursors[sequence], inMemory);
    for (uint64_t head = 0; !parts.empty() && head < heads; ++head) {
      for (const std::optional<Tensor>& plane : storage.planes()) {
        if (!plane) continue;
        const uint64_t slotBytes = plane->byteCount() / cursors.size() / heads / inMemory.capacity;
        const uint64_t headOffset = plane->byteOffset() + (sequence * heads + head) * inMemory.capacity * slotBytes;
        for (const FileSlots& part : parts) {
          Run run{*plane->buffer(), std::nullopt, {}};
          if (part.begin) run.offset = headOffset + *part.begin * slotBytes;
          for (uint64_t left = part.count * slotBytes; left != 0; left -= run.bytes.size()) {
            run.bytes = std::span(piece).first(std::min<uint64_t>(left, piece.size()));
            MNK_TRY(body(run));
            if (run.offset) *run.offset += run.bytes.size();
          }
        }
      }
    }
  }
  return {};
}

// Means or channel scales as a tensor.
Result<std::optional<Tensor>> readChannels(SummingReader& file, const std::shared_ptr<Device>& device, bool follows,
                                           uint64_t heads, uint64_t headDim) {
  if (!follows) return std::optional<Tensor>();
  std::vector<std::byte> bytes(heads * headDim * byteSize(DType::f32));
  MNK_TRY(file.read(bytes));
  MNK_TRY(auto shape, Shape::make({heads, headDim}));
  MNK_TRY(auto tensor, Tensor::zeros(device, DType::f32, shape));
  MNK_TRY(tensor.write(bytes));
  return std::optional<Tensor>(std::move(tensor));
}

// The cache that a file describes, with another capacity if it is not 0.
AttentionCacheDescriptor resized(AttentionCacheDescriptor d, uint32_t capacity) {
  if (capacity == 0) return d;
  d.capacity = capacity;
  if (d.slidingWindow) d.slidingWindow = servedWindow(d);
  return d;
}

Result<CacheFileHeader> readHeader(SummingReader& file, uint64_t length, uint64_t maxBytes, uint32_t capacity) {
  CacheFileHeader::Bytes bytes;
  const auto start = std::span(bytes).first(std::min<uint64_t>(length, bytes.size()));
  MNK_TRY(file.read(start));
  MNK_TRY(auto header, CacheFileHeader::decode(start));
  const auto cacheBytes = CacheFileHeader{.descriptor = resized(header.descriptor, capacity)}.cacheBytes();
  const uint64_t besideBytes = header.besideBytes();
  const uint64_t maxOtherBytes = std::max(maxBytes, kAlwaysAllowed);
  if (!cacheBytes || *cacheBytes > maxBytes || besideBytes > maxOtherBytes) {
    const bool isBeside = cacheBytes && *cacheBytes <= maxBytes;
    const uint64_t bytes = isBeside ? besideBytes : cacheBytes.value_or(0);
    return cacheFileError("the cache of the file is larger than allowed",
                          cacheBytes ? countText(bytes, "byte") : "more bytes than 64-bit sizes can count",
                          fmt::format("at most {}", countText(isBeside ? maxOtherBytes : maxBytes, "byte")),
                          "Allow more, where the file is to be trusted and there is memory.");
  }
  return header;
}

// Reads the cursors of all sequences and then validates the length of the file.
Result<std::vector<CacheCursor>> readCursors(SummingReader& file, uint64_t length, const CacheFileHeader& header) {
  const uint64_t sequences = header.descriptor.sequences;
  const uint64_t least = CacheFileHeader::kBytes + sequences * kCursorBytes + kChecksumBytes;
  if (length < least) return truncatedFile(length, least);
  std::vector<CacheCursor> cursors(sequences);
  for (CacheCursor& cursor : cursors) {
    std::array<std::byte, kCursorBytes> bytes;
    MNK_TRY(file.read(bytes));
    cursor = decodeCursor(bytes);
    if (header.slots().canReach(cursor)) continue;
    return cacheFileError("the file describes a sequence that cannot be",
                          fmt::format("next position {} after {}", cursor.next, cursor.highest),
                          fmt::format("what a {} of {} with {} pinned can hold",
                                      header.descriptor.whenFull == KVWrap::ring ? "ring" : "linear cache",
                                      header.descriptor.capacity, header.descriptor.pinned),
                          "Save the cache again; this file is damaged or was not written by this library.");
  }
  const auto expected = header.fileBytes(cursors);
  if (!expected || length < *expected) return truncatedFile(length, expected.value_or(UINT64_MAX));
  if (length > *expected) {
    return cacheFileError("the file is too long", countText(length, "byte"), countText(*expected, "byte"),
                          "Save the cache again; something was added to this file.");
  }
  return cursors;
}

Error unfitCapacity(const CacheSlots& saved, const CacheCursor& cursor, uint64_t sequence, uint32_t capacity) {
  return cacheFileError(
      "the capacity is too small for the file", fmt::format("{}", capacity),
      fmt::format("at least {}, for {} of sequence {}", saved.count(cursor), saved.heldText(cursor), sequence),
      "Load with a larger capacity, or with that of the saved cache.");
}

}  // namespace

Result<void> AttentionCache::save(const std::string& path) const {
  return guarded(kCacheName, [&]() -> Result<void> {
    const uint64_t changes = state_->cursors.changes();
    const std::vector<CacheCursor> cursors = state_->cursors.all();
    for (uint32_t sequence = 0; sequence < cursors.size(); ++sequence) {
      if (cursors[sequence].suspectFrom) return suspectError(sequence, cursors[sequence]);
    }
    const AttentionCacheDescriptor& d = state_->descriptor;
    CacheFileHeader header{.descriptor = d};
    std::vector<Tensor> channels;
    if (d.quantized) {
      header.hasKeyMeans = d.quantized->keyMeans.has_value();
      header.hasValueMeans = d.quantized->valueMeans.has_value();
      header.hasKeyChannelScales = d.quantized->keyChannelScales.has_value();
      for (const auto& tensor : {d.quantized->keyMeans, d.quantized->valueMeans, d.quantized->keyChannelScales}) {
        if (tensor) channels.push_back(*tensor);
      }
    }

    MNK_TRY(auto replacement, FileReplacement::make(kCacheName, path));
    SummingWriter file(replacement);
    MNK_TRY(file.write(header.encode()));
    for (const CacheCursor& cursor : cursors) MNK_TRY(file.write(encode(cursor)));
    for (const Tensor& tensor : channels) {
      std::vector<std::byte> bytes(tensor.byteCount());
      MNK_TRY(tensor.read(bytes));
      MNK_TRY(file.write(bytes));
    }
    const auto save = [&](const Run& run) -> Result<void> {
      // Truncated tokens are useless to a reader, and the work that wrote them may have failed, so zeros are saved
      // instead.
      if (run.offset) {
        MNK_TRY(run.buffer.readCommitted(*run.offset, run.bytes));
      } else {
        std::fill(run.bytes.begin(), run.bytes.end(), std::byte{0});
      }
      return file.write(run.bytes);
    };
    MNK_TRY(forEachRun(state_->storage, header.slots(), header.slots(), cursors, d.kvHeads, save));
    MNK_TRY(replacement.write(encodeChecksum(file.sum())));
    if (state_->cursors.changes() != changes) {
      return Error{.op = std::string(kCacheName),
                   .what = "the cache was changed while it was saved",
                   .got = "an append, a truncate, a reset or a failure meanwhile",
                   .expected = "a cache that stays as it is while it is saved",
                   .fix = "Save between steps.",
                   .retryable = true};
    }
    return replacement.commit();
  });
}

Result<AttentionCache> AttentionCache::load(const std::shared_ptr<Device>& device, const std::string& path,
                                            uint64_t maxBytes, uint32_t capacity) {
  return guarded(kCacheName, [&]() -> Result<AttentionCache> {
    MNK_TRY(auto opened, FileReader::open(kCacheName, path));
    SummingReader file(opened);
    MNK_TRY(auto header, readHeader(file, opened.length(), maxBytes, capacity));
    MNK_TRY(auto cursors, readCursors(file, opened.length(), header));
    const CacheSlots saved = header.slots();

    AttentionCacheDescriptor& d = header.descriptor;
    if (d.quantized) {
      MNK_TRY(auto keyMeans, readChannels(file, device, header.hasKeyMeans, d.kvHeads, d.headDim));
      MNK_TRY(auto valueMeans, readChannels(file, device, header.hasValueMeans, d.kvHeads, d.valueHeadDim));
      MNK_TRY(auto keyChannelScales, readChannels(file, device, header.hasKeyChannelScales, d.kvHeads, d.headDim));
      d.quantized->keyMeans = keyMeans;
      d.quantized->valueMeans = valueMeans;
      d.quantized->keyChannelScales = keyChannelScales;
    }
    d = resized(d, capacity);
    MNK_TRY(checkRules(d));
    const CacheSlots slots = header.slots();
    std::vector<CacheCursor> moved;
    for (const CacheCursor& cursor : cursors) {
      const auto next = slots.moved(cursor, saved);
      if (!next) return unfitCapacity(saved, cursor, moved.size(), capacity);
      moved.push_back(*next);
    }
    MNK_TRY(auto cache, make(device, d));
    const auto load = [&](const Run& run) -> Result<void> {
      MNK_TRY(file.read(run.bytes));
      return run.offset ? run.buffer.write(*run.offset, run.bytes) : Result<void>();
    };
    MNK_TRY(forEachRun(cache.state_->storage, saved, slots, cursors, d.kvHeads, load));

    std::array<std::byte, kChecksumBytes> stored;
    MNK_TRY(opened.read(stored));
    if (stored != encodeChecksum(file.sum())) {
      return cacheFileError("the file is damaged", "a checksum that its contents do not have",
                            fmt::format("{:08x}", file.sum()), "Save the cache again, or copy the file again.");
    }
    cache.state_->cursors.restore(std::move(moved));
    return cache;
  });
}

}  // namespace mnk
