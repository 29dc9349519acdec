#include "Cache/CacheFileFormat.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/mnk_version.h"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

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

}  // namespace mnk
