// Random calls on a cache, compared with a model that remembers for each slot the last token written there.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "Harness/EveryDevice.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk::test {

namespace {

constexpr uint32_t kHeads = 2;
constexpr uint32_t kHeadDim = 3;
constexpr uint32_t kValueHeadDim = 5;
constexpr uint32_t kSequences = 3;

// Each element of each token is a distinct number that f32 represents exactly.
float element(uint32_t stamp, bool isValue, uint64_t head, uint64_t index) {
  return static_cast<float>(((stamp * 2 + isValue) * kHeads + head) * 8 + index);
}

struct Slot {
  uint64_t position;
  uint32_t stamp;
};

struct Sequence {
  uint64_t next = 0;
  std::map<uint64_t, Slot> slots;
  std::set<uint64_t> lost;  // positions whose slot holds a later position
};

class Model {
 public:
  explicit Model(const AttentionCacheDescriptor& descriptor) : descriptor_(descriptor) {}

  uint64_t slotOf(uint64_t position) const {
    if (descriptor_.whenFull == KVWrap::linear || position < descriptor_.pinned) return position;
    return descriptor_.pinned + (position - descriptor_.pinned) % (descriptor_.capacity - descriptor_.pinned);
  }
  bool hasRoom(uint32_t sequence, uint64_t tokens) const {
    return descriptor_.whenFull == KVWrap::ring || sequences_[sequence].next + tokens <= descriptor_.capacity;
  }
  void append(uint32_t sequence, uint32_t stamp) {
    Sequence& at = sequences_[sequence];
    const auto held = at.slots.find(slotOf(at.next));
    if (held != at.slots.end() && held->second.position < at.next) at.lost.insert(held->second.position);
    at.slots[slotOf(at.next)] = {at.next, stamp};
    ++at.next;
  }
  bool canTruncate(uint32_t sequence, uint64_t position) const {
    const Sequence& at = sequences_[sequence];
    if (position > at.next) return false;
    return position <= descriptor_.pinned || at.lost.empty() || position > *at.lost.rbegin();
  }
  void truncate(uint32_t sequence, uint64_t position) {
    Sequence& at = sequences_[sequence];
    at.next = position;
    if (position > descriptor_.pinned) return;
    at.lost.clear();
    std::erase_if(at.slots, [&](const auto& slot) { return slot.second.position >= position; });
  }
  uint64_t next(uint32_t sequence) const { return sequences_[sequence].next; }
  // Readable positions with their tokens.
  std::map<uint64_t, uint32_t> readable(uint32_t sequence) const {
    std::map<uint64_t, uint32_t> tokens;
    for (const auto& [slot, held] : sequences_[sequence].slots) {
      if (held.position < sequences_[sequence].next) tokens[held.position] = held.stamp;
    }
    return tokens;
  }

 private:
  AttentionCacheDescriptor descriptor_;
  Sequence sequences_[kSequences];
};

class Walk {
 public:
  Walk(std::shared_ptr<Device> device, const AttentionCacheDescriptor& descriptor)
      : device_(std::move(device)),
        cache_(REQUIRE(AttentionCache::make(device_, descriptor))),
        model_(descriptor),
        capacity_(descriptor.capacity) {}

  void step(Seeded& random) {
    const auto sequence = static_cast<uint32_t>(random.below(kSequences));
    switch (random.below(8)) {
      case 0:
        return truncate(sequence, random.below(model_.next(sequence) + 2));
      case 1:
        if (random.below(4) == 0) return truncate(sequence, 0);
        return abandon(sequence);
      default:
        return encode(random);
    }
  }

  void expectModel() const {
    std::vector<std::byte> keys(cache_.view().keys.byteCount());
    std::vector<std::byte> values(cache_.view().values->byteCount());
    REQUIRE(cache_.view().keys.read(keys));
    REQUIRE(cache_.view().values->read(values));
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
      const Context context(fmt::format("sequence {}", sequence));
      const auto readable = model_.readable(sequence);
      EXPECT_EQ(cache_.nextPosition(sequence), model_.next(sequence));
      EXPECT_EQ(cache_.count(sequence), readable.size());
      for (const auto& [position, stamp] : readable) {
        expectToken(keys, kHeadDim, false, sequence, position, stamp);
        expectToken(values, kValueHeadDim, true, sequence, position, stamp);
      }
    }
  }

 private:
  Tensor plane(const std::vector<uint32_t>& stamps, bool isValue) const {
    const uint64_t headDim = isValue ? kValueHeadDim : kHeadDim;
    std::vector<float> elements;
    for (uint32_t stamp : stamps) {
      for (uint64_t head = 0; head < kHeads; ++head) {
        for (uint64_t index = 0; index < headDim; ++index) elements.push_back(element(stamp, isValue, head, index));
      }
    }
    const Shape shape = REQUIRE(Shape::make({stamps.size(), kHeads, headDim}));
    const Tensor tensor = REQUIRE(Tensor::zeros(device_, DType::f32, shape));
    REQUIRE(tensor.write(std::as_bytes(std::span(elements))));
    return tensor;
  }

  std::vector<uint32_t> newStamps(uint64_t count) {
    std::vector<uint32_t> stamps;
    while (stamps.size() < count) stamps.push_back(++stamp_);
    return stamps;
  }

  // One to three appends, to one sequence or a list, in one submission.
  void encode(Seeded& random) {
    CommandEncoder encoder(device_);
    for (uint64_t rounds = 1 + random.below(3); rounds != 0; --rounds) {
      if (random.below(3) == 0) {
        appendBatch(encoder, random);
      } else {
        const auto sequence = static_cast<uint32_t>(random.below(kSequences));
        const auto stamps = newStamps(random.below(random.below(4) == 0 ? 3 * capacity_ : 3));
        const bool fits = model_.hasRoom(sequence, stamps.size());
        const auto appended = cache_.append(encoder, plane(stamps, false), plane(stamps, true), sequence);
        EXPECT_EQ(bool(appended), fits);
        for (uint32_t stamp : stamps) {
          if (fits) model_.append(sequence, stamp);
        }
      }
    }
    REQUIRE(REQUIRE(encoder.commit()).wait());
  }

  void appendBatch(CommandEncoder& encoder, Seeded& random) {
    const auto stamps = newStamps(1 + random.below(4));
    std::vector<uint32_t> sequences;
    for (size_t row = 0; row < stamps.size(); ++row) {
      sequences.push_back(static_cast<uint32_t>(random.below(kSequences)));
    }
    bool fits = true;
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
      const auto count = std::count(sequences.begin(), sequences.end(), sequence);
      fits = fits && (count == 0 || model_.hasRoom(sequence, static_cast<uint64_t>(count)));
    }
    EXPECT_EQ(bool(cache_.append(encoder, plane(stamps, false), plane(stamps, true), sequences)), fits);
    for (size_t row = 0; fits && row < stamps.size(); ++row) model_.append(sequences[row], stamps[row]);
  }

  void abandon(uint32_t sequence) {
    CommandEncoder encoder(device_);
    const auto stamps = newStamps(1);
    (void)cache_.append(encoder, plane(stamps, false), plane(stamps, true), sequence);
  }

  void truncate(uint32_t sequence, uint64_t position) {
    const bool isPossible = model_.canTruncate(sequence, position);
    EXPECT_EQ(bool(cache_.truncate(position, sequence)), isPossible);
    if (isPossible) model_.truncate(sequence, position);
  }

  void expectToken(const std::vector<std::byte>& bytes, uint64_t headDim, bool isValue, uint32_t sequence,
                   uint64_t position, uint32_t stamp) const {
    for (uint64_t head = 0; head < kHeads; ++head) {
      for (uint64_t index = 0; index < headDim; ++index) {
        const uint64_t row = (sequence * kHeads + head) * capacity_ + model_.slotOf(position);
        float got;
        std::memcpy(&got, &bytes[(row * headDim + index) * sizeof got], sizeof got);
        if (got == element(stamp, isValue, head, index)) continue;
        fail(__FILE__, __LINE__,
             fmt::format("{} (position {}, head {}, element {}): got {}, expected {}", isValue ? "values" : "keys",
                         position, head, index, got, element(stamp, isValue, head, index)));
        return;
      }
    }
  }

  std::shared_ptr<Device> device_;
  AttentionCache cache_;
  Model model_;
  uint64_t capacity_;
  uint32_t stamp_ = 0;
};

void walk(uint32_t capacity, KVWrap whenFull, uint32_t pinned) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random(capacity * 10 + pinned);
    Walk walk(device, {.kvHeads = kHeads,
                       .headDim = kHeadDim,
                       .valueHeadDim = kValueHeadDim,
                       .capacity = capacity,
                       .sequences = kSequences,
                       .dtype = DType::f32,
                       .whenFull = whenFull,
                       .pinned = pinned,
                       .isStorageOnly = true});
    for (int step = 0; step < 150; ++step) {
      const Context context(fmt::format("capacity {}, {} pinned, step {}", capacity, pinned, step));
      walk.step(random);
      walk.expectModel();
    }
  });
}

}  // namespace

TEST(AttentionCacheModel, ARingHoldsItsNewestTokens) {
  for (uint32_t capacity : {1, 4, 7}) walk(capacity, KVWrap::ring, 0);
}

TEST(AttentionCacheModel, ARingHoldsPinnedAndNewestTokens) {
  walk(2, KVWrap::ring, 1);
  walk(7, KVWrap::ring, 3);
  walk(7, KVWrap::ring, 6);
}

TEST(AttentionCacheModel, ALinearCacheHoldsAllOrRefuses) {
  for (uint32_t capacity : {1, 4, 30}) walk(capacity, KVWrap::linear, 0);
}

}  // namespace mnk::test
