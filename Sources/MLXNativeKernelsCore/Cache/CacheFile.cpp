// AttentionCache::save and load. CacheFileFormat.hpp says what lies where.
#include <algorithm>
#include <vector>

#include "Cache/AttentionCacheState.hpp"
#include "Cache/CacheFileFormat.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Crc32.hpp"
#include "Support/FileReplacement.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"

namespace mnk {

namespace {

constexpr std::string_view kOp = "AttentionCache";
// For what is read besides keys and values, however little these may take.
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
    if (auto read = file_.read(into); !read) return read;
    sum_.add(into);
    return {};
  }
  uint32_t sum() const { return sum_.value(); }

 private:
  FileReader& file_;
  Crc32 sum_;
};

// Bytes of a plane that lie together in memory and in the file.
struct Run {
  Buffer& buffer;
  uint64_t offset;
  bool isHeld;                 // or the slots hold nothing that can be read
  std::span<std::byte> bytes;  // as many; the body fills them or finds them filled
};

// The slots of a sequence that a file holds, and which of them hold positions that can be read.
struct FileSlots {
  SlotRun slots;
  bool isHeld;
};
std::vector<FileSlots> fileSlots(const CacheSlots& slots, const CacheCursor& cursor) {
  std::vector<FileSlots> all;
  uint64_t end = 0;
  const auto addUpTo = [&](uint64_t to, bool isHeld) {
    if (to > end) all.push_back({{end, to - end}, isHeld});
    end = std::max(end, to);
  };
  for (const SlotRun& held : slots.heldSlots(cursor)) {
    if (held.count == 0) continue;
    addUpTo(held.begin, false);
    addUpTo(held.begin + held.count, true);
  }
  addUpTo(slots.used(cursor), false);
  return all;
}

// Every slot that a file holds, in its order and a piece at a time.
template <typename Body>
Result<void> forEachRun(const CacheStorage& storage, const CacheSlots& slots, std::span<const CacheCursor> cursors,
                        uint64_t heads, Body body) {
  std::vector<std::byte> piece(1 << 18);
  for (size_t sequence = 0; sequence < cursors.size(); ++sequence) {
    const std::vector<FileSlots> parts = fileSlots(slots, cursors[sequence]);
    for (uint64_t head = 0; !parts.empty() && head < heads; ++head) {
      for (const std::optional<Tensor>& plane : storage.planes()) {
        if (!plane) continue;
        const uint64_t slotBytes = plane->byteCount() / cursors.size() / heads / slots.capacity;
        const uint64_t headOffset = plane->byteOffset() + (sequence * heads + head) * slots.capacity * slotBytes;
        for (const FileSlots& part : parts) {
          uint64_t offset = headOffset + part.slots.begin * slotBytes;
          for (uint64_t left = part.slots.count * slotBytes; left != 0;) {
            const uint64_t count = std::min<uint64_t>(left, piece.size());
            const Run run{*plane->buffer(), offset, part.isHeld, std::span(piece).first(count)};
            if (auto done = body(run); !done) return done;
            offset += count;
            left -= count;
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
  if (auto read = file.read(bytes); !read) return std::move(read).error();
  auto shape = Shape::make({heads, headDim});
  if (!shape) return std::move(shape).error();
  auto tensor = Tensor::zeros(device, DType::f32, *shape);
  if (!tensor) return std::move(tensor).error();
  if (auto written = tensor->write(bytes); !written) return std::move(written).error();
  return std::optional<Tensor>(std::move(*tensor));
}

Result<CacheFileHeader> readHeader(SummingReader& file, uint64_t length, uint64_t maxBytes) {
  CacheFileHeader::Bytes bytes;
  const auto start = std::span(bytes).first(std::min<uint64_t>(length, bytes.size()));
  if (auto read = file.read(start); !read) return std::move(read).error();
  auto header = CacheFileHeader::decode(start);
  if (!header) return header;
  const auto cacheBytes = header->cacheBytes();
  const uint64_t besideBytes = header->besideBytes();
  const uint64_t mostBeside = std::max(maxBytes, kAlwaysAllowed);
  if (!cacheBytes || *cacheBytes > maxBytes || besideBytes > mostBeside) {
    const bool isBeside = cacheBytes && *cacheBytes <= maxBytes;
    const uint64_t bytes = isBeside ? besideBytes : cacheBytes.value_or(0);
    return cacheFileError("the cache of the file is larger than allowed",
                          cacheBytes ? countText(bytes, "byte") : "more bytes than 64-bit sizes can count",
                          fmt::format("at most {}", countText(isBeside ? mostBeside : maxBytes, "byte")),
                          "Allow more, where the file is to be trusted and there is memory.");
  }
  return header;
}

// Where the sequences stand, after which the length of the file is known to be right.
Result<std::vector<CacheCursor>> readCursors(SummingReader& file, uint64_t length, const CacheFileHeader& header) {
  const uint64_t sequences = header.descriptor.sequences;
  const uint64_t least = CacheFileHeader::kBytes + sequences * kCursorBytes + kChecksumBytes;
  if (length < least) return truncatedFile(length, least);
  std::vector<CacheCursor> cursors(sequences);
  for (CacheCursor& cursor : cursors) {
    std::array<std::byte, kCursorBytes> bytes;
    if (auto read = file.read(bytes); !read) return std::move(read).error();
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

}  // namespace

Result<void> AttentionCache::save(const std::string& path) const {
  return guarded(kOp, [&]() -> Result<void> {
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

    auto replacement = FileReplacement::make(kOp, path);
    if (!replacement) return std::move(replacement).error();
    SummingWriter file(*replacement);
    if (auto written = file.write(header.encode()); !written) return written;
    for (const CacheCursor& cursor : cursors) {
      if (auto written = file.write(encode(cursor)); !written) return written;
    }
    for (const Tensor& tensor : channels) {
      std::vector<std::byte> bytes(tensor.byteCount());
      if (auto read = tensor.read(bytes); !read) return read;
      if (auto written = file.write(bytes); !written) return written;
    }
    auto copied = forEachRun(state_->storage, header.slots(), cursors, d.kvHeads, [&](const Run& run) -> Result<void> {
      // Tokens that were taken back are of no use to a reader, and work that was to write them may have failed.
      if (!run.isHeld) {
        std::fill(run.bytes.begin(), run.bytes.end(), std::byte{0});
      } else if (auto read = run.buffer.read(run.offset, run.bytes); !read) {
        return read;
      }
      return file.write(run.bytes);
    });
    if (!copied) return copied;
    if (auto written = replacement->write(encodeChecksum(file.sum())); !written) return written;
    if (state_->cursors.all() != cursors) {
      return Error{.op = std::string(kOp),
                   .what = "the cache was changed while it was saved",
                   .got = "a sequence that moved on",
                   .expected = "a cache that nobody appends to, truncates or resets meanwhile",
                   .fix = "Save between steps, when submitted work is done.",
                   .retryable = true};
    }
    return replacement->commit();
  });
}

Result<AttentionCache> AttentionCache::load(const std::shared_ptr<Device>& device, const std::string& path,
                                            uint64_t maxBytes) {
  return guarded(kOp, [&]() -> Result<AttentionCache> {
    auto opened = FileReader::open(kOp, path);
    if (!opened) return std::move(opened).error();
    SummingReader file(*opened);
    auto header = readHeader(file, opened->length(), maxBytes);
    if (!header) return std::move(header).error();
    auto cursors = readCursors(file, opened->length(), *header);
    if (!cursors) return std::move(cursors).error();

    AttentionCacheDescriptor& d = header->descriptor;
    if (d.quantized) {
      auto keyMeans = readChannels(file, device, header->hasKeyMeans, d.kvHeads, d.headDim);
      if (!keyMeans) return std::move(keyMeans).error();
      auto valueMeans = readChannels(file, device, header->hasValueMeans, d.kvHeads, d.valueHeadDim);
      if (!valueMeans) return std::move(valueMeans).error();
      auto keyChannelScales = readChannels(file, device, header->hasKeyChannelScales, d.kvHeads, d.headDim);
      if (!keyChannelScales) return std::move(keyChannelScales).error();
      d.quantized->keyMeans = *keyMeans;
      d.quantized->valueMeans = *valueMeans;
      d.quantized->keyChannelScales = *keyChannelScales;
    }
    auto cache = make(device, d);
    if (!cache) return cache;
    auto copied =
        forEachRun(cache->state_->storage, header->slots(), *cursors, d.kvHeads, [&](const Run& run) -> Result<void> {
          if (auto read = file.read(run.bytes); !read) return read;
          return run.buffer.write(run.offset, run.bytes);
        });
    if (!copied) return std::move(copied).error();

    std::array<std::byte, kChecksumBytes> stored;
    if (auto read = opened->read(stored); !read) return std::move(read).error();
    if (stored != encodeChecksum(file.sum())) {
      return cacheFileError("the file is damaged", "a checksum that its contents do not have",
                            fmt::format("{:08x}", file.sum()), "Save the cache again, or copy the file again.");
    }
    cache->state_->cursors.restore(std::move(*cursors));
    return cache;
  });
}

}  // namespace mnk
