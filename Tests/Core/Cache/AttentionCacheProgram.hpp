// A cache, random calls on it, and what they must do: what slots hold, and attention in double over all tokens.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/AttentionHistory.hpp"

namespace mnk::test {

inline constexpr uint64_t kProgramHeads = 4;
inline constexpr uint32_t kProgramKVHeads = 2;
inline constexpr uint32_t kSequences = 3;

// The position in each slot: the newest of those that map to it.
struct HeldPositions {
  std::map<uint64_t, uint64_t> positionInSlot;
  uint64_t next = 0;
};

// Rows of sequences that one call appends.
struct Rows {
  std::vector<uint32_t> sequences, counts;
};

struct RowOptions {
  uint64_t window = 0;
  bool seesPinned = false;
};

// A cache and its expected state.
class AttentionCacheProgram {
 public:
  AttentionCacheProgram(std::shared_ptr<Device> device, const AttentionCacheDescriptor& descriptor, Seeded& random)
      : device_(std::move(device)),
        cache_(REQUIRE(AttentionCache::make(device_, descriptor))),
        descriptor_(cache_.descriptor()),
        random_(random) {}

  uint64_t next(uint32_t sequence = 0) const { return held_[sequence].next; }

  // Appends to sequences, and attends with their newest rows in the same encoder.
  void appendAndAttendRows(const Rows& rows, const RowOptions& options, bool mustSucceed) {
    run([&](CommandEncoder& encoder) {
      if (append(encoder, rows) && canAttend() && random_.below(8) != 0) attend(encoder, rows, options, mustSucceed);
    });
  }

  // Appends in an encoder that is never committed.
  void abandon(uint32_t sequence) {
    {
      CommandEncoder encoder(device_);
      (void)cache_.append(encoder, view(someKeys(1)), view(someValues(1)), sequence);
    }
    check();
  }

  // Several appends in one encoder.
  void append(const std::vector<Rows>& calls) {
    run([&](CommandEncoder& encoder) {
      for (const Rows& rows : calls) append(encoder, rows);
    });
  }

  // Attends with rows of earlier appends.
  void attendAgain(uint32_t sequence, const RowOptions& options) {
    if (next(sequence) == 0 || !canAttend()) return;
    const auto rows = static_cast<uint32_t>(1 + random_.below(std::min<uint64_t>(next(sequence), 9)));
    run([&](CommandEncoder& encoder) { attend(encoder, {{sequence}, {rows}}, options, false); });
  }

  // Appends and attends with any number of tokens; the results equal those of one token at a time.
  void appendAndAttend(uint32_t sequence, uint64_t tokens, const RowOptions& options) {
    if (!canAttend()) return;
    const Numbers queries = someQueries(tokens), keys = someKeys(tokens), values = someValues(tokens);
    const Tensor out = emptyResults(tokens);
    HeldPositions held = held_[sequence];
    bool isHeld = true;
    std::vector<std::vector<uint64_t>> seen;
    for (uint64_t token = 0; token < tokens; ++token) {
      storeIn(held);
      seen.emplace_back();
      isHeld = see(held, held.next - 1, options, seen.back()) && isHeld;
    }
    const bool fits = descriptor_.whenFull == KVWrap::ring || held.next <= descriptor_.capacity;
    run([&](CommandEncoder& encoder) {
      const auto done = cache_.appendAndAttend(encoder, {.queries = view(queries),
                                                         .keys = view(keys),
                                                         .values = view(values),
                                                         .results = {.output = out},
                                                         .options = attentionOptions(options),
                                                         .sequences = {sequence}});
      EXPECT_EQ(bool(done), isHeld && fits);
      if (!done) return;
      for (uint64_t token = 0; token < tokens; ++token) store(keys, values, token, sequence);
      expected_.push_back({out, 0, queries.elements, seen, sequence});
    });
  }

  // Truncates, and checks whether the cache accepts this position.
  void truncate(uint32_t sequence, uint64_t position) {
    const HeldPositions& held = held_[sequence];
    // Overwritten positions before the cut stay lost; truncating loses no others.
    uint64_t oldest = held.next;
    while (oldest > descriptor_.pinned && keeps(held, oldest - 1)) --oldest;
    const bool isPossible = position <= held.next && (position <= descriptor_.pinned || position >= oldest);
    EXPECT_EQ(bool(cache_.truncate(position, sequence)), isPossible);
    if (!isPossible) return check();
    held_[sequence].next = position;
    history_.truncate(position, sequence);
    if (position <= descriptor_.pinned) {
      std::erase_if(held_[sequence].positionInSlot, [&](const auto& entry) { return entry.second >= position; });
    }
    check();
  }

  void copy(uint32_t source, uint32_t target) {
    run([&](CommandEncoder& encoder) {
      REQUIRE(cache_.copy(encoder, source, target));
      held_[target] = held_[source];
      history_.copy(source, target);
    });
  }

  // Continues with a larger cache, whose slots hold the positions that could be read.
  void grow(uint32_t capacity) {
    run([&](CommandEncoder& encoder) {
      cache_ = REQUIRE(cache_.grown(encoder, capacity));
      std::vector<std::vector<uint64_t>> kept(kSequences);
      for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
        for (uint64_t position = 0; position < next(sequence); ++position) {
          if (keeps(held_[sequence], position)) kept[sequence].push_back(position);
        }
      }
      descriptor_.capacity = capacity;
      for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
        held_[sequence].positionInSlot.clear();
        for (const uint64_t position : kept[sequence]) held_[sequence].positionInSlot[slotOf(position)] = position;
      }
    });
  }
  uint32_t capacity() const { return descriptor_.capacity; }

 private:
  struct Numbers {
    std::vector<float> elements;
    uint64_t heads, dim;
  };
  struct Expected {
    Tensor out;
    uint64_t firstRow;
    std::vector<float> queries;
    std::vector<std::vector<uint64_t>> seen;
    uint32_t sequence;
  };

  template <typename Body>
  void run(Body body) {
    CommandEncoder encoder(device_);
    body(encoder);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    check();
  }

  uint64_t ringLength() const { return descriptor_.capacity - descriptor_.pinned; }
  uint64_t slotOf(uint64_t position) const {
    if (descriptor_.whenFull == KVWrap::linear || position < descriptor_.pinned) return position;
    return descriptor_.pinned + (position - descriptor_.pinned) % ringLength();
  }

  bool canAttend() const { return !descriptor_.isStorageOnly; }

  Numbers numbers(uint64_t rows, uint64_t heads, uint64_t dim) {
    return {smallNumbers(random_, rows * heads * dim), heads, dim};
  }
  Numbers someQueries(uint64_t rows) { return numbers(rows, kProgramHeads, keyDim_); }
  Numbers someKeys(uint64_t rows) { return numbers(rows, kProgramKVHeads, keyDim_); }
  Numbers someValues(uint64_t rows) { return numbers(rows, kProgramKVHeads, valueDim_); }
  Tensor emptyResults(uint64_t rows) const {
    return REQUIRE(Tensor::zeros(device_, DType::f32, REQUIRE(Shape::make({rows, kProgramHeads, valueDim_}))));
  }

  HeadsView view(const Numbers& numbers) {
    return viewOfAnyLayout(device_, random_, numbers.elements, numbers.heads, numbers.dim);
  }

  static AttentionOptions attentionOptions(const RowOptions& options) {
    return {.window = static_cast<uint32_t>(options.window), .windowSeesPinned = options.seesPinned};
  }

  // Returns false if the rows do not fit.
  bool append(CommandEncoder& encoder, const Rows& rows) {
    const uint64_t total = std::accumulate(rows.counts.begin(), rows.counts.end(), uint64_t{0});
    const Numbers keys = someKeys(total), values = someValues(total);
    const bool isShort = random_.below(2) == 0, isOne = isShort && rows.sequences.size() == 1;
    // Without counts, each listed sequence has one row.
    const bool hasCounts =
        !isShort || std::any_of(rows.counts.begin(), rows.counts.end(), [](auto n) { return n != 1; });
    const auto appended =
        isOne ? cache_.append(encoder, view(keys), view(values), rows.sequences[0])
              : cache_.append(encoder, {.keys = view(keys),
                                        .values = view(values),
                                        .sequences = rows.sequences,
                                        .rowCounts = hasCounts ? std::optional(rows.counts) : std::nullopt});
    const bool fits = hasRoom(rows);
    EXPECT_EQ(bool(appended), fits);
    if (!fits) return false;
    uint64_t row = 0;
    for (size_t i = 0; i < rows.sequences.size(); ++i) {
      for (uint64_t count = 0; count < rows.counts[i]; ++count, ++row) store(keys, values, row, rows.sequences[i]);
    }
    return true;
  }

  bool hasRoom(const Rows& rows) const {
    if (descriptor_.whenFull == KVWrap::ring) return true;
    std::map<uint32_t, uint64_t> ends;
    for (size_t i = 0; i < rows.sequences.size(); ++i) {
      ends.try_emplace(rows.sequences[i], next(rows.sequences[i])).first->second += rows.counts[i];
    }
    return std::all_of(ends.begin(), ends.end(), [&](const auto& end) { return end.second <= descriptor_.capacity; });
  }

  void storeIn(HeldPositions& held) const {
    held.positionInSlot[slotOf(held.next)] = held.next;
    ++held.next;
  }
  void store(const Numbers& keys, const Numbers& values, uint64_t row, uint32_t sequence) {
    const auto token = [&](const Numbers& all) {
      const auto begin = all.elements.begin() + row * all.heads * all.dim;
      return std::vector<float>(begin, begin + all.heads * all.dim);
    };
    storeIn(held_[sequence]);
    history_.append(token(keys), token(values), sequence);
  }

  bool keeps(const HeldPositions& held, uint64_t position) const {
    const auto slot = held.positionInSlot.find(slotOf(position));
    return slot != held.positionInSlot.end() && slot->second == position;
  }

  // Collects the positions a row sees. Returns false if its own or one in its window is lost.
  bool see(const HeldPositions& held, uint64_t row, RowOptions options, std::vector<uint64_t>& seen) const {
    if (options.window == 0 && descriptor_.slidingWindow) options.window = descriptor_.slidingWindow->window;
    bool isHeld = true;
    for (uint64_t position = 0; position <= row; ++position) {
      const bool isInWindow = options.window == 0 || row - position < options.window;
      if (!isInWindow && !(options.seesPinned && position < descriptor_.pinned)) continue;
      if (keeps(held, position)) {
        seen.push_back(position);
      } else {
        isHeld = isHeld && options.window == 0 && position != row;
      }
    }
    return isHeld;
  }

  void attend(CommandEncoder& encoder, const Rows& of, const RowOptions& options, bool mustSucceed) {
    const auto& [sequences, rowCounts] = of;
    const uint64_t rows = std::accumulate(rowCounts.begin(), rowCounts.end(), uint64_t{0});
    const Numbers queries = someQueries(rows);
    const Tensor out = emptyResults(rows);
    std::vector<Expected> expected;
    bool isHeld = true;
    uint64_t firstRow = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      uint64_t behind = 0;
      for (size_t later = i + 1; later < sequences.size(); ++later) {
        if (sequences[later] == sequences[i]) behind += rowCounts[later];
      }
      const auto begin = queries.elements.begin() + firstRow * kProgramHeads * keyDim_;
      Expected& part = expected.emplace_back(
          Expected{out, firstRow, {begin, begin + rowCounts[i] * kProgramHeads * keyDim_}, {}, sequences[i]});
      for (uint64_t row = 0; row < rowCounts[i]; ++row) {
        const uint64_t position = next(sequences[i]) - behind - rowCounts[i] + row;
        isHeld = see(held_[sequences[i]], position, options, part.seen.emplace_back()) && isHeld;
      }
      firstRow += rowCounts[i];
    }
    const bool isOne = sequences.size() == 1 && random_.below(2) == 0;
    const AttentionOptions attention = attentionOptions(options);
    const auto attended = isOne ? cache_.attend(encoder, view(queries), {.output = out}, attention, sequences[0])
                                : cache_.attend(encoder, {.queries = view(queries),
                                                          .results = {.output = out},
                                                          .options = attention,
                                                          .sequences = sequences,
                                                          .rowCounts = rowCounts});
    EXPECT_EQ(bool(attended), isHeld);
    if (mustSucceed) EXPECT(isHeld);
    if (attended) expected_.insert(expected_.end(), expected.begin(), expected.end());
  }

  // Compares the results since the last check, and what slots hold.
  void check() {
    for (const Expected& part : expected_) {
      const std::vector<float> all = floatsOf(part.out);
      const auto begin = all.begin() + part.firstRow * kProgramHeads * valueDim_;
      const std::vector<float> got(begin, begin + part.seen.size() * kProgramHeads * valueDim_);
      EXPECT(largestDifference(got, history_.attended(part.queries, part.seen, part.sequence)) < kF32Sums);
    }
    expected_.clear();
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) checkSlots(sequence);
  }

  void checkSlots(uint32_t sequence) const {
    const HeldPositions& held = held_[sequence];
    const std::vector<float> keys = floatsOf(cache_.view().keys), values = floatsOf(*cache_.view().values);
    const auto inSlot = [&](const std::vector<float>& plane, uint64_t dim, uint64_t slot) {
      std::vector<float> token;
      for (uint64_t head = sequence * kProgramKVHeads; head < (sequence + 1) * kProgramKVHeads; ++head) {
        const auto begin = plane.begin() + static_cast<ptrdiff_t>((head * descriptor_.capacity + slot) * dim);
        token.insert(token.end(), begin, begin + static_cast<ptrdiff_t>(dim));
      }
      return token;
    };
    uint64_t count = 0;
    for (const auto& [slot, position] : held.positionInSlot) {
      if (position >= held.next) continue;
      ++count;
      const auto [key, value] = history_.token(position, sequence);
      EXPECT(inSlot(keys, keyDim_, slot) == key && inSlot(values, valueDim_, slot) == value);
    }
    EXPECT_EQ(*cache_.count(sequence), count);
    EXPECT_EQ(*cache_.nextPosition(sequence), held.next);
  }

  std::shared_ptr<Device> device_;
  AttentionCache cache_;
  AttentionCacheDescriptor descriptor_;
  uint64_t keyDim_ = descriptor_.headDim, valueDim_ = descriptor_.valueHeadDim;
  Seeded& random_;
  HeldPositions held_[kSequences];
  AttentionHistory history_{kProgramHeads, kProgramKVHeads, keyDim_, valueDim_};
  std::vector<Expected> expected_;
};

}  // namespace mnk::test
