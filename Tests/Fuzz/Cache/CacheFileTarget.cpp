
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "CacheNumbers.hpp"
#include "Target.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;

constexpr std::string_view kNoFile = "there is no such file";
constexpr std::string_view kNotPlain = "the path does not lead to a plain file";
constexpr std::string_view kNotACache = "the file is not one of a cache";
constexpr std::string_view kOldVersion = "the file has an old version";
constexpr std::string_view kVersion = "the file has an unknown version";
constexpr std::string_view kShort = "the file ends too early";
constexpr std::string_view kLong = "the file is too long";
constexpr std::string_view kCannotBe = "the file describes a cache that cannot be";
constexpr std::string_view kSequenceCannotBe = "the file describes a sequence that cannot be";
constexpr std::string_view kTooLarge = "the cache of the file is larger than allowed";
constexpr std::string_view kDamaged = "the file is damaged";

constexpr size_t kHeader = 88;
using Bytes = std::vector<uint8_t>;

template <typename Number>
Number at(const Bytes& file, size_t offset) {
  Number number;
  std::memcpy(&number, &file[offset], sizeof number);
  return number;
}
template <typename Number>
void put(Bytes& file, size_t offset, Number number) {
  std::memcpy(&file[offset], &number, sizeof number);
}

// Bit by bit, as the polynomial is defined.
uint32_t checksum(const Bytes& file, size_t length) {
  uint32_t remainder = ~0u;
  for (size_t i = 0; i < length; ++i) {
    remainder ^= file[i];
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0xEDB88320 : 0);
  }
  return ~remainder;
}
void seal(Bytes& file) {
  if (file.size() >= 4) put(file, file.size() - 4, checksum(file, file.size() - 4));
}

// The fields of a header that is whole.
CacheNumbers numbersOf(const Bytes& file) {
  const auto number = [&](size_t offset) { return at<uint32_t>(file, offset); };
  const uint32_t stored = number(44), channels = number(80), dense = stored == 2 ? 2 : stored == 3 ? 5 : 0;
  return {{.kv_heads = number(12),
           .head_dim = number(16),
           .value_head_dim = number(20),
           .capacity = number(24),
           .sequences = number(28),
           .dtype = test::number<mnk_dtype>(number(32)),
           .when_full = number(36) == 1 ? MNK_KV_WRAP_RING : MNK_KV_WRAP_LINEAR,
           .pinned = number(40),
           .has_quantized = stored != 0,
           .quantized = {.codec = test::number<mnk_kv_codec_name>(number(48)),
                         .key_bits = number(52),
                         .value_bits = number(56),
                         .scale_factor = at<float>(file, 60),
                         .options = {.candidates = number(64)},
                         .planes = test::number<mnk_kv_quantized_planes>(stored > 1 ? stored - 1 : 0)},
           .sliding_window = {.window = number(84), .max_rows = 1},
           .is_storage_only = true},
          channels != 0,
          (channels & dense) != 0};
}

struct Cursor {
  uint64_t next, highest;
};

bool canReach(const CacheNumbers& cache, const Cursor& cursor) {
  if (cursor.highest > uint64_t{1} << 62) return false;
  if (cursor.next > cursor.highest || (!cache.isRing() && cursor.highest > cache.capacity)) return false;
  if (cursor.next <= cache.pinned) return cursor.next == cursor.highest;
  return cursor.highest <= cache.capacity || cursor.highest - cursor.next <= cache.capacity - cache.pinned;
}

// The floats of one set of means or channel scales, and whether they are divided by.
uint64_t channelFloats(const CacheNumbers& cache, uint32_t bit) {
  return uint64_t{cache.kv_heads} * (bit == 2 ? cache.value_head_dim : cache.head_dim);
}

// What CacheFile.hpp and AttentionCache::load promise, of any bytes: what the error must say, or nothing.
std::string_view refusalOf(const Bytes& file, uint64_t maxBytes) {
  if (std::memcmp(file.data(), "MNKCACHE", std::min<size_t>(file.size(), 8)) != 0) return kNotACache;
  if (file.size() >= 12 && at<uint16_t>(file, 8) < 4) return kOldVersion;
  if (file.size() >= 12 && at<uint16_t>(file, 8) > 6) return kVersion;
  if (file.size() < kHeader) return kShort;
  const CacheNumbers cache = numbersOf(file);
  const uint32_t version = at<uint16_t>(file, 8), stored = at<uint32_t>(file, 44);
  if (version == 6 ? stored > 3 : stored / 2 != version - 4) return kCannotBe;  // 6: latent, of any storage
  if (cache.dtype > 3 || at<uint32_t>(file, 36) > 1) return kCannotBe;
  if ((stored == 1) != (cache.dtype == 3) || cache.value_head_dim == 0) return kCannotBe;
  if ((stored == 2 && cache.quantized.value_bits != 0) || (stored == 3 && cache.quantized.key_bits != 0))
    return kCannotBe;
  for (size_t offset = 48; !cache.has_quantized && offset < 84; offset += 4) {
    if (at<uint32_t>(file, offset) != 0) return kCannotBe;
  }
  if (cache.window() != 0 && !cache.isRing()) return kCannotBe;
  const auto channels = at<uint32_t>(file, 80);
  if (cache.has_quantized && (cache.quantized.codec > 3 || channels > 7)) return kCannotBe;
  for (const size_t offset : {68, 72, 76}) {
    if (at<uint32_t>(file, offset) > 1) return kCannotBe;
  }
  if (!cache.refusal().empty()) return kCannotBe;
  uint64_t beside = uint64_t{cache.sequences} * 16;
  for (const uint32_t bit : {1, 2, 4}) beside += channels & bit ? channelFloats(cache, bit) * 4 : 0;
  if (cache.bytes() > maxBytes || beside > std::max<uint64_t>(maxBytes, 1 << 20)) return kTooLarge;

  if (file.size() < kHeader + uint64_t{cache.sequences} * 16 + 4) return kShort;
  uint64_t length = kHeader + beside + 4;
  for (uint64_t sequence = 0; sequence < cache.sequences; ++sequence) {
    const auto cursor = at<Cursor>(file, kHeader + sequence * 16);
    if (!canReach(cache, cursor)) return kSequenceCannotBe;
    length += std::min<uint64_t>(cursor.highest, cache.capacity) * cache.kv_heads * cache.slotBytes();
  }
  if (file.size() != length) return file.size() < length ? kShort : kLong;
  size_t offset = kHeader + uint64_t{cache.sequences} * 16;
  for (const uint32_t bit : {1, 2, 4}) {
    for (uint64_t i = 0; channels & bit && i < channelFloats(cache, bit); ++i, offset += 4) {
      const auto number = at<float>(file, offset);
      if (bit == 4 ? !std::isnormal(number) : !std::isfinite(number)) return kUnusable;
    }
  }
  return at<uint32_t>(file, file.size() - 4) == checksum(file, file.size() - 4) ? std::string_view() : kDamaged;
}

// A folder for all cases, which goes when the fuzzer does.
std::string newPath() {
  static const auto folder = host::TemporaryDirectory::make();
  static std::atomic<uint64_t> count = 0;
  if (!folder) throw std::runtime_error("no folder for files");
  return (folder->path() / std::to_string(count++)).string();
}

void writeFile(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.good()) throw std::runtime_error("a file could not be written");
}

Bytes readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Bytes validFile(Seeded& random) {
  const auto below = [&](uint64_t end) { return static_cast<uint32_t>(random.below(end)); };
  Bytes file(kHeader);
  std::memcpy(file.data(), "MNKCACHE", 8);
  const bool isQuantized = coin(random, 2, 3), isTurbo = coin(random, 2, 3), isRing = coin(random, 2, 3);
  const uint32_t capacity = 1 + below(5), sequences = 1 + below(3);
  uint32_t headDim = 1 + below(8), valueHeadDim = 1 + below(8), keyBits = 0, valueBits = 0, codec = 0;
  if (isQuantized) {
    headDim = valueHeadDim =
        isTurbo ? oneOf<uint32_t>(random, {32, 64, 80, 96, 128}) : oneOf<uint32_t>(random, {4, 64, 512});
    if (isTurbo && coin(random, 1, 3)) valueHeadDim = 32;
    keyBits = isTurbo ? 2 + below(7) : headDim == 512 ? oneOf<uint32_t>(random, {4, 5, 6, 8}) : 4;
    valueBits = isTurbo ? 2 + below(7) : 4;
    codec = !isTurbo;
    if (headDim == 512 && coin(random, 1, 2)) codec = keyBits == 4 ? 3 : 2;
    if (codec == 2) valueBits = 8;
  }
  const uint32_t pinned = isRing ? below(capacity) : 0;
  const uint32_t stored = !isQuantized ? 0 : coin(random, 1, 2) ? 1 : 2 + below(2);
  if (stored == 3) keyBits = 0;
  if (stored == 2) valueBits = 0;
  const uint32_t plain[] = {stored > 1 ? 5u : 4u,       1 + below(3), headDim, valueHeadDim, capacity, sequences,
                            stored == 1 ? 3 : below(3), isRing,       pinned,  stored};
  for (size_t i = 0; i < std::size(plain); ++i) put(file, 8 + 4 * i, plain[i]);
  put(file, 10, static_cast<uint16_t>(below(1 << 16)));  // any version of the package may have saved it
  if (isQuantized) {
    const bool mayScale = (codec == 1 || codec == 2) && headDim == 512;
    put(file, 48, codec);
    put(file, 52, keyBits);
    put(file, 56, valueBits);
    put(file, 60, mayScale && coin(random, 1, 2) ? 0.75f : 1.0f);
    put(file, 64, oneOf<uint32_t>(random, {1, 5, 17}));
    for (const size_t offset : {68, 72, 76}) put(file, offset, below(2));
    const uint32_t channels = isTurbo && coin(random, 1, 2) ? below(8) : 0;
    put(file, 80, channels & (stored == 2 ? 5u : stored == 3 ? 2u : 7u));
  }
  if (isRing && coin(random, 1, 3)) put(file, 84, 1 + below(capacity - pinned));
  const CacheNumbers cache = numbersOf(file);
  uint64_t payload = 0;
  for (uint32_t sequence = 0; sequence < sequences; ++sequence) {
    Cursor cursor{};
    cursor.highest = below(isRing ? 3 * capacity : capacity + 1);
    if (isRing && coin(random, 1, 8)) cursor.highest += random.next() >> oneOf(random, {1, 20, 40});
    cursor.next = cursor.highest - below(capacity - pinned + 1);
    if (!canReach(cache, cursor)) cursor.next = cursor.highest;
    file.resize(file.size() + sizeof cursor);
    put(file, file.size() - sizeof cursor, cursor);
    payload += std::min<uint64_t>(cursor.highest, capacity) * cache.kv_heads * cache.slotBytes();
  }
  for (const uint32_t bit : {1, 2, 4}) {
    for (uint64_t i = 0; at<uint32_t>(file, 80) & bit && i < channelFloats(cache, bit); ++i) {
      file.resize(file.size() + 4);
      put(file, file.size() - 4, static_cast<float>(1 + below(9)) / 4);
    }
  }
  for (uint64_t i = 0; i < payload; ++i) file.push_back(static_cast<uint8_t>(random.next()));
  file.resize(file.size() + 4);
  seal(file);
  return file;
}

void mutate(Bytes& file, Seeded& random) {
  const bool reseals = coin(random, 3, 4);
  switch (random.below(7)) {
    case 0:  // a field of the header
    case 1: {
      const size_t offset = 4 * random.below(kHeader / 4);
      const auto old = at<uint32_t>(file, offset);
      put(file, offset, static_cast<uint32_t>(coin(random, 1, 2) ? random.below(10) : edge(random, {old})));
      break;
    }
    case 2: {  // a position
      const size_t offset = kHeader + 8 * random.below(2 * at<uint32_t>(file, 28));
      put(file, offset, edge(random, {at<uint64_t>(file, offset), at<uint32_t>(file, 24)}));
      break;
    }
    case 3:  // bytes anywhere
      for (uint64_t count = 1 + random.below(3); count != 0; --count) {
        file[random.below(file.size())] ^= static_cast<uint8_t>(1 + random.below(255));
      }
      break;
    case 4: {  // a number among means, or of what follows
      const size_t begin = kHeader + 16 * at<uint32_t>(file, 28);
      const size_t offset = begin + 4 * random.below((file.size() - begin) / 4);
      put(file, offset, oneOf<uint32_t>(random, {0, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x80000000}));
      break;
    }
    case 5:
      file.resize(random.below(coin(random, 1, 2) ? file.size() : 100));
      break;
    default:
      file.resize(file.size() + 1 + random.below(40), static_cast<uint8_t>(random.next()));
  }
  if (reseals) seal(file);
}

class CacheFileCase final : public Case {
 public:
  explicit CacheFileCase(Seeded& random) : path_(newPath()), file_(validFile(random)) {
    if (coin(random, 1, 2)) mutate(file_, random);
    if (coin(random, 1, 40)) {
      for (uint8_t& byte : file_) byte = static_cast<uint8_t>(random.next());
    }
    if (coin(random, 1, 60)) place_ = oneOf(random, {Place::none, Place::folder});
    const bool hasHeader = file_.size() >= kHeader;
    const auto bytes = hasHeader ? std::min<unsigned __int128>(numbersOf(file_).bytes(), kMost) : 0;
    maxBytes_ = coin(random, 7, 8) ? kMost : static_cast<uint64_t>(bytes) - random.below(2);
  }
  ~CacheFileCase() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_ + ".again", ignored);
  }

  std::string text() const override {
    if (place_ != Place::file) return place_ == Place::none ? "no file" : "a folder";
    std::string header;
    for (size_t offset = 8; offset + 4 <= std::min(file_.size(), kHeader); offset += 4) {
      header += fmt::format(" {}", at<uint32_t>(file_, offset));
    }
    return fmt::format("a file of {} bytes, at most {}:{}", file_.size(), maxBytes_, header);
  }

  Verdict run(Arena& arena) override {
    if (place_ == Place::file) writeFile(path_, file_);
    if (place_ == Place::folder) std::filesystem::create_directory(path_);
    test::Caught caught;
    const Owned<mnk_cache> cache(mnk_cache_make_from_path(arena.device(0), path_.c_str(), maxBytes_, 0, caught.out()),
                                 mnk_cache_release);
    const std::string_view expected = place_ == Place::none     ? kNoFile
                                      : place_ == Place::folder ? kNotPlain
                                                                : refusalOf(file_, maxBytes_);
    Verdict verdict = checkResult(caught, bool(cache), expected);
    if (!cache || !verdict.failure.empty()) return verdict;
    const CacheNumbers numbers = numbersOf(file_);
    if (mnk_cache_byte_count(cache.get()) != numbers.bytes()) verdict.failure = "the cache has another size";
    for (uint32_t sequence = 0; sequence < numbers.sequences; ++sequence) {
      const auto cursor = at<Cursor>(file_, kHeader + sequence * 16);
      mnk_sequence_state state{};
      const bool isThere = mnk_cache_get_sequence(cache.get(), sequence, &state, nullptr);
      if (isThere && state.next_position == cursor.next) continue;
      verdict.failure = fmt::format("sequence {} is not at position {}", sequence, cursor.next);
    }
    // Nothing was lost and nothing was added: the cache makes the same file, with zeros in slots that cannot be read.
    const std::string again = path_ + ".again";
    if (!mnk_cache_save(cache.get(), again.c_str(), caught.out())) {
      verdict.failure = mnk_error_message(caught.get());
      return verdict;
    }
    const Bytes saved = readFile(again);
    const size_t beforeSlots = kHeader + numbers.sequences * 16, checksum = 4;
    bool isSame = saved.size() == file_.size();
    for (size_t i = 0; isSame && i + checksum < saved.size(); ++i) {
      const bool isPackageVersion = i == 10 || i == 11;
      isSame = saved[i] == file_[i] || isPackageVersion || (i >= beforeSlots && saved[i] == 0);
    }
    if (!isSame) verdict.failure = "what was loaded is saved as another file";
    const Owned<mnk_cache> loaded(mnk_cache_make_from_path(arena.device(0), again.c_str(), kMost, 0, caught.out()),
                                  mnk_cache_release);
    if (!loaded || !mnk_cache_save(loaded.get(), again.c_str(), caught.out()) || readFile(again) != saved) {
      verdict.failure = "what was saved is not loaded and saved alike";
    }
    return verdict;
  }

 private:
  static constexpr uint64_t kMost = 1 << 20;
  enum class Place : uint8_t { file, none, folder };

  std::string path_;
  Bytes file_;
  uint64_t maxBytes_ = kMost;
  Place place_ = Place::file;
};

std::unique_ptr<Case> makeCase(Arena&, Seeded& random) {
  return std::make_unique<CacheFileCase>(random);
}

}  // namespace

Target cacheFileTarget() {
  return {.name = "CacheFile",
          .share = 121,
          .refusals = {kNoFile, kNotPlain, kNotACache, kVersion, kShort, kLong, kCannotBe, kSequenceCannotBe, kTooLarge,
                       kUnusable, kDamaged},
          .make = makeCase};
}

}  // namespace mnk::fuzz
