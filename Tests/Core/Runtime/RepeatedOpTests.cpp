// Repeated ops are encoded byte for byte like fresh plans, whatever changes between repetitions.
#include <map>
#include <thread>

#include "Runtime/RepeatedOp.hpp"

#include "Harness/Seeded.hpp"
#include "Harness/TimedDevice.hpp"
#include "Ops/Common/BindingCases.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

std::shared_ptr<FakeDevice> makeDevice() {
  auto device = FakeDevice::make();
  device->itsProfile = {.family = "apple9", .cores = 10, .ordersThreadgroups = true};
  return device;
}

// Encodes the op through known plans and from a fresh plan, and compares both. True if both could be encoded. The
// encoders first encode `before`, if any.
template <typename Op>
bool expectFresh(const Op& op, const std::shared_ptr<FakeDevice>& device, const Op* before = nullptr) {
  CommandEncoder repeated(device), fresh(device);
  std::vector<Dispatch> dispatches;
  for (const Op* each : {before, &op}) {
    if (!each) continue;
    const Result<Plan> planned = planFor(*each, device.get());
    const Result<void> got = repeated.encode(*each), expected = fresh.encode(planned);
    expectSameError(errorOf(got), errorOf(expected));
    if (!got || !expected) {
      if (each == &op) return false;
      continue;
    }
    dispatches.insert(dispatches.end(), planned->dispatches.begin(), planned->dispatches.end());
  }
  EXPECT_EQ(repeated.summary().text(), fresh.summary().text());
  // On a thread of its own, because both use the same memory and the other step is still open.
  std::thread([&] { REQUIRE(repeated.commit()); }).join();
  REQUIRE(fresh.commit());
  const auto committed = device->takeCommitted();
  expectSameDispatches(committed[0], committed[1], dispatches);
  for (size_t i = 0; i < committed[1].dispatches.size(); ++i) {
    EXPECT(committed[0].dispatches[i].threadgroup == committed[1].dispatches[i].threadgroup);
    EXPECT(committed[0].dispatches[i].pipeline == committed[1].dispatches[i].pipeline);
  }
  return true;
}

// Moves to another step of a sequence, possibly one that is refused.
template <typename Op>
void move(Op&, Seeded&) {}

template <typename Store>
void moveStore(Store& op, const KVCacheView& cache, Seeded& random) {
  op.position = random.below(2 * cache.capacity() + 2);
  op.sequence = random.below(cache.sequences() + (random.below(8) == 0 ? 1 : 0));
  if (!op.rows) return;
  const bool isRefused = random.below(8) == 0, wraps = cache.wrap == KVWrap::ring || isRefused;
  if (auto* list = std::get_if<std::vector<uint32_t>>(&op.rows->sequences)) {
    for (uint32_t& sequence : *list) sequence = random.below(cache.sequences() + isRefused);
  }
  if (auto* list = std::get_if<std::vector<uint32_t>>(&op.rows->positions)) {
    for (uint32_t& position : *list) position = random.below(cache.capacity() * (wraps ? 3 : 1));
  }
}
void move(KVCacheWrite& op, Seeded& random) {
  moveStore(op, op.into, random);
}
void move(KVCacheQuantize& op, Seeded& random) {
  moveStore(op, op.into.codes(), random);
}

void move(MultiRoPE& op, Seeded& random) {
  const auto position = [&] { return static_cast<int32_t>(random.below(1 << 20)) - 1000; };
  if (auto* first = std::get_if<int64_t>(&op.positions.source)) {
    *first = random.below(16) == 0 ? int64_t{1} << 31 : position();
  }
  if (auto* list = std::get_if<RotaryPositions::List>(&op.positions.source)) {
    for (int32_t& number : list->numbers) number = position();
  }
  if (auto* list = op.offsets ? std::get_if<std::vector<int32_t>>(&*op.offsets) : nullptr) {
    for (int32_t& number : *list) number = position();
  }
}

void move(FlashDecode& op, Seeded& random) {
  const auto* quantized = std::get_if<QuantizedKVCacheView>(&op.cache);
  const KVCacheView cache = quantized ? quantized->codes() : std::get<KVCacheView>(op.cache);
  for (AttendedSequence& attended : op.sequences) {
    if (random.below(4) != 0) {
      attended.length = random.below(cache.capacity() + (cache.wrap == KVWrap::ring ? cache.capacity() : 2));
    }
    attended.highest = random.below(3) == 0 ? attended.length + random.below(3) : 0;
    attended.sequence = random.below(cache.sequences() + (random.below(16) == 0 ? 1 : 0));
  }
  // Row counts are not positions: another count makes another form.
  if (op.sequences.size() > 1 && random.below(2) == 0) std::swap(op.sequences.front().rows, op.sequences.back().rows);
}

// The sequence returns to its position, but a ring has lost the tokens that were overwritten.
void appendAndTakeBack(AttentionCache& cache, uint32_t sequence, BindingMemory& memory,
                       const std::shared_ptr<FakeDevice>& device) {
  const Tensor tokens = memory.make(DType::f16, {2, 2, 32});
  const uint64_t before = *cache.nextPosition(sequence);
  CommandEncoder encoder(device);
  if (!cache.append(encoder, tokens, tokens, sequence)) return;
  REQUIRE(encoder.commit());
  (void)cache.truncate(before, sequence);
}

KVQuantizedPlanes drawnPlanes(Seeded& random) {
  return oneOf(random, {KVQuantizedPlanes::both, KVQuantizedPlanes::keys, KVQuantizedPlanes::values});
}

// How a step calls two caches.
struct DrawnStep {
  std::vector<uint32_t> sequences = {0};
  std::optional<std::vector<uint32_t>> rowCounts = {};
  uint64_t tokens = 1, first = 0;
  uint32_t window = 0, positions = 0;
  int32_t last = 0;
  bool isRotated = false, isOneCall = false, isFused = false, hasOffsets = false, hasFactors = false;
  bool usesFirst = true, usesSecond = true;  // of the caches
  bool copies = false, reads = false;        // the first sequence to the other one, and its first token

  DrawnStep() = default;
  // Many tokens at first, so that a ring wraps, a linear cache fills up, and long sequences are split.
  DrawnStep(Seeded& random, int step, uint32_t variant)
      : first(random.below(1 << 20)),
        window(random.below(4) == 0 ? 8 : 0),
        positions(static_cast<uint32_t>(random.below(6))),
        last(static_cast<int32_t>(random.below(300))),
        isRotated(variant & 4),
        isOneCall(variant & 8),
        isFused(random.below(3) == 0),
        hasOffsets(random.below(4) == 0),
        hasFactors(variant % 3 == 0),
        usesFirst(random.below(12) != 0),
        usesSecond(random.below(12) != 0),
        copies(random.below(12) == 0),
        reads(random.below(4) == 0) {
    const uint64_t many = variant & 16 ? 30 + random.below(300) : 12;
    tokens = step < 2 ? many : random.below(4) == 0 ? 1 + random.below(4) : 1;
    sequences = {step < 2 ? step : static_cast<uint32_t>(random.below(2))};
    if (step < 2 || random.below(2) == 0) return;
    // Both sequences, in any order: one token of each, more, or unequal numbers, which rows count.
    sequences = random.below(2) == 0 ? std::vector{0u, 1u} : std::vector{1u, 0u};
    tokens *= 2;
    const auto ofFirst = static_cast<uint32_t>(tokens > 2 && random.below(2) == 0 ? 1 : tokens / 2);
    if (tokens > 2 || random.below(2) == 0) rowCounts = {ofFirst, static_cast<uint32_t>(tokens) - ofFirst};
  }

  // A recording takes no numbers, which would stay while the cache advances.
  bool canBeRecorded() const { return !isRotated || positions > 1; }
  // As numbers, in a tensor, or the next ones of the cache: left out, or asked for.
  std::optional<RotaryPositions> positionsOf(const AttentionCache& cache, BindingMemory& memory) const {
    std::vector<int32_t> numbers(tokens, static_cast<int32_t>(first));
    numbers.back() = last;
    if (positions == 0) return RotaryPositions(first);
    if (positions == 1) return RotaryPositions(numbers);
    if (positions == 2) return RotaryPositions(memory.make(DType::i32, {tokens}));
    if (positions == 3 && isOneCall) return std::nullopt;
    return cache.nextPositions(sequences, rowCounts);
  }
};

// Two caches on a device of their own, and a step that was recorded there.
struct LayersOnDevice {
  std::shared_ptr<FakeDevice> device = makeDevice();
  std::vector<AttentionCache> caches;
  BindingMemory memory{device};
  std::optional<RecordedStep> step = {};

  explicit LayersOnDevice(const AttentionCacheDescriptor& descriptor) {
    for (int layer = 0; layer < 2; ++layer) {
      caches.push_back(REQUIRE(AttentionCache::make(device, descriptor)));
      names_[caches.back().view().keys.buffer().get()] = -1 - 2 * layer;
      names_[caches.back().view().values->buffer().get()] = -2 - 2 * layer;
    }
  }

  Result<void> run(const DrawnStep& drawn, bool forgetsPlans) {
    CommandEncoder encoder(device);
    MNK_TRY(encode(encoder, drawn, forgetsPlans));
    REQUIRE(encoder.commit());
    return {};
  }
  void record(const DrawnStep& drawn) {
    step.reset();
    if (!drawn.canBeRecorded()) return;
    auto made = RecordedStep::record(device, [&](CommandEncoder& encoder) { return encode(encoder, drawn, false); });
    // Steps are also parts of steps.
    if (made && drawn.reads) made = RecordedStep::record(device, [&](CommandEncoder& e) { return made->encode(e); });
    if (made) step = std::move(*made);
  }
  Result<void> runStep() const {
    MNK_TRY(step->run());
    return {};
  }
  // The memory that dispatches bind, by numbers that are equal on each device.
  std::vector<int> memoryOf(const FakeDevice::Recorded& recorded) const {
    std::vector<int> numbers;
    for (const ReadyDispatch& ready : recorded.dispatches) {
      for (const Binding& binding : ready.dispatch.buffers) {
        const auto found = names_.find(binding.buffer.get());
        numbers.push_back(found == names_.end() ? 0 : found->second);
      }
    }
    return numbers;
  }

 private:
  Tensor make(DType dtype, std::initializer_list<uint64_t> extents) {
    Tensor tensor = memory.make(dtype, extents);
    names_[tensor.buffer().get()] = ++made_;
    return tensor;
  }
  Result<void> encode(CommandEncoder& encoder, const DrawnStep& drawn, bool forgetsPlans) {
    made_ = 0;
    for (AttentionCache& cache : caches) {
      if (!(&cache == &caches.front() ? drawn.usesFirst : drawn.usesSecond)) continue;
      if (forgetsPlans) device->planCache().clear();
      const uint64_t tokens = drawn.tokens;
      CacheStep call{.queries = make(DType::f16, {tokens, 4, 32}),
                     .keys = make(DType::f16, {tokens, 2, 32}),
                     .values = make(DType::f16, {tokens, 2, 32}),
                     .results = {.output = make(DType::f16, {tokens, 4, 32})},
                     .options = {.window = drawn.window},
                     .sequences = drawn.sequences,
                     .rowCounts = drawn.rowCounts};
      if (drawn.isFused) {
        const Tensor fused = make(DType::f16, {tokens, 8 * 32});
        call.queries = REQUIRE(HeadsView::columns(fused, 0, 4, 32));
        call.keys = REQUIRE(HeadsView::columns(fused, 4 * 32, 2, 32));
        call.values = REQUIRE(HeadsView::columns(fused, 6 * 32, 2, 32));
      }
      if (drawn.isRotated) {
        RotaryStep& rotary = call.rotary.emplace();
        rotary.positions = drawn.positionsOf(cache, memory);
        if (drawn.hasOffsets) rotary.offsets = std::vector<int32_t>{drawn.last};
        if (drawn.hasFactors) rotary.embedding.frequencyFactors.assign(16, 1.5f);
      }
      if (drawn.isOneCall) {
        MNK_TRY(cache.appendAndAttend(encoder, call));
        continue;
      }
      if (const auto rotary = std::exchange(call.rotary, {})) {
        MNK_TRY(encoder.encode(MultiRoPE{.queries = call.queries,
                                         .keys = call.keys,
                                         .positions = *rotary->positions,
                                         .offsets = rotary->offsets,
                                         .rotary = rotary->embedding}));
      }
      MNK_TRY(cache.append(
          encoder,
          {.keys = call.keys, .values = call.values, .sequences = call.sequences, .rowCounts = call.rowCounts}));
      call.keys = call.values = {};
      MNK_TRY(cache.attend(encoder, call));
      if (drawn.copies) MNK_TRY(cache.copy(encoder, drawn.sequences[0], 1 - drawn.sequences[0]));
      if (drawn.reads && cache.quantizedView() && cache.descriptor().whenFull == KVWrap::linear) {
        MNK_TRY(cache.dequantize(encoder, make(DType::f16, {1, 2, 32}), {}, 0, drawn.sequences[0]));
      }
    }
    return {};
  }

  std::map<const Buffer*, int> names_;  // of a call's tensors, and of its caches
  int made_ = 0;
};

}  // namespace

// All cases of all ops, each in several steps with other positions and memory. The cases share a device, so the test
// finds a form that omits a difference between two cases.
TEST(RepeatedOp, MatchesAFreshPlan) {
  Seeded random(7);
  uint32_t encoded = 0, refused = 0;
  size_t forms = 0, cases = 0;
  const auto device = makeDevice();
  for (const BindingCase& one : bindingCases()) {
    const Context context(one.name);
    BindingMemory first(device), second(device);
    AnyOp ops[] = {one.makeOp(first), one.makeOp(second)};
    const size_t before = device->planCache().count();
    const bool isGood = std::visit([&](const auto& op) { return expectFresh(op, device); }, ops[0]);
    const size_t known = device->planCache().count();
    for (const int step : {1, 2, 3}) {
      const Context context(fmt::format("step {}", step));
      // Odd steps use other memory, and all but the first change positions.
      AnyOp& op = ops[step % 2];
      if (step > 1) std::visit([&](auto& moved) { move(moved, random); }, op);
      const bool isEncoded = std::visit(
          [&]<typename Op>(const Op& moved) { return expectFresh(moved, device, std::get_if<Op>(&ops[1 - step % 2])); },
          op);
      ++(isEncoded ? encoded : refused);
      // Other memory does not make another form.
      if (step == 1) EXPECT_EQ(device->planCache().count(), known);
    }
    if (isGood) forms += known != before, ++cases;
  }
  EXPECT(encoded > 1000);
  EXPECT(refused > 100);
  EXPECT(forms > cases / 4);  // many cases are cached
}

// A growing sequence passes through several split counts; the second time all their plans are known.
TEST(RepeatedOp, ASequenceGrowsThroughKnownPlans) {
  enum class Storage { dense, quantized, latent };
  for (const Storage storage : {Storage::dense, Storage::quantized, Storage::latent}) {
    const Context context(fmt::format("storage {}", static_cast<int>(storage)));
    const auto device = makeDevice();
    BindingMemory memory(device);
    const bool isLatent = storage == Storage::latent;
    const uint64_t heads = isLatent ? 1 : 8;  // with more, the device would be probed
    FlashDecode op{.queries = memory.make(DType::f16, {heads, isLatent ? 576u : 64u})};
    if (storage == Storage::quantized) {
      QuantizedKVCacheView view{.keys = REQUIRE(QuantizedKVPlane::zeros(device, {}, 2, 64, 4096))};
      view.values = REQUIRE(QuantizedKVPlane::zeros(device, {}, 2, 64, 4096));
      op.cache = view;
    } else if (isLatent) {
      op.cache = KVCacheView{.keys = memory.make(DType::f16, {1, 4096, 576}), .latentDim = 512};
      op.options.scale = 1;
    } else {
      op.cache =
          KVCacheView{.keys = memory.make(DType::f16, {2, 4096, 64}), .values = memory.make(DType::f16, {2, 4096, 64})};
    }
    op.results.output = memory.make(DType::f16, {heads, isLatent ? 512u : 64u});
    size_t known = 0;
    for (const bool isAgain : {false, true}) {
      for (uint64_t length = 1; length <= 4096; length += length / 16 + 1) {
        op.sequences = {{.length = length}};
        EXPECT(expectFresh(op, device));
      }
      if (isAgain) EXPECT_EQ(device->planCache().count(), known);
      known = device->planCache().count();
    }
    EXPECT(known > 3);
    EXPECT(known < 64);
  }
}

// Overlapping memory is checked again although the form is known.
TEST(RepeatedOp, RefusesSharedMemoryLikeAFreshPlan) {
  const auto device = makeDevice();
  BindingMemory memory(device);
  const Tensor all = memory.make(DType::f16, {64, 8, 64});
  const auto part = [&](uint64_t begin) { return REQUIRE(all.slice(begin, 1)); };
  const KVCacheView cache{.keys = memory.make(DType::f16, {8, 16, 64}), .values = memory.make(DType::f16, {8, 16, 64})};
  uint32_t encoded = 0;
  for (const uint64_t into : {8, 9, 8, 0, 1, 2, 8}) {
    FlashDecode op{.queries = part(1), .cache = cache, .sequences = {{.length = 4}}};
    op.results.output = part(into);
    encoded += expectFresh(op, device);
    MultiRoPE rope{.queries = part(1)};
    rope.rotatedQueries = part(into);
    encoded += expectFresh(rope, device);
    KVCacheWrite write{.keys = part(1), .values = HeadsView(part(into)), .into = cache};
    encoded += expectFresh(write, device);
    write.keys = HeadsView(REQUIRE(REQUIRE(cache.keys.reshaped(REQUIRE(Shape::make({16, 8, 64})))).slice(into, 1)));
    EXPECT(!expectFresh(write, device));
  }
  EXPECT_EQ(encoded, 7u + 6u + 7u);
}

TEST(RepeatedOp, AnotherAlignmentIsAnotherForm) {
  const auto device = makeDevice();
  BindingMemory memory(device);
  const KVCacheView cache{.keys = memory.make(DType::f16, {8, 16, 64}), .values = memory.make(DType::f16, {8, 16, 64})};
  for (const uint64_t shift : {0, 2, 16, 8, 4, 0, 64}) {
    const Shape shape = REQUIRE(Shape::make({8, 64}));
    const KVCacheWrite op{.keys = memory.make(DType::f16, shape, shift),
                          .values = HeadsView(memory.make(DType::f16, shape, shift)),
                          .into = cache};
    EXPECT(expectFresh(op, device));
  }
}

TEST(RepeatedOp, RefusesMemoryOfAnotherDevice) {
  const auto device = makeDevice(), other = makeDevice();
  BindingMemory memory(device), elsewhere(other);
  MultiRoPE op{.queries = memory.make(DType::f16, {8, 64})};
  EXPECT(expectFresh(op, device));
  op.queries = elsewhere.make(DType::f16, {8, 64});
  EXPECT(!expectFresh(op, device));
}

// Steps of two caches, like those of two layers: on a device that knows their plans, on one that knows none, and as
// runs of a step that was recorded at another position. Both caches are mostly at the same positions, so the encoder
// derives one call from the other.
TEST(RepeatedOp, CacheStepsMatchFreshPlans) {
  Seeded random(11);
  uint64_t encoded = 0, refused = 0, known = 0, recorded = 0, rerun = 0;
  for (uint32_t variant = 0; variant < 32; ++variant) {
    const Context context(fmt::format("variant {}", variant));
    const bool isQuantized = variant & 1, isRing = variant & 2, isLarge = variant & 16;
    AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = 32, .capacity = isLarge ? 700u : 24u, .sequences = 2};
    if (isRing) descriptor.whenFull = KVWrap::ring, descriptor.pinned = 3;
    if (isQuantized) descriptor.quantized = KVQuantizedStorage{.planes = drawnPlanes(random)};
    LayersOnDevice sides[] = {LayersOnDevice(descriptor), LayersOnDevice(descriptor), LayersOnDevice(descriptor)};
    LayersOnDevice &knowing = sides[0], &fresh = sides[1], &replaying = sides[2];
    DrawnStep drawn;
    for (int step = 0; step < 30; ++step) {
      const Context context(fmt::format("step {}", step));
      const bool isAgain = step > 2 && random.below(2) == 0;
      if (!isAgain) drawn = DrawnStep(random, step, variant);
      const uint32_t sequence = drawn.sequences[0];
      const bool isCut = random.below(10) == 0, isTakenBack = random.below(8) == 0;
      const uint64_t cut = random.below(900);
      for (LayersOnDevice& side : sides) {
        if (isTakenBack) appendAndTakeBack(side.caches.back(), sequence, side.memory, side.device);
        for (AttentionCache& cache : side.caches) {
          if (isCut) (void)cache.truncate(cut % (*cache.nextPosition(sequence) + 1), sequence);
        }
      }
      if (!isAgain) replaying.record(drawn);
      rerun += isAgain && replaying.step;
      recorded += !isAgain && replaying.step;
      const Result<void> results[] = {knowing.run(drawn, false), fresh.run(drawn, true),
                                      replaying.step ? replaying.runStep() : replaying.run(drawn, false)};
      ++(results[1] ? encoded : refused);
      const auto expected = fresh.device->takeCommitted();
      for (const size_t side : {0, 2}) {
        const Context context(side == 0 ? "known plans" : "a recorded step");
        const auto got = sides[side].device->takeCommitted();
        expectSameError(errorOf(results[side]), errorOf(results[1]));
        for (size_t layer = 0; layer < 2; ++layer) {
          for (const uint32_t each : {0, 1}) {
            EXPECT_EQ(*sides[side].caches[layer].nextPosition(each), *fresh.caches[layer].nextPosition(each));
          }
        }
        if (!results[side] || !results[1]) continue;
        std::vector<Dispatch> planned;
        for (const ReadyDispatch& ready : expected.back().dispatches) {
          planned.push_back(ready.dispatch);
          for (Binding& binding : planned.back().buffers) binding.buffer.reset();  // each device has its own
        }
        expectSameDispatches(got.back(), expected.back(), planned);
        EXPECT_EQ(sides[side].memoryOf(got.back()), fresh.memoryOf(expected.back()));
      }
    }
    EXPECT(knowing.device->planCache().count() > 2);
    known += knowing.device->planCache().count();
  }
  EXPECT(encoded > 600);
  EXPECT(refused > 10);
  EXPECT(known < 2 * encoded);  // each step encodes up to four ops
  EXPECT(recorded > 100);
  EXPECT(rerun > 100);
}

// One token of each sequence, with rows that share a dispatch although their positions differ.
TEST(RepeatedOp, StepsOverListsAreCached) {
  for (const bool isQuantized : {false, true}) {
    const auto device = makeDevice();
    AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = 32, .capacity = 24, .sequences = 16};
    if (isQuantized) descriptor.quantized.emplace();
    AttentionCache cache = REQUIRE(AttentionCache::make(device, descriptor));
    BindingMemory memory(device);
    CacheStep call{.queries = memory.make(DType::f16, {16, 4, 32}),
                   .keys = memory.make(DType::f16, {16, 2, 32}),
                   .values = memory.make(DType::f16, {16, 2, 32}),
                   .rotary = RotaryStep{},
                   .results = {.output = memory.make(DType::f16, {16, 4, 32})},
                   .sequences = {}};
    for (uint32_t sequence = 0; sequence < 16; ++sequence) call.sequences.push_back(15 - sequence);
    std::vector<size_t> plans;
    for (int step = 0; step < 8; ++step) {
      if (step == 4) cache.reset();  // the same positions again
      CommandEncoder encoder(device);
      REQUIRE(cache.append(encoder, {.keys = call.keys, .values = call.values, .sequences = call.sequences}));
      REQUIRE(cache.attend(
          encoder,
          {.queries = call.queries, .results = call.results, .options = call.options, .sequences = call.sequences}));
      REQUIRE(cache.appendAndAttend(encoder, call));
      REQUIRE(encoder.commit());
      plans.push_back(device->planCache().count());
    }
    EXPECT(plans[1] >= 3);  // the first attention probes the device, which clears the plans
    EXPECT_EQ(plans[7], plans[3]);
    // A list that fails its checks must not match the form of another one.
    const auto expectMisfit = [&](const CacheStep& sound, const CacheStep& wrong, std::string_view what) {
      const auto encode = [&](const CacheStep& step) {
        CommandEncoder encoder(device);
        return cache.appendAndAttend(encoder, step);
      };
      for (int i = 0; i < 2; ++i) REQUIRE(encode(sound));
      EXPECT_ERROR(encode(wrong), {.op = "AttentionCache.appendAndAttend", .what = what});
    };
    constexpr std::string_view kMisfit = "a result does not match the queries";
    CacheStep sound = call, wrong = call;
    wrong.results.output = memory.make(DType::f16, {4, 16, 32});
    expectMisfit(sound, wrong, kMisfit);
    // All entries have rows, or one has none.
    sound.rotary.reset();
    for (HeadsView* view : {&sound.queries, &sound.keys, &sound.values}) {
      view->tensor = REQUIRE(view->tensor.slice(0, 15));
    }
    sound.results.output = memory.make(DType::f16, {15, 1, 4, 32});
    wrong = sound;
    sound.sequences.pop_back();
    wrong.rowCounts = std::vector<uint32_t>(15, 1);
    wrong.rowCounts->push_back(0);
    expectMisfit(sound, wrong, kMisfit);
    // Results of all rows, or with an axis of those entries that have rows.
    sound.sequences = call.sequences;
    sound.rowCounts = std::vector<uint32_t>(16, 0);
    for (size_t entry = 0; entry < 5; ++entry) (*sound.rowCounts)[entry] = 3;
    wrong = sound;
    sound.results.output = memory.make(DType::f16, {15, 4, 32});
    wrong.results.output = memory.make(DType::f16, {5, 3, 4, 32});
    expectMisfit(sound, wrong, kMisfit);
    sound = call;
    sound.options.isCausal = false;
    wrong = sound;
    wrong.sequences[0] = wrong.sequences[1];
    expectMisfit(sound, wrong, "a sequence is listed again in attention that is not causal");
  }
}

// A form that is full must not drop further choices: another split count would have the same form. A plan made before a
// clear refers to kernels that are forgotten. Plans in use stay when many are cached.
TEST(RepeatedOp, PlansAreKeptByTheirForm) {
  const auto formOf = [](int number, int words = 1) {
    OpForm form;
    for (int word = 0; word < words; ++word) form.add(number + word);
    return form;
  };
  PlanCache plans;
  EXPECT(formOf(0, 10'000).isTooLarge());
  plans.keep(formOf(0, 10'000), {}, 0);
  EXPECT_EQ(plans.count(), 0u);
  EXPECT(!plans.find(formOf(0, 10'000)));
  const uint64_t before = plans.timesCleared();
  plans.clear();
  plans.keep(formOf(1), {}, before);
  EXPECT(!plans.find(formOf(1)));
  for (int number = 0; number < 1000; ++number) {
    plans.keep(formOf(number), {}, plans.timesCleared());
    EXPECT(plans.find(formOf(0)));
  }
  EXPECT(plans.count() <= 256);
  EXPECT(!plans.find(formOf(1)));
  EXPECT(plans.find(formOf(999)));
}

// Probing the device fails while the first op is planned and succeeds right after.
TEST(RepeatedOp, TheDeviceProfileMayChange) {
  const TimedDevice timed({.family = "apple9", .cores = 10});
  const auto zeros = [&](std::initializer_list<uint64_t> extents) {
    return REQUIRE(Tensor::zeros(timed.device, DType::f16, REQUIRE(Shape::make(extents))));
  };
  FlashDecode op{.queries = zeros({16, 1, 64}),
                 .cache = KVCacheView{.keys = zeros({1, 512, 64}), .values = zeros({1, 512, 64})},
                 .results = {.output = zeros({16, 1, 64})}};
  op.sequences = {{.length = 100}};
  timed.device->failAt(FakeDevice::Call::makeBuffer);
  REQUIRE(CommandEncoder(timed.device).encode(op));
  timed.device->takeCommitted();  // the probe
  op.sequences = {{.length = 116}};
  EXPECT(expectFresh(op, timed.device));
}

// Cached plans retain no caller-owned memory, and none are left once kernels are forgotten.
TEST(RepeatedOp, RetainsNoCallerMemory) {
  const auto device = REQUIRE(host::makeDevice({}));
  bool isReleased = false;
  {
    std::vector<float> numbers(64);
    auto buffer = REQUIRE(device->wrapMemory(numbers.data(), 256, [&] { isReleased = true; }));
    const Tensor tensor = REQUIRE(Tensor::over(std::move(buffer), DType::f32, REQUIRE(Shape::make({1, 64}))));
    for (int step = 0; step < 3; ++step) REQUIRE(runOp(MultiRoPE{.queries = tensor}, device));
    EXPECT(!isReleased);
  }
  EXPECT(isReleased);
  EXPECT_EQ(device->planCache().count(), 1u);
  device->registry().clear();
  EXPECT_EQ(device->planCache().count(), 0u);
}

}  // namespace mnk::test
