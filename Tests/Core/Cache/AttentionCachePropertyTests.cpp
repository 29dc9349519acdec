// Random calls on caches, compared with attention in double over all tokens: a row sees the positions its options
// select, or the call fails. Runs 2,000 programs by default, and 100,000 with MNK_TEST_FULL=1.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "Harness/EveryDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/AttentionHistory.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kHeads = 2;
constexpr uint64_t kDim = 8;
constexpr uint32_t kSequences = 2;

uint64_t programCount() {
  const char* value = std::getenv("MNK_TEST_FULL");
  return value != nullptr && std::string_view(value) == "1" ? 100'000 : 2'000;
}

// The position in each slot: the newest of those that map to it.
struct HeldPositions {
  std::map<uint64_t, uint64_t> positionInSlot;
  uint64_t next = 0;
};

struct RowOptions {
  uint64_t window = 0;
  bool seesPinned = false;
};

// A cache and its expected state.
class Program {
 public:
  Program(std::shared_ptr<Device> device, const AttentionCacheDescriptor& descriptor, Seeded& random)
      : device_(std::move(device)),
        cache_(REQUIRE(AttentionCache::make(device_, descriptor))),
        descriptor_(cache_.descriptor()),
        random_(random) {}

  uint64_t next(uint32_t sequence = 0) const { return held_[sequence].next; }

  // Appends to sequences and attends with their newest rows in one encoder.
  void appendAndAttendRows(const std::vector<uint32_t>& sequences, const std::vector<uint32_t>& rowCounts,
                           const RowOptions& options, bool mustSucceed) {
    CommandEncoder encoder(device_);
    const uint64_t rows = std::accumulate(rowCounts.begin(), rowCounts.end(), uint64_t{0});
    const Numbers keys = numbers(rows, 1), values = numbers(rows, 1);
    const bool isOne = sequences.size() == 1 && random_.below(2) == 0;
    const auto appended = isOne ? cache_.append(encoder, view(keys), view(values), sequences[0])
                                : cache_.append(encoder, view(keys), view(values), sequences, rowCounts);
    const bool fits = hasRoom(sequences, rowCounts);
    EXPECT_EQ(bool(appended), fits);
    if (!fits) return;
    uint64_t row = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (uint64_t count = 0; count < rowCounts[i]; ++count, ++row) store(keys, values, row, sequences[i]);
    }
    if (random_.below(8) != 0) attend(encoder, sequences, rowCounts, options, mustSucceed);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    check();
  }

  // Attends with rows of earlier appends.
  void attendAgain(uint32_t sequence, const RowOptions& options) {
    if (next(sequence) == 0) return;
    const auto rows = static_cast<uint32_t>(1 + random_.below(std::min<uint64_t>(next(sequence), 9)));
    CommandEncoder encoder(device_);
    attend(encoder, {sequence}, {rows}, options, false);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    check();
  }

  // Appends and attends with any number of tokens; the results equal those of one token at a time.
  void appendAndAttend(uint32_t sequence, uint64_t tokens, const RowOptions& options) {
    const Numbers queries = numbers(tokens, kHeads), keys = numbers(tokens, 1), values = numbers(tokens, 1);
    const Tensor out = REQUIRE(Tensor::zeros(device_, DType::f32, REQUIRE(Shape::make({tokens, kHeads, kDim}))));
    HeldPositions held = held_[sequence];
    bool isHeld = true;
    std::vector<std::vector<uint64_t>> seen;
    for (uint64_t token = 0; token < tokens; ++token) {
      storeIn(held);
      seen.emplace_back();
      isHeld = see(held, held.next - 1, options, seen.back()) && isHeld;
    }
    const bool fits = descriptor_.whenFull == KVWrap::ring || held.next <= descriptor_.capacity;
    CommandEncoder encoder(device_);
    const auto done = cache_.appendAndAttend(encoder, {.queries = view(queries),
                                                       .keys = view(keys),
                                                       .values = view(values),
                                                       .results = {.into = out},
                                                       .options = attentionOptions(options),
                                                       .sequence = sequence});
    EXPECT_EQ(bool(done), isHeld && fits);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    if (!done) return;
    for (uint64_t token = 0; token < tokens; ++token) store(keys, values, token, sequence);
    expected_.push_back({out, 0, queries.elements, seen, sequence});
    check();
  }

  // Truncates, and checks whether the cache accepts this position.
  void truncate(uint32_t sequence, uint64_t position) {
    const HeldPositions& held = held_[sequence];
    // Overwritten positions before the cut stay lost; truncating loses no others.
    uint64_t oldest = descriptor_.pinned;
    for (const auto& [slot, at] : held.positionInSlot) {
      if (slot >= descriptor_.pinned && at >= slotCount()) oldest = std::max(oldest, at - ringLength() + 1);
    }
    const bool isPossible =
        position <= held.next && (position <= descriptor_.pinned || oldest == descriptor_.pinned || position >= oldest);
    EXPECT_EQ(bool(cache_.truncate(position, sequence)), isPossible);
    if (!isPossible) return;
    held_[sequence].next = position;
    history_.truncate(position, sequence);
    if (position <= descriptor_.pinned) {
      std::erase_if(held_[sequence].positionInSlot, [&](const auto& entry) { return entry.second >= position; });
    }
  }

  void copy(uint32_t source, uint32_t target) {
    CommandEncoder encoder(device_);
    REQUIRE(cache_.copy(encoder, source, target));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    held_[target] = held_[source];
    history_.copy(source, target);
  }

 private:
  struct Numbers {
    std::vector<float> elements;
    uint64_t heads;
  };
  struct Expected {
    Tensor out;
    uint64_t firstRow;
    std::vector<float> queries;
    std::vector<std::vector<uint64_t>> seen;
    uint32_t sequence;
  };

  uint64_t slotCount() const { return descriptor_.capacity; }
  uint64_t ringLength() const { return descriptor_.capacity - descriptor_.pinned; }
  uint64_t slotOf(uint64_t position) const {
    if (descriptor_.whenFull == KVWrap::linear || position < descriptor_.pinned) return position;
    return descriptor_.pinned + (position - descriptor_.pinned) % ringLength();
  }

  Numbers numbers(uint64_t rows, uint64_t heads) { return {smallNumbers(random_, rows * heads * kDim), heads}; }

  // Uses one of the layouts that models produce.
  HeadsView view(const Numbers& numbers) {
    const uint64_t heads = numbers.heads, rows = numbers.elements.size() / (heads * kDim);
    const auto tensor = [&](const std::vector<float>& elements, std::initializer_list<uint64_t> shape) {
      return test::numbers(device_, elements, REQUIRE(Shape::make(shape)));
    };
    switch (random_.below(3)) {
      case 0:
        return tensor(numbers.elements, {rows, heads, kDim});
      case 1: {
        std::vector<float> moved(numbers.elements.size());
        for (uint64_t i = 0; i < moved.size(); ++i) {
          const uint64_t row = i / (heads * kDim), head = i / kDim % heads;
          moved[(head * rows + row) * kDim + i % kDim] = numbers.elements[i];
        }
        return {tensor(moved, {heads, rows, kDim}), KVLayout::headMajor};
      }
      default: {
        const uint64_t width = (heads + 1) * kDim;
        std::vector<float> fused(rows * width, NAN);
        for (uint64_t i = 0; i < numbers.elements.size(); ++i) {
          fused[i / (heads * kDim) * width + kDim + i % (heads * kDim)] = numbers.elements[i];
        }
        return REQUIRE(HeadsView::columns(tensor(fused, {rows, width}), kDim, heads, kDim));
      }
    }
  }

  static AttentionOptions attentionOptions(const RowOptions& options) {
    return {.window = static_cast<uint32_t>(options.window), .windowSeesPinned = options.seesPinned};
  }

  bool hasRoom(const std::vector<uint32_t>& sequences, const std::vector<uint32_t>& rowCounts) const {
    if (descriptor_.whenFull == KVWrap::ring) return true;
    std::map<uint32_t, uint64_t> ends;
    for (size_t i = 0; i < sequences.size(); ++i) {
      ends.try_emplace(sequences[i], next(sequences[i])).first->second += rowCounts[i];
    }
    return std::all_of(ends.begin(), ends.end(), [&](const auto& end) { return end.second <= descriptor_.capacity; });
  }

  void storeIn(HeldPositions& held) const {
    held.positionInSlot[slotOf(held.next)] = held.next;
    ++held.next;
  }
  void store(const Numbers& keys, const Numbers& values, uint64_t row, uint32_t sequence) {
    const auto token = [&](const Numbers& all) {
      return std::vector<float>(all.elements.begin() + row * kDim, all.elements.begin() + (row + 1) * kDim);
    };
    storeIn(held_[sequence]);
    history_.append(token(keys), token(values), sequence);
  }

  // Collects the positions a row sees. Returns false if its window includes a lost position.
  bool see(const HeldPositions& held, uint64_t row, RowOptions options, std::vector<uint64_t>& seen) const {
    if (options.window == 0 && descriptor_.slidingWindow) options.window = descriptor_.slidingWindow->window;
    bool isHeld = true;
    for (uint64_t position = 0; position <= row; ++position) {
      const bool isInWindow = options.window == 0 || row - position < options.window;
      if (!isInWindow && !(options.seesPinned && position < descriptor_.pinned)) continue;
      const auto slot = held.positionInSlot.find(slotOf(position));
      if (slot != held.positionInSlot.end() && slot->second == position) {
        seen.push_back(position);
      } else {
        isHeld = isHeld && options.window == 0;
      }
    }
    return isHeld;
  }

  void attend(CommandEncoder& encoder, const std::vector<uint32_t>& sequences, const std::vector<uint32_t>& rowCounts,
              const RowOptions& options, bool mustSucceed) {
    const uint64_t rows = std::accumulate(rowCounts.begin(), rowCounts.end(), uint64_t{0});
    const Numbers queries = numbers(rows, kHeads);
    const Tensor out = REQUIRE(Tensor::zeros(device_, DType::f32, REQUIRE(Shape::make({rows, kHeads, kDim}))));
    std::vector<Expected> expected;
    bool isHeld = true;
    uint64_t firstRow = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      uint64_t behind = 0;
      for (size_t later = i + 1; later < sequences.size(); ++later) {
        if (sequences[later] == sequences[i]) behind += rowCounts[later];
      }
      const auto begin = queries.elements.begin() + firstRow * kHeads * kDim;
      Expected& part = expected.emplace_back(
          Expected{out, firstRow, {begin, begin + rowCounts[i] * kHeads * kDim}, {}, sequences[i]});
      for (uint64_t row = 0; row < rowCounts[i]; ++row) {
        const uint64_t position = next(sequences[i]) - behind - rowCounts[i] + row;
        isHeld = see(held_[sequences[i]], position, options, part.seen.emplace_back()) && isHeld;
      }
      firstRow += rowCounts[i];
    }
    const bool isOne = sequences.size() == 1 && random_.below(2) == 0;
    const AttentionOptions attention = attentionOptions(options);
    const auto attended = isOne ? cache_.attend(encoder, view(queries), {.into = out}, attention, sequences[0])
                                : cache_.attend(encoder, view(queries), {.into = out}, attention, sequences, rowCounts);
    EXPECT_EQ(bool(attended), isHeld);
    if (mustSucceed) EXPECT(isHeld);
    if (attended) expected_.insert(expected_.end(), expected.begin(), expected.end());
  }

  // Compares the results since the last check.
  void check() {
    for (const Expected& part : expected_) {
      const std::vector<float> all = floatsOf(part.out);
      const auto begin = all.begin() + part.firstRow * kHeads * kDim;
      const std::vector<float> got(begin, begin + part.queries.size());
      EXPECT(largestDifference(got, history_.attended(part.queries, part.seen, part.sequence)) < kF32Sums);
    }
    expected_.clear();
  }

  std::shared_ptr<Device> device_;
  AttentionCache cache_;
  AttentionCacheDescriptor descriptor_;
  Seeded& random_;
  HeldPositions held_[kSequences];
  AttentionHistory history_{kHeads, 1, kDim};
  std::vector<Expected> expected_;
};

AttentionCacheDescriptor descriptor(Seeded& random) {
  const auto pinned = static_cast<uint32_t>(random.below(2) * random.below(4));
  const bool isRing = random.below(5) != 0;
  return {.kvHeads = 1,
          .headDim = kDim,
          .capacity = static_cast<uint32_t>(pinned + 1 + random.below(isRing ? 9 : 30)),
          .sequences = kSequences,
          .dtype = DType::f32,
          .whenFull = isRing ? KVWrap::ring : KVWrap::linear,
          .pinned = isRing ? pinned : 0};
}

RowOptions rowOptions(Seeded& random) {
  return {.window = random.below(2) * (1 + random.below(12)), .seesPinned = random.below(2) == 0};
}

void runAnyCalls(const std::shared_ptr<Device>& device, Seeded& random) {
  Program program(device, descriptor(random), random);
  for (uint64_t calls = 2 + random.below(6); calls != 0; --calls) {
    const auto sequence = static_cast<uint32_t>(random.below(kSequences));
    switch (random.below(8)) {
      case 0:
        program.truncate(sequence, random.below(program.next(sequence) + 2));
        break;
      case 1:
        program.attendAgain(sequence, rowOptions(random));
        break;
      case 2:
        program.appendAndAttend(sequence, random.below(14), rowOptions(random));
        break;
      case 3:
        program.copy(sequence, static_cast<uint32_t>(random.below(kSequences)));
        break;
      default: {
        std::vector<uint32_t> sequences{sequence}, rowCounts{static_cast<uint32_t>(random.below(9))};
        while (random.below(3) == 0) {
          sequences.push_back(static_cast<uint32_t>(random.below(kSequences)));
          rowCounts.push_back(static_cast<uint32_t>(random.below(5)));
        }
        program.appendAndAttendRows(sequences, rowCounts, rowOptions(random), false);
      }
    }
  }
}

// A sliding-window cache never refuses steps within its descriptor's limits, or rolling back drafts.
void runSlidingWindow(const std::shared_ptr<Device>& device, Seeded& random) {
  const SlidingWindow sliding{.window = static_cast<uint32_t>(1 + random.below(9)),
                              .maxRows = static_cast<uint32_t>(1 + random.below(6)),
                              .maxDraft = static_cast<uint32_t>(random.below(6))};
  const auto pinned = static_cast<uint32_t>(random.below(3));
  Program program(device,
                  {.kvHeads = 1,
                   .headDim = kDim,
                   .sequences = kSequences,
                   .dtype = DType::f32,
                   .pinned = pinned,
                   .slidingWindow = sliding},
                  random);
  for (uint64_t steps = 3 + random.below(8); steps != 0; --steps) {
    const RowOptions options{.seesPinned = random.below(2) == 0};
    const uint64_t before = program.next();
    if (random.below(2) == 0) {
      program.appendAndAttendRows({0}, {static_cast<uint32_t>(1 + random.below(sliding.maxRows))}, options, true);
      continue;
    }
    // A draft in steps of at most maxRows; only some of its tokens are accepted.
    const uint64_t draft = random.below(sliding.maxDraft + 1);
    for (uint64_t left = draft; left != 0;) {
      const uint64_t rows = 1 + random.below(std::min<uint64_t>(left, sliding.maxRows));
      program.appendAndAttendRows({0}, {static_cast<uint32_t>(rows)}, options, true);
      left -= rows;
    }
    program.truncate(0, before + random.below(draft + 1));
  }
}

template <typename Body>
void runPrograms(uint64_t stream, Body body) {
  const auto& devices = devicesUnderTest();
  for (uint64_t i = 0; i < programCount() / 2; ++i) {
    const DeviceUnderTest& under = devices[i % devices.size()];
    const Context context(fmt::format("{}, program {}", under.name, i));
    Seeded random(stream + 2 * i);
    body(under.device, random);
  }
}

}  // namespace

TEST(AttentionCacheProperty, RowsSeeSelectedPositionsOrFail) {
  runPrograms(0, runAnyCalls);
}

TEST(AttentionCacheProperty, ASlidingWindowCacheServesItsLimits) {
  runPrograms(1, runSlidingWindow);
}

}  // namespace mnk::test
