// Random calls on caches of every storage, compared with what slots must hold and with attention in double over all
// tokens: a row sees the positions its options select, or the call fails. Runs 1,400 programs by default, and 100,000
// with MNK_TEST_FULL=1.
#include <cstdlib>

#include "Cache/CacheFileFixture.hpp"
#include "Cache/CacheOperands.hpp"
#include "Harness/EveryDevice.hpp"

namespace mnk::test {

namespace {

class AttentionCacheProgram : CacheOperands {
 public:
  // `reached` collects what calls have come to.
  AttentionCacheProgram(std::shared_ptr<Device> device, const AttentionCacheDescriptor& descriptor, Seeded& random,
                        const CacheFolder& folder, std::set<std::string>& reached)
      : CacheOperands(std::move(device), random, reached), cache_(makeCache(device_, descriptor)), folder_(folder) {
    const auto& d = cache_.descriptor();
    if (d.isStorageOnly) reached_.insert("storage only");
    if (d.latentDim != 0) reached_.insert("latent");
    if (d.slidingWindow) reached_.insert("a sliding window");
    reachStorage();
    if (!coin(random_, 1, 3)) return;
    // A cache of prompts, whose storage may be another one.
    AttentionCacheDescriptor prompts{.kvHeads = d.kvHeads,
                                     .headDim = d.headDim,
                                     .valueHeadDim = d.valueHeadDim,
                                     .capacity = 16,
                                     .sequences = 2,
                                     .dtype = oneOf(random, {DType::f32, DType::f16, DType::bf16}),
                                     .latentDim = d.latentDim,
                                     .isStorageOnly = d.isStorageOnly};
    if (d.headDim >= 32 && coin(random, 1, 2)) prompts.quantized = anyStorage(device_, random, d);
    prompts_.emplace(makeCache(device_, prompts));
    for (const uint32_t sequence : {0, 1}) prompts_->appendNow(device_, random, 1 + random.below(9), sequence);
  }

  uint64_t next(uint32_t sequence = 0) const { return cache_.next(sequence); }

  // Appends and attends with the new rows, some times in one encoder.
  void step() {
    run([&](CommandEncoder& encoder) {
      for (uint64_t times = 1 + random_.below(2); times != 0; --times) {
        const Rows rows = anyRows();
        if (append(encoder, rows) && coin(random_, 7, 8))
          attend(encoder, rows, anyOptions(rows, cache_.descriptor()), false);
      }
    });
  }
  // A call that a sliding-window cache must serve.
  void mustStep(uint64_t rows, bool seesPinned) {
    const Rows one{{0}, {static_cast<uint32_t>(rows)}};
    run([&](CommandEncoder& encoder) {
      if (append(encoder, one)) attend(encoder, one, {.seesPinned = seesPinned}, true);
    });
  }
  // Attends with rows of earlier appends.
  void attendAgain() {
    const uint32_t sequence = anySequence();
    if (next(sequence) == 0) return;
    const Rows rows{{sequence}, {static_cast<uint32_t>(1 + random_.below(std::min<uint64_t>(next(sequence), 9)))}};
    run([&](CommandEncoder& encoder) { attend(encoder, rows, anyOptions(rows, cache_.descriptor()), false); });
  }
  // Appends and attends with any number of tokens; the results equal those of one token at a time.
  void appendAndAttend() {
    Rows rows = anyRows();
    if (rows.sequences.size() == 1) rows.counts[0] = static_cast<uint32_t>(random_.below(14));
    if (!canAttend()) return;
    RowOptions options = anyOptions(rows, cache_.descriptor());
    options.isCausal = options.isCausal || cache_.slots.isRing;  // what is not causal is not divided into chunks
    const std::vector<Prefix> prefixes = anyPrefixes(rows, options);
    const Numbers queries = someQueries(rows), keys = someKeys(rows), values = someValues(rows);
    std::vector<ModeledToken> tokens = cache_.stored(device_, keys.elements, values.elements);
    std::vector<ModeledSequence> sequences = cache_.sequences;
    ModeledRows expected;
    bool isHeld = hasRoom(rows);
    for (uint64_t i = 0, row = 0; isHeld && i < rows.sequences.size(); ++i) {
      ModeledSequence& sequence = sequences[rows.sequences[i]];
      const uint64_t first = sequence.next(), begin = row;
      for (; row < begin + rows.counts[i]; ++row) {
        cache_.slots.append(sequence, std::move(tokens[row]));
        if (options.isCausal)
          isHeld = see(expected, sequence, sequence.next() - 1, queries, row, options, prefixes) && isHeld;
      }
      for (uint64_t at = begin; !options.isCausal && at < row; ++at) {
        isHeld = see(expected, sequence, first + at - begin, queries, at, options, prefixes) && isHeld;
      }
    }
    run([&](CommandEncoder& encoder) {
      const Form form = anyForm(rows);
      CacheStep step = listed(rows, form);
      step.queries = view(queries, rows, form), step.keys = view(keys, rows, form);
      step.values = view(values, rows, form);
      step.results = someResults(rows, cache_.descriptor().valueHeadDim), step.options = attentionOptions(options),
      step.after = pass(prefixes);
      const auto done = cache_.cache.appendAndAttend(encoder, step);
      EXPECT_EQ(bool(done), isHeld);
      reached_.insert(done ? "append and attend" : "append and attend, refused");
      if (!done) return;
      cache_.sequences = std::move(sequences);
      expect(step.results, std::move(expected));
    });
  }
  // Appends in an encoder that is never committed.
  void abandon() {
    {
      CommandEncoder encoder(device_);
      const std::vector<ModeledSequence> before = cache_.sequences;
      append(encoder, anyRows());
      cache_.sequences = before;
    }
    check();
  }

  // Truncates; to 0 also by a reset.
  void truncate() {
    if (coin(random_, 1, 12)) {
      cache_.cache.reset();
      for (ModeledSequence& sequence : cache_.sequences) cache_.slots.cut(sequence, 0);
      return check();
    }
    const uint32_t sequence = anySequence();
    truncateTo(random_.below(next(sequence) + 2), sequence);
  }
  void truncateTo(uint64_t position, uint32_t sequence) {
    ModeledSequence& of = cache_.sequences[sequence];
    const bool isPossible = cache_.canCut(of, position), hasLost = cache_.slots.hasLost(of);
    const auto cut = position == 0 ? cache_.cache.reset(sequence) : cache_.cache.truncate(position, sequence);
    EXPECT_EQ(bool(cut), isPossible);
    reached_.insert(!isPossible ? "cut, refused" : hasLost ? "cut of a ring that has wrapped" : "cut");
    if (isPossible) cache_.slots.cut(of, position);
    check();
  }

  void copy() {
    const uint32_t source = anySequence(), target = anySequence();
    run([&](CommandEncoder& encoder) {
      REQUIRE(cache_.cache.copy(encoder, source, target));
      cache_.sequences[target] = ModeledSequence(cache_.sequences[source]);
      reached_.insert(cache_.slots.hasLost(cache_.sequences[source]) ? "copy of a ring that has wrapped" : "copy");
      if (next(target) != 0) attend(encoder, {{target}, {1}}, anyOptions({{target}, {1}}, cache_.descriptor()), false);
    });
  }
  // Copies to a cache with other slots, from which later calls take prefixes.
  void copyElsewhere() {
    AttentionCacheDescriptor descriptor = cache_.descriptor();
    descriptor.slidingWindow.reset();
    if (coin(random_, 1, 3)) descriptor.whenFull = KVWrap::linear, descriptor.pinned = 0;
    descriptor.capacity = std::max<uint32_t>(descriptor.pinned, descriptor.capacity / 2) + 1 +
                          static_cast<uint32_t>(random_.below(descriptor.capacity + 2));
    ModeledCache other(makeCache(device_, descriptor));
    other.appendNow(device_, random_, 1, 0);
    const uint32_t source = anySequence();
    auto moved = other.slots.moved(cache_.sequences[source], cache_.slots);
    run([&](CommandEncoder& encoder) {
      EXPECT_EQ(bool(cache_.cache.copy(encoder, source, other.cache, 0)), moved.has_value());
    });
    reached_.insert(moved ? "copy elsewhere" : "copy elsewhere, refused");
    if (moved) other.sequences[0] = *std::move(moved);
    other.check();
    prompts_.emplace(other);
  }

  // Continues with a larger cache.
  void grow() {
    const uint32_t capacity = cache_.descriptor().capacity + static_cast<uint32_t>(random_.below(6));
    run([&](CommandEncoder& encoder) {
      ModeledCache larger(REQUIRE(cache_.cache.grown(encoder, capacity)));
      takeOver(larger, "growth");
    });
  }
  // Continues with the cache of a file, which may get another capacity.
  void saveAndLoad() {
    AttentionCacheDescriptor descriptor = cache_.descriptor();
    const bool isResized = !descriptor.slidingWindow && coin(random_, 1, 2);
    if (isResized)
      descriptor.capacity = descriptor.pinned + 1 + static_cast<uint32_t>(random_.below(descriptor.capacity + 4));
    REQUIRE(cache_.cache.save(folder_.path()));
    const auto loaded = AttentionCache::load(device_, folder_.path(), UINT32_MAX, isResized ? descriptor.capacity : 0);
    const ModeledSlots slots = slotsOf(descriptor);
    const bool fits = std::ranges::all_of(cache_.sequences, [&](const ModeledSequence& sequence) {
      return slots.moved(sequence, cache_.slots).has_value();
    });
    EXPECT_EQ(bool(loaded), fits);
    reached_.insert(!fits ? "load, refused" : isResized ? "load with another capacity" : "load");
    if (!loaded) return;
    if (!isResized) expectSame(*loaded, cache_.cache);
    ModeledCache same(*loaded);
    takeOver(same, "file");
    check();
  }
  // Continues with a quantized copy of a dense cache.
  void quantize() {
    const AttentionCacheDescriptor& d = cache_.descriptor();
    if (d.quantized || d.headDim < 32) return;
    run([&](CommandEncoder& encoder) {
      ModeledCache quantized(REQUIRE(cache_.cache.quantized(encoder, anyStorage(device_, random_, d))));
      EXPECT(quantized.descriptor().slidingWindow == d.slidingWindow);
      takeOver(quantized, "quantized copy");
      // Codes are those of what the dense cache held.
      for (ModeledSequence& sequence : cache_.sequences) {
        std::vector<float> keys, values;
        for (const ModeledToken& token : sequence.tokens) {
          keys.insert(keys.end(), token.key.begin(), token.key.end());
          values.insert(values.end(), token.value.begin(), token.value.end());
        }
        sequence.tokens = cache_.stored(device_, keys, values);
      }
      reachStorage();
    });
  }
  // Reads positions, in the same encoder as an append.
  void dequantize() {
    const AttentionCacheDescriptor& d = cache_.descriptor();
    if (!d.quantized) return;
    run([&](CommandEncoder& encoder) {
      append(encoder, anyRows());
      const uint32_t sequence = anySequence();
      const ModeledSequence& of = cache_.sequences[sequence];
      const uint64_t begin = random_.below(of.next() + 1), count = 1 + random_.below(4);
      const Tensor keys = tokens(device_, count, d.kvHeads, d.headDim);
      const Tensor values = tokens(device_, count, d.kvHeads, d.valueHeadDim);
      std::vector<double> expectedKeys, expectedValues;
      // Positions before the ring and in it are read apart.
      bool isHeld = begin + count <= of.next() &&
                    (begin + count <= cache_.slots.pinned || begin >= cache_.slots.pinned || !cache_.slots.hasLost(of));
      for (uint64_t position = begin; isHeld && position < begin + count; ++position) {
        isHeld = cache_.slots.keeps(of, position);
        const ModeledToken& token = of.tokens[position];
        expectedKeys.insert(expectedKeys.end(), token.key.begin(), token.key.end());
        expectedValues.insert(expectedValues.end(), token.value.begin(), token.value.end());
      }
      EXPECT_EQ(bool(cache_.cache.dequantize(encoder, keys, values, begin, sequence)), isHeld);
      reached_.insert(isHeld ? "dequantize" : "dequantize, refused");
      if (!isHeld) return;
      expected_.push_back({keys, std::move(expectedKeys), 0});
      expected_.push_back({values, std::move(expectedValues), 0});
    });
  }

 private:
  struct Expected {
    Tensor got;
    std::vector<double> numbers;
    double tolerance = kF32Sums;
  };
  struct Prefix {
    const ModeledCache* cache;
    uint32_t sequence;

    const std::vector<ModeledToken>& tokens() const { return cache->sequences[sequence].tokens; }
  };

  template <typename Body>
  void run(Body body) {
    const ModeledCache before = cache_;
    CommandEncoder encoder(device_);
    body(encoder);
    before.checkPositions();  // they advance when the encoder is committed
    REQUIRE(REQUIRE(encoder.commit()).wait());
    check();
  }
  void check() {
    for (const Expected& each : expected_) {
      EXPECT(largestDifference(floatsOf(each.got), each.numbers) <= each.tolerance);
    }
    expected_.clear();
    cache_.check();
    if (prompts_) prompts_->check();
  }

  void reachStorage() {
    const auto& d = cache_.descriptor();
    if (!d.quantized) reached_.insert(fmt::format("dense {}", name(d.dtype)));
    if (d.quantized) reached_.insert(fmt::format("planes {}", static_cast<int>(d.quantized->planes)));
    if (d.quantized) reached_.insert(fmt::format("codec {}", static_cast<int>(d.quantized->codec)));
  }
  void takeOver(ModeledCache& other, const char* what) {
    for (uint32_t sequence = 0; sequence < kSequences; ++sequence) {
      if (cache_.slots.hasLost(cache_.sequences[sequence]))
        reached_.insert(fmt::format("{} of a ring that has wrapped", what));
      auto moved = other.slots.moved(cache_.sequences[sequence], cache_.slots);
      if (!moved) return fail(__FILE__, __LINE__, "does not fit");
      other.sequences[sequence] = *std::move(moved);
    }
    cache_ = other;
  }

  bool canAttend() const { return !cache_.descriptor().isStorageOnly; }
  Numbers someQueries(const Rows& rows) {
    return someNumbers(rows, kProgramHeads, cache_.descriptor().headDim + cache_.descriptor().latentDim);
  }
  Numbers someKeys(const Rows& rows) {
    return someNumbers(rows, cache_.descriptor().kvHeads, cache_.descriptor().headDim);
  }
  Numbers someValues(const Rows& rows) {
    return someNumbers(rows, cache_.descriptor().kvHeads, cache_.descriptor().valueHeadDim);
  }
  bool hasRoom(const Rows& rows) const {
    if (cache_.slots.isRing) return true;
    std::map<uint32_t, uint64_t> ends;
    for (size_t i = 0; i < rows.sequences.size(); ++i) {
      ends.try_emplace(rows.sequences[i], next(rows.sequences[i])).first->second += rows.counts[i];
    }
    return std::ranges::all_of(ends, [&](const auto& end) { return end.second <= cache_.slots.capacity; });
  }

  // Returns false if the rows do not fit.
  bool append(CommandEncoder& encoder, const Rows& rows) {
    const Numbers keys = someKeys(rows), values = someValues(rows);
    const Form form = anyForm(rows);
    CacheStep step = listed(rows, form);
    step.keys = view(keys, rows, form), step.values = view(values, rows, form);
    const bool isOne = rows.sequences.size() == 1 && coin(random_, 1, 2), fits = hasRoom(rows);
    const auto appended = isOne ? cache_.cache.append(encoder, step.keys, step.values, rows.sequences[0])
                                : cache_.cache.append(encoder, step);
    EXPECT_EQ(bool(appended), fits);
    reached_.insert(fits ? "append" : "append, refused");
    if (!fits) return false;
    std::vector<ModeledToken> tokens = cache_.stored(device_, keys.elements, values.elements);
    for (size_t i = 0, row = 0; i < rows.sequences.size(); ++i) {
      for (uint64_t end = row + rows.counts[i]; row < end; ++row) {
        cache_.slots.append(cache_.sequences[rows.sequences[i]], std::move(tokens[row]));
      }
    }
    return true;
  }

  void attend(CommandEncoder& encoder, const Rows& rows, RowOptions options, bool mustSucceed) {
    if (!canAttend()) return;
    const std::vector<Prefix> prefixes = anyPrefixes(rows, options);
    const Numbers queries = someQueries(rows);
    ModeledRows expected;
    bool isHeld = true;
    for (uint64_t i = 0, row = 0; i < rows.sequences.size(); ++i) {
      uint64_t behind = 0;
      for (size_t later = i; later < rows.sequences.size(); ++later) {
        if (rows.sequences[later] == rows.sequences[i]) behind += rows.counts[later];
      }
      const ModeledSequence& sequence = cache_.sequences[rows.sequences[i]];
      for (uint64_t at = 0; at < rows.counts[i]; ++at, ++row) {
        isHeld = see(expected, sequence, sequence.next() - behind + at, queries, row, options, prefixes) && isHeld;
      }
    }
    const Form form = anyForm(rows);
    CacheStep step = listed(rows, form);
    step.queries = view(queries, rows, form), step.results = someResults(rows, cache_.descriptor().valueHeadDim);
    step.options = attentionOptions(options), step.after = pass(prefixes);
    const bool isOne = rows.sequences.size() == 1 && prefixes.empty() && coin(random_, 1, 2);
    const uint64_t dispatches = encoder.summary().total.dispatches;
    const auto attended =
        isOne ? cache_.cache.attend(encoder, step.queries, step.results, step.options, rows.sequences[0])
              : cache_.cache.attend(encoder, step);
    EXPECT_EQ(bool(attended), isHeld);
    if (mustSucceed) EXPECT(isHeld);
    reached_.insert(isHeld ? "attend" : "attend, refused");
    if (!attended) return;
    // Few rows of all sequences share a dispatch.
    const bool isOnce = options.splits == 1 && prefixes.empty() && rows.total() != 0 && rows.total() <= 8;
    if (isOnce) EXPECT_EQ(encoder.summary().total.dispatches - dispatches, 1u);
    const auto hasLost = [&](uint32_t sequence) { return cache_.slots.hasLost(cache_.sequences[sequence]); };
    if (std::ranges::any_of(rows.sequences, hasLost)) reached_.insert("attend over what a ring has kept");
    expect(step.results, std::move(expected));
  }

  // Adds what a row at a position makes of what it sees of prefixes and of its own sequence. False if it cannot.
  bool see(ModeledRows& into, const ModeledSequence& sequence, uint64_t position, const Numbers& queries, uint64_t row,
           RowOptions options, const std::vector<Prefix>& prefixes) const {
    if (options.window == 0) options.window = cache_.window();
    const auto own = cache_.slots.seen(sequence, position, options);
    if (!own) return false;
    uint64_t before = 0;
    for (const Prefix& prefix : prefixes) before += prefix.tokens().size();
    std::vector<SeenToken> seen;
    uint64_t at = 0;
    for (const Prefix& prefix : prefixes) {
      for (const ModeledToken& token : prefix.tokens()) {
        if (options.window == 0 || at + options.window > before + position) seen.push_back({at, &token});
        ++at;
      }
    }
    for (const uint64_t each : *own) seen.push_back({before + each, &sequence.tokens[each]});
    const uint64_t length = queries.heads * queries.dim;
    const AttentionCacheDescriptor& d = cache_.descriptor();
    attendRow(into, {d.kvHeads, d.headDim, d.valueHeadDim, d.latentDim},
              std::span(queries.elements).subspan(row * length, length), queries.heads, before + position, seen,
              options);
    return true;
  }
  void expect(const AttentionResults& results, ModeledRows expected) {
    expected_.push_back({*results.output, std::move(expected.output)});
    if (results.logSumExp) expected_.push_back({*results.logSumExp, std::move(expected.logSumExp)});
  }

  // Sequences that have lost nothing and are not those of the rows, sometimes. They exclude pinned positions.
  std::vector<Prefix> anyPrefixes(const Rows& rows, RowOptions& options) {
    if (!options.isCausal) reached_.insert("attention that is not causal");
    if (!options.slopes.empty()) reached_.insert("slopes and sinks");
    if (options.window != 0) reached_.insert(options.seesPinned ? "a window and pinned positions" : "a window");
    std::vector<Prefix> prefixes;
    for (const ModeledCache* cache : {prompts_ ? &*prompts_ : &cache_, &cache_}) {
      for (uint32_t sequence = 0; sequence < cache->sequences.size(); ++sequence) {
        const bool isOwn = cache == &cache_ && std::ranges::count(rows.sequences, sequence) != 0;
        const bool isAgain = std::ranges::any_of(
            prefixes, [&](const Prefix& each) { return each.cache == cache && each.sequence == sequence; });
        const ModeledSequence& of = cache->sequences[sequence];
        const bool isPossible = !isOwn && !isAgain && of.next() != 0 && !cache->slots.hasLost(of) &&
                                (options.window != 0 || cache->window() == cache_.window());
        if (isPossible && coin(random_, 1, 6)) prefixes.push_back({cache, sequence});
      }
    }
    if (prefixes.empty()) return {};
    options.seesPinned = false;
    reached_.insert(prefixes.size() == 1 ? "a prefix" : "several prefixes");
    return prefixes;
  }
  static std::vector<CachePrefix> pass(const std::vector<Prefix>& prefixes) {
    std::vector<CachePrefix> after;
    for (const Prefix& prefix : prefixes) after.push_back({prefix.cache->cache, prefix.sequence});
    return after;
  }

  ModeledCache cache_;
  std::optional<ModeledCache> prompts_;  // another cache of the same dims
  const CacheFolder& folder_;
  std::vector<Expected> expected_;
};

// What programs reach together, in the order of the alphabet.
constexpr std::string_view kReached =
    "a list without counts; a prefix; a row without axes; a sequence that is listed again; a sliding window; "
    "a window; a window and pinned positions; an axis of sequences; append; append and attend; "
    "append and attend, refused; append, refused; attend; attend over what a ring has kept; attend, refused; "
    "attention that is not causal; codec 0; codec 1; codec 2; codec 3; copy; copy elsewhere; copy elsewhere, refused; "
    "copy of a ring that has wrapped; cut; cut of a ring that has wrapped; cut, refused; dense bf16; dense f16; "
    "dense f32; dequantize; dequantize, refused; file of a ring that has wrapped; growth of a ring that has wrapped; "
    "latent; load; load with another capacity; load, refused; planes 0; planes 1; planes 2; "
    "quantized copy of a ring that has wrapped; several prefixes; slopes and sinks; storage only";

// With MNK_TEST_FULL=1, as many as this.
uint64_t programCount(uint64_t byDefault) {
  const char* value = std::getenv("MNK_TEST_FULL");
  return value != nullptr && std::string_view(value) == "1" ? 50'000 : byDefault;
}

void runAnyCalls(AttentionCacheProgram& program, Seeded& random) {
  using Program = AttentionCacheProgram;
  constexpr void (Program::*kCalls[])() = {&Program::step,
                                           &Program::step,
                                           &Program::step,
                                           &Program::step,
                                           &Program::step,
                                           &Program::attendAgain,
                                           &Program::truncate,
                                           &Program::truncate,
                                           &Program::appendAndAttend,
                                           &Program::appendAndAttend,
                                           &Program::appendAndAttend,
                                           &Program::copy,
                                           &Program::copyElsewhere,
                                           &Program::abandon,
                                           &Program::grow,
                                           &Program::saveAndLoad,
                                           &Program::quantize,
                                           &Program::dequantize};
  for (uint64_t calls = 2 + random.below(6); calls != 0; --calls) (program.*kCalls[random.below(std::size(kCalls))])();
}

// A sliding-window cache never refuses steps within its descriptor's limits, or rolling back drafts.
void runSlidingWindow(AttentionCacheProgram& program, const SlidingWindow& sliding, Seeded& random) {
  for (uint64_t steps = 3 + random.below(8); steps != 0; --steps) {
    const bool seesPinned = coin(random, 1, 2);
    const uint64_t before = program.next();
    if (coin(random, 1, 2)) {
      program.mustStep(1 + random.below(sliding.maxRows), seesPinned);
      continue;
    }
    // A draft in steps of at most maxRows; only some of its tokens are accepted.
    const uint64_t draft = random.below(sliding.maxDraft + 1);
    for (uint64_t left = draft; left != 0;) {
      const uint64_t rows = 1 + random.below(std::min<uint64_t>(left, sliding.maxRows));
      program.mustStep(rows, seesPinned);
      left -= rows;
    }
    program.truncateTo(before + random.below(draft + 1), 0);
  }
}

template <typename Body>
void runPrograms(uint64_t stream, uint64_t count, Body body) {
  const auto& devices = devicesUnderTest();
  for (uint64_t i = 0; i < programCount(count); ++i) {
    const DeviceUnderTest& under = devices[i % devices.size()];
    const Context context(fmt::format("{}, program {}", under.name, i));
    Seeded random(stream + 2 * i);
    body(under.device, random);
  }
}

}  // namespace

TEST(AttentionCacheProperty, RowsSeeSelectedPositionsOrFail) {
  const CacheFolder folder;
  std::set<std::string> reached;
  runPrograms(0, 1000, [&](const std::shared_ptr<Device>& device, Seeded& random) {
    AttentionCacheProgram program(device, anyDescriptor(device, random), random, folder, reached);
    runAnyCalls(program, random);
  });
  EXPECT_EQ(fmt::format("{}", fmt::join(reached, "; ")), kReached);
}

TEST(AttentionCacheProperty, ASlidingWindowCacheServesItsLimits) {
  const CacheFolder folder;
  std::set<std::string> reached;
  runPrograms(1, 400, [&](const std::shared_ptr<Device>& device, Seeded& random) {
    const SlidingWindow sliding{.window = static_cast<uint32_t>(1 + random.below(9)),
                                .maxRows = static_cast<uint32_t>(1 + random.below(6)),
                                .maxDraft = static_cast<uint32_t>(random.below(6))};
    const AttentionCacheDescriptor descriptor{.kvHeads = 2,
                                              .headDim = 8,
                                              .valueHeadDim = 16,
                                              .sequences = kSequences,
                                              .dtype = DType::f32,
                                              .pinned = static_cast<uint32_t>(random.below(3)),
                                              .slidingWindow = sliding};
    AttentionCacheProgram program(device, descriptor, random, folder, reached);
    runSlidingWindow(program, sliding, random);
  });
}

}  // namespace mnk::test
