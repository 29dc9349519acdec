
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <stdexcept>

#include "Target.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;

// Addresses without memory: a page appears where something is written, and reads as 0 elsewhere.
class SparseMemory {
 public:
  static constexpr uint64_t kBytes = uint64_t{1} << 34;

  SparseMemory() : memory_(map(nullptr, 0)) {}
  ~SparseMemory() { munmap(memory_, kBytes); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  std::byte* data() { return static_cast<std::byte*>(memory_); }

  // Every byte that is not 0. Forgets them all.
  std::map<uint64_t, std::byte> take() {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#ifdef __linux__
    using State = unsigned char;
#else
    using State = char;
#endif
    std::vector<State> isThere(kBytes / page);
    if (mincore(memory_, kBytes, isThere.data()) != 0) throw std::runtime_error("mincore failed");
    std::map<uint64_t, std::byte> bytes;
    for (uint64_t index = 0; index < isThere.size(); ++index) {
      if (!(isThere[index] & 1)) continue;
      for (uint64_t at = index * page; at < (index + 1) * page; ++at) {
        if (data()[at] != std::byte{0}) bytes[at] = data()[at];
      }
    }
    // New pages in place of the old: MADV_DONTNEED clears none on Darwin.
    map(memory_, MAP_FIXED);
    return bytes;
  }

 private:
  static void* map(void* address, int flags) {
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* memory = mmap(address, kBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no addresses for a sparse region");
    return memory;
  }

  void* memory_;
};

SparseMemory& sparseMemory() {
  thread_local SparseMemory memory;
  return memory;
}

class FarWriteCase final : public Case {
 public:
  FarWriteCase(Arena&, Seeded& random)
      : heads_(1 + random.below(2)),
        headDim_(oneOf<uint64_t>(random, {1, 2, 3, 4})),
        sequences_(1 + random.below(2)),
        tokens_(1 + random.below(6)),
        isHeadMajor_(coin(random, 1, 2)),
        isRing_(coin(random, 2, 3)),
        hasRows_(coin(random, 1, 3)) {
    const uint64_t rowBytes = heads_ * headDim_ * sequences_;
    capacity_ = std::min((uint64_t{1} << 31) - 1 - random.below(3), SparseMemory::kBytes / rowBytes);
    if (isRing_ && coin(random, 1, 2)) pinned_ = coin(random, 1, 2) ? random.below(4) : capacity_ - 1 - random.below(4);
    sequence_ = random.below(sequences_);
    position_ = capacity_ - tokens_ - random.below(3);
    if (isRing_) position_ += random.below(3) * (capacity_ - pinned_) + random.below(6);
    for (uint64_t token = 0; token < tokens_; ++token) {
      rowSequences_.push_back(static_cast<uint32_t>(random.below(sequences_)));
      rowPositions_.push_back(static_cast<uint32_t>(isRing_ ? UINT32_MAX - token : capacity_ - 1 - token));
    }
    source_.resize(tokens_ * heads_ * headDim_);
    for (size_t byte = 0; byte < source_.size(); ++byte) source_[byte] = static_cast<uint8_t>(1 + byte % 255);
  }

  std::string text() const override {
    return fmt::format(
        "KVCacheWrite of {} tokens into u8, {} sequences, {} heads of {}, capacity {}, {}, {}, {} pinned; sequence {}, "
        "{}",
        tokens_, sequences_, heads_, headDim_, capacity_, isHeadMajor_ ? "head-major" : "token-major",
        isRing_ ? "ring" : "linear", pinned_, sequence_,
        hasRows_ ? "rows at the end" : fmt::format("position {}", position_));
  }

  Verdict run(Arena& arena) override {
    // A device that watches memory would copy all of the addresses.
    if (std::getenv("MNK_HOST_CHECKING")) return {};
    SparseMemory& memory = sparseMemory();
    mnk_device* device = arena.plainDevice();
    test::Caught caught;
    const uint64_t sourceShape[] = {tokens_, heads_, headDim_};
    const uint64_t cacheShape[] = {sequences_, isHeadMajor_ ? heads_ : capacity_, isHeadMajor_ ? capacity_ : heads_,
                                   headDim_};
    const Owned<mnk_tensor> keys(mnk_tensor_make_wrapping(device, source_.data(), source_.size(), MNK_U8, sourceShape,
                                                          3, 0, nullptr, nullptr, caught.out()),
                                 mnk_tensor_release);
    const Owned<mnk_tensor> cache(mnk_tensor_make_wrapping(device, memory.data(), SparseMemory::kBytes, MNK_U8,
                                                           cacheShape, 4, 0, nullptr, nullptr, caught.out()),
                                  mnk_tensor_release);
    if (!keys || !cache) return checkResult(caught, false, "");
    mnk_kv_cache_write write{};
    write.keys.tensor = keys.get();
    write.into.keys = cache.get();
    write.into.layout = isHeadMajor_ ? MNK_KV_LAYOUT_HEAD_MAJOR : MNK_KV_LAYOUT_TOKEN_MAJOR;
    write.into.wrap = isRing_ ? MNK_KV_WRAP_RING : MNK_KV_WRAP_LINEAR;
    write.into.pinned = static_cast<uint32_t>(pinned_);
    write.sequence = sequence_;
    write.position = position_;
    write.has_rows = hasRows_;
    if (hasRows_) {
      write.rows.sequences = {rowSequences_.data(), rowSequences_.size(), nullptr};
      write.rows.positions = {rowPositions_.data(), rowPositions_.size(), nullptr};
    }

    const Owned<mnk_encoder> encoder(mnk_encoder_make(device, "far", nullptr), mnk_encoder_release);
    if (!mnk_encoder_kv_cache_write(encoder.get(), &write, caught.out())) return checkResult(caught, false, "");
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, caught.out()),
                                     mnk_completion_release);
    if (!done || !mnk_completion_wait(done.get(), caught.out())) return checkResult(caught, false, "");
    Verdict verdict;
    const auto got = memory.take();
    const auto expected = written();
    if (got != expected) {
      verdict.failure = fmt::format("{} bytes were written, from {} on; expected {}, from {} on", got.size(),
                                    got.empty() ? 0 : got.begin()->first, expected.size(), expected.begin()->first);
    }
    return verdict;
  }

 private:
  std::map<uint64_t, std::byte> written() const {
    std::map<uint64_t, std::byte> bytes;
    for (uint64_t token = 0; token < tokens_; ++token) {
      const uint64_t sequence = hasRows_ ? rowSequences_[token] : sequence_;
      const uint64_t position = hasRows_ ? rowPositions_[token] : position_ + token;
      const uint64_t slot =
          !isRing_ || position < pinned_ ? position : pinned_ + (position - pinned_) % (capacity_ - pinned_);
      for (uint64_t head = 0; head < heads_; ++head) {
        const uint64_t row = isHeadMajor_ ? (sequence * heads_ + head) * capacity_ + slot
                                          : (sequence * capacity_ + slot) * heads_ + head;
        for (uint64_t element = 0; element < headDim_; ++element) {
          bytes[row * headDim_ + element] =
              static_cast<std::byte>(source_[(token * heads_ + head) * headDim_ + element]);
        }
      }
    }
    return bytes;
  }

  uint64_t heads_, headDim_, sequences_, tokens_, capacity_ = 0, pinned_ = 0, sequence_ = 0, position_ = 0;
  bool isHeadMajor_, isRing_, hasRows_;
  std::vector<uint32_t> rowSequences_, rowPositions_;
  std::vector<uint8_t> source_;
};

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return std::make_unique<FarWriteCase>(arena, random);
}

}  // namespace

Target farWriteTarget() {
  return {.name = "FarWrite", .share = 1, .refusals = {}, .make = makeCase};
}

}  // namespace mnk::fuzz
