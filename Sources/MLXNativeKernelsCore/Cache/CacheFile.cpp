// AttentionCache::save and load. CacheFile.hpp says what lies where.
#include "Cache/CacheFile.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/mnk_version.h"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Bytes.hpp"
#include "Support/Crc32.hpp"
#include "Support/Errors.hpp"
#include "Support/File.hpp"

namespace mnk {

namespace {

constexpr std::string_view kMagic = "MNKCACHE";
constexpr uint16_t kVersion = 4, kMixedVersion = 5, kLatentVersion = 6;
constexpr uint16_t kPackageVersion = MNK_VERSION_MAJOR << 8 | MNK_VERSION_MINOR;
constexpr size_t kPackageVersionOffset = 10, kFieldsOffset = 12, kWindowOffset = 84;

// Files contain the values of these enums, so the values must not change. Elements are stored as in memory.
static_assert(uint32_t(DType::f32) == 0 && uint32_t(DType::f16) == 1 && uint32_t(DType::bf16) == 2 &&
              uint32_t(DType::u8) == 3);
static_assert(uint32_t(KVWrap::linear) == 0 && uint32_t(KVWrap::ring) == 1);
static_assert(uint32_t(KVCodec::Name::turbo) == 0 && uint32_t(KVCodec::Name::mlx1) == 1 &&
              uint32_t(KVCodec::Name::mlx1Unrotated) == 2 && uint32_t(KVCodec::Name::mlx1Affine4) == 3);
static_assert(uint32_t(KVQuantizedPlanes::both) == 0 && uint32_t(KVQuantizedPlanes::keys) == 1 &&
              uint32_t(KVQuantizedPlanes::values) == 2);
static_assert(uint32_t(KVScaleRule::unbiased) == 0 && uint32_t(KVScaleRule::leastSquares) == 1);
static_assert(std::endian::native == std::endian::little);

enum : uint32_t { kKeyMeans = 1, kValueMeans = 2, kKeyChannelScales = 4, kAllChannels = 7 };

template <typename Number>
void put(std::span<std::byte> bytes, size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}
template <typename Number>
Number get(std::span<const std::byte> bytes, size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

Error impossible(std::string got, std::string expected) {
  return cacheFileError("the file describes a cache that cannot be", std::move(got), std::move(expected),
                        "Save the cache again; this file is damaged or was not written by this library.");
}

// Reads fields one after another and remembers the first that is out of range.
class FieldReader {
 public:
  FieldReader(std::span<const std::byte> bytes, size_t offset) : bytes_(bytes), offset_(offset) {}

  template <typename Number = uint32_t>
  Number next() {
    const auto number = get<Number>(bytes_, offset_);
    offset_ += sizeof number;
    return number;
  }
  template <typename Enum>
  Enum choice(std::string_view name, Enum last) {
    const auto number = next();
    if (number > static_cast<uint32_t>(last)) refuse(name, number, static_cast<uint32_t>(last));
    return static_cast<Enum>(number);
  }
  uint32_t upTo(std::string_view name, uint32_t last) {
    const auto number = next();
    if (number > last) refuse(name, number, last);
    return number;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  void refuse(std::string_view name, uint32_t got, uint32_t last) {
    if (error_) return;
    error_ = impossible(fmt::format("{} {}", name, got),
                        last == 0 ? std::string("0") : fmt::format("a number from 0 to {}", last));
  }

  std::span<const std::byte> bytes_;
  size_t offset_;
  std::optional<Error> error_;
};

Result<void> checkStart(std::span<const std::byte> start) {
  const size_t known = std::min(start.size(), kMagic.size());
  if (std::memcmp(start.data(), kMagic.data(), known) != 0) {
    return cacheFileError("the file is not one of a cache", "another beginning", fmt::format("\"{}\"", kMagic),
                          "Pass a file that AttentionCache saved.");
  }
  if (start.size() >= kFieldsOffset) {
    const auto version = get<uint16_t>(start, kMagic.size());
    const auto package = get<uint16_t>(start, kPackageVersionOffset);
    if (version < kVersion || version > kLatentVersion) {
      return cacheFileError(
          version < kVersion ? "the file has an old version" : "the file has an unknown version",
          fmt::format("version {}, saved by MLXNativeKernels {}.{}", version, package >> 8, package & 0xff),
          fmt::format("version {} to {} in MLXNativeKernels {}", kVersion, kLatentVersion, MNK_VERSION),
          "Load it with the version that saved it, or compute the cache again.");
    }
  }
  if (start.size() < CacheFileHeader::kBytes) {
    return truncatedFile(start.size(), CacheFileHeader::kBytes + kCursorBytes + kChecksumBytes);
  }
  return {};
}

}  // namespace

Error cacheFileError(std::string_view what, std::string got, std::string expected, std::string_view fix) {
  return {.op = "AttentionCache",
          .what = std::string(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::string(fix)};
}

Error truncatedFile(uint64_t got, uint64_t expected) {
  return cacheFileError("the file ends too early", countText(got, "byte"), countText(expected, "byte"),
                        "Save the cache again, or copy the whole file.");
}

SlidingWindow servedWindow(const AttentionCacheDescriptor& d) {
  const uint32_t window = d.slidingWindow->window;
  const uint64_t spare = uint64_t{d.capacity} + 1 - std::min<uint64_t>(d.capacity, uint64_t{d.pinned} + window);
  return {.window = window, .maxRows = static_cast<uint32_t>(spare), .maxDraft = static_cast<uint32_t>(spare)};
}

Result<CacheFileHeader> CacheFileHeader::decode(std::span<const std::byte> start) {
  MNK_TRY(checkStart(start));
  CacheFileHeader header;
  AttentionCacheDescriptor& d = header.descriptor;
  FieldReader fields(start, kFieldsOffset);
  for (uint32_t* extent : {&d.kvHeads, &d.headDim, &d.valueHeadDim, &d.capacity, &d.sequences}) *extent = fields.next();
  const auto version = get<uint16_t>(start, kMagic.size());
  if (version == kLatentVersion) d.latentDim = d.valueHeadDim;
  d.dtype = fields.choice("dtype", DType::u8);
  d.whenFull = fields.choice("wrap", KVWrap::ring);
  d.pinned = fields.next();
  const uint32_t stored = fields.upTo("storage", version == kVersion ? 1 : 3);
  const bool isMixed = version == kMixedVersion || stored > 1;
  const bool isQuantized = stored != 0;
  if (isQuantized) {
    KVQuantizedStorage& q = d.quantized.emplace();
    q.planes = static_cast<KVQuantizedPlanes>(stored - 1);
    q.codec = fields.choice("codec", KVCodec::Name::mlx1Affine4);
    q.keyBits = fields.next();
    q.valueBits = fields.next();
    q.scaleFactor = fields.next<float>();
    q.options.candidates = fields.next();
    q.options.keyScale = fields.choice("scale of keys", KVScaleRule::leastSquares);
    q.options.valueScale = fields.choice("scale of values", KVScaleRule::leastSquares);
    const uint32_t propagates = fields.upTo("rule for vectors that are not finite", 1);
    q.options.nonFinite = propagates != 0 ? KVNonFinite::propagate : KVNonFinite::zero;
    const uint32_t channels = fields.upTo("set of means", q.codec == KVCodec::Name::turbo ? kAllChannels : 0);
    header.hasKeyMeans = channels & kKeyMeans;
    header.hasValueMeans = channels & kValueMeans;
    header.hasKeyChannelScales = channels & kKeyChannelScales;
  } else {
    for (size_t offset = 48; offset < kWindowOffset; offset += 4) fields.upTo("field of quantized storage", 0);
  }
  if (const uint32_t window = fields.next(); window != 0) {
    d.slidingWindow = {.window = window};
    d.slidingWindow = servedWindow(d);
    if (d.whenFull != KVWrap::ring) return impossible("a sliding window in a linear cache", "a ring");
  }
  if (fields.error()) return *fields.error();
  // Any cache that can be made can be loaded.
  d.isStorageOnly = !hasAttentionKernel(d.headDim, d.valueHeadDim, isQuantized, d.latentDim != 0);
  // A valid cache has both head dims, and the dtype is u8 only if keys and values are quantized.
  if (d.valueHeadDim == 0) return impossible("valueHeadDim 0", "at least 1");
  if (isMixed && stored < 2)
    return impossible(fmt::format("storage {} in version {}", stored, kMixedVersion), "2 or 3");
  if ((stored == 1) != (d.dtype == DType::u8)) {
    return impossible(fmt::format("dtype {} in {} storage", name(d.dtype),
                                  isMixed       ? "mixed"
                                  : isQuantized ? "quantized"
                                                : "dense"),
                      "u8 in quantized storage, a float in dense or mixed storage");
  }
  if (isMixed) {
    const bool hasQuantizedKeys = d.quantized->hasQuantizedKeys();
    const uint32_t bits = hasQuantizedKeys ? d.quantized->valueBits : d.quantized->keyBits;
    if (bits != 0) return impossible(fmt::format("{} bits of a dense plane", bits), "0");
    if (hasQuantizedKeys ? header.hasValueMeans : header.hasKeyMeans || header.hasKeyChannelScales) {
      return impossible("means or channel scales of a dense plane", "those of a quantized plane");
    }
  }
  if (auto checked = checkRules(d); !checked) {
    const Error& broken = checked.error();
    return impossible(fmt::format("{}: {}", broken.what, broken.got), broken.expected);
  }
  return header;
}

CacheFileHeader::Bytes CacheFileHeader::encode() const {
  const AttentionCacheDescriptor& d = descriptor;
  Bytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  const bool isMixed = d.quantized && d.quantized->planes != KVQuantizedPlanes::both;
  put(bytes, kMagic.size(), d.latentDim != 0 ? kLatentVersion : isMixed ? kMixedVersion : kVersion);
  put(bytes, kPackageVersionOffset, kPackageVersion);
  size_t offset = kFieldsOffset;
  const auto add = [&](auto number) {
    static_assert(sizeof number == 4);
    put(bytes, offset, number);
    offset += sizeof number;
  };
  for (const uint32_t field : {d.kvHeads, d.headDim, d.valueHeadDim, d.capacity, d.sequences}) add(field);
  add(d.dtype);
  add(d.whenFull);
  add(d.pinned);
  add(d.quantized ? static_cast<uint32_t>(d.quantized->planes) + 1 : 0u);
  if (d.slidingWindow) put(bytes, kWindowOffset, d.slidingWindow->window);
  if (!d.quantized) return bytes;
  const KVQuantizedStorage& q = *d.quantized;
  add(q.codec);
  add(q.keyBits);
  add(q.valueBits);
  add(q.scaleFactor);
  add(q.options.candidates);
  add(q.options.keyScale);
  add(q.options.valueScale);
  add(q.options.nonFinite == KVNonFinite::propagate ? 1u : 0u);
  add((hasKeyMeans ? kKeyMeans : 0u) | (hasValueMeans ? kValueMeans : 0u) |
      (hasKeyChannelScales ? kKeyChannelScales : 0u));
  return bytes;
}

std::optional<uint64_t> CacheFileHeader::cacheBytes() const {
  const AttentionCacheDescriptor& d = descriptor;
  std::optional<uint64_t> bytes = 0;
  for (const uint64_t ofPlane : slotBytes(d)) bytes = *bytes + ofPlane;  // each is below 2^34
  for (const uint64_t extent : {d.kvHeads, d.capacity, d.sequences}) {
    if (bytes) bytes = checkedMultiply(*bytes, extent);
  }
  return bytes;
}

std::optional<uint64_t> CacheFileHeader::fileBytes(std::span<const CacheCursor> cursors) const {
  const AttentionCacheDescriptor& d = descriptor;
  // If the size of all slots does not overflow, neither does that of the used ones.
  if (!cacheBytes()) return std::nullopt;
  uint64_t slotsBytes = 0;
  for (const uint64_t ofPlane : slotBytes(d)) slotsBytes += ofPlane * d.kvHeads;
  uint64_t used = 0;
  for (const CacheCursor& cursor : cursors) used += slots().used(cursor);
  return checkedAdd(used * slotsBytes, kBytes + besideBytes() + kChecksumBytes);
}

uint64_t CacheFileHeader::besideBytes() const {
  const AttentionCacheDescriptor& d = descriptor;  // the codec bounds head dims, so that nothing wraps
  const uint64_t channels = (uint64_t{hasKeyMeans} + hasKeyChannelScales) * d.headDim + hasValueMeans * d.valueHeadDim;
  return d.sequences * uint64_t{kCursorBytes} + channels * d.kvHeads * byteSize(DType::f32);
}

std::array<std::byte, kCursorBytes> encode(const CacheCursor& cursor) {
  std::array<std::byte, kCursorBytes> bytes;
  put(bytes, 0, cursor.next);
  put(bytes, 8, cursor.highest);
  return bytes;
}

CacheCursor decodeCursor(std::span<const std::byte, kCursorBytes> bytes) {
  return {.next = get<uint64_t>(bytes, 0), .highest = get<uint64_t>(bytes, 8)};
}

std::array<std::byte, kChecksumBytes> encodeChecksum(uint32_t sum) {
  std::array<std::byte, kChecksumBytes> bytes;
  put(bytes, 0, sum);
  return bytes;
}

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
