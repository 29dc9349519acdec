// Caches that quantize only keys or only values, compared with a dense and a quantized cache that get the same calls.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr KVQuantizedPlanes kPlanes[] = {KVQuantizedPlanes::keys, KVQuantizedPlanes::values};

// The bytes of one plane at the slots that hold positions.
std::vector<std::byte> heldBytes(const AttentionCache& cache, const Tensor& plane) {
  const AttentionCacheDescriptor& d = cache.descriptor();
  const std::vector<std::byte> bytes = bytesOf(plane);
  const uint64_t slotBytes = bytes.size() / d.sequences / d.kvHeads / d.capacity;
  std::vector<std::byte> held;
  for (uint32_t sequence = 0; sequence < d.sequences; ++sequence) {
    for (const uint64_t slot : heldSlots(cache, sequence)) {
      for (uint64_t head = 0; head < d.kvHeads; ++head) {
        const auto at = bytes.begin() + ((uint64_t{sequence} * d.kvHeads + head) * d.capacity + slot) * slotBytes;
        held.insert(held.end(), at, at + slotBytes);
      }
    }
  }
  return held;
}

// A dense cache, a quantized one, and two with one plane of each.
class Family {
 public:
  Family(std::shared_ptr<Device> device, AttentionCacheDescriptor descriptor, Seeded& random)
      : device_(std::move(device)), random_(random) {
    const DType dtype = descriptor.dtype;
    for (const bool isCoded : {false, true}) {
      AttentionCacheDescriptor one = descriptor;
      if (!isCoded) one.quantized.reset();
      caches_.push_back(makeCache(device_, one));
    }
    for (const KVQuantizedPlanes planes : kPlanes)
      caches_.push_back(makeCache(device_, mixed(descriptor, planes, dtype)));
  }

  void runAnyCall() {
    const AttentionCacheDescriptor& d = caches_[0].descriptor();
    const auto sequence = static_cast<uint32_t>(random_.below(d.sequences));
    const auto tokens = [&](uint64_t count, uint64_t heads) {
      return someTokens(device_, random_, count, heads, d.headDim);
    };
    switch (random_.below(6)) {
      case 0: {
        const uint64_t position = random_.below(*caches_[0].nextPosition(sequence) + 1);
        std::vector<bool> done;
        for (AttentionCache& cache : caches_) done.push_back(bool(cache.truncate(position, sequence)));
        EXPECT(done == std::vector<bool>(caches_.size(), done[0]));
        return;
      }
      case 1: {
        const auto target = static_cast<uint32_t>(random_.below(d.sequences));
        return run([&](AttentionCache& cache, CommandEncoder& e) { return cache.copy(e, sequence, target); });
      }
      case 2: {
        const std::vector<uint32_t> listed{sequence, static_cast<uint32_t>(random_.below(d.sequences))};
        const std::vector<uint32_t> rows{2, 1};
        const Tensor keys = tokens(3, d.kvHeads), values = tokens(3, d.kvHeads);
        return run([&](AttentionCache& cache, CommandEncoder& e) {
          return cache.append(e, {.keys = keys, .values = values, .sequences = listed, .rowCounts = rows});
        });
      }
      case 3:
      case 4: {
        const uint64_t count = 1 + random_.below(5);
        CacheStep step{.queries = tokens(count, 2 * d.kvHeads),
                       .keys = tokens(count, d.kvHeads),
                       .values = tokens(count, d.kvHeads),
                       .sequences = {sequence}};
        step.results.output = tokens(count, 2 * d.kvHeads);
        if (random_.below(2) == 0) step.rotary = RotaryStep{};
        return run([&](AttentionCache& cache, CommandEncoder& e) { return cache.appendAndAttend(e, step); });
      }
      default: {
        const uint64_t count = random_.below(6);
        const Tensor keys = tokens(count, d.kvHeads), values = tokens(count, d.kvHeads);
        return run([&](AttentionCache& cache, CommandEncoder& e) { return cache.append(e, keys, values, sequence); });
      }
    }
  }

  void saveAndLoad(const CacheFolder& folder) {
    for (AttentionCache& cache : caches_) {
      REQUIRE(cache.save(folder.path()));
      const AttentionCache loaded = REQUIRE(AttentionCache::load(device_, folder.path(), kPlenty));
      expectSame(loaded, cache);
      cache = loaded;
    }
  }

  void expectAlike() const {
    const AttentionCache &dense = caches_[0], &quantized = caches_[1];
    for (size_t i = 2; i < caches_.size(); ++i) {
      const AttentionCache& cache = caches_[i];
      const bool hasQuantizedKeys = kPlanes[i - 2] == KVQuantizedPlanes::keys;
      const Context context(hasQuantizedKeys ? "codes of keys" : "codes of values");
      for (uint32_t sequence = 0; sequence < dense.descriptor().sequences; ++sequence) {
        EXPECT_EQ(*cache.nextPosition(sequence), *dense.nextPosition(sequence));
        EXPECT_EQ(*cache.count(sequence), *dense.count(sequence));
      }
      const QuantizedKVCacheView got = *cache.quantizedView(), expected = *quantized.quantizedView();
      const QuantizedKVPlane& gotCodes = hasQuantizedKeys ? got.keys : *got.values;
      const QuantizedKVPlane& codes = hasQuantizedKeys ? expected.keys : *expected.values;
      EXPECT(heldBytes(cache, gotCodes.codes) == heldBytes(quantized, codes.codes));
      EXPECT(heldBytes(cache, gotCodes.scales) == heldBytes(quantized, codes.scales));
      EXPECT(heldBytes(cache, (hasQuantizedKeys ? *got.values : got.keys).codes) ==
             heldBytes(dense, hasQuantizedKeys ? *dense.view().values : dense.view().keys));
    }
  }

 private:
  template <typename Call>
  void run(Call call) {
    std::optional<bool> isDone;
    for (AttentionCache& cache : caches_) {
      CommandEncoder encoder(device_);
      const Result<void> done = call(cache, encoder);
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT_EQ(bool(done), isDone.value_or(bool(done)));
      isDone = bool(done);
    }
  }

  std::shared_ptr<Device> device_;
  Seeded& random_;
  std::vector<AttentionCache> caches_;
};

AttentionCacheDescriptor anyDescriptor(Seeded& random) {
  constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
  const auto pinned = static_cast<uint32_t>(random.below(3));
  const bool isRing = random.below(4) != 0, isTurbo = random.below(3) != 0;
  constexpr uint32_t kTurboDims[] = {32, 64, 80, 96};
  const auto codec = isTurbo ? KVCodec::Name::turbo : static_cast<KVCodec::Name>(1 + random.below(3));
  const uint32_t headDim = isTurbo ? kTurboDims[random.below(4)] : codec == KVCodec::Name::mlx1 ? 32 : 256;
  const auto drawBits = [&]() -> uint32_t {
    return isTurbo ? static_cast<uint32_t>(2 + random.below(7)) : codec == KVCodec::Name::mlx1Unrotated ? 8 : 4;
  };
  AttentionCacheDescriptor descriptor{.kvHeads = static_cast<uint32_t>(1 + random.below(3)),
                                      .headDim = headDim,
                                      .capacity = static_cast<uint32_t>(pinned + 2 + random.below(9)),
                                      .sequences = 2,
                                      .dtype = kFloats[random.below(3)],
                                      .whenFull = isRing ? KVWrap::ring : KVWrap::linear,
                                      .pinned = isRing ? pinned : 0};
  descriptor.quantized = KVQuantizedStorage{.codec = codec, .keyBits = drawBits(), .valueBits = drawBits()};
  return descriptor;
}

}  // namespace

TEST(MixedCache, ReportsItsShapesAndSizes) {
  const auto device = FakeDevice::make();
  const AttentionCache cache = makeCache(device, mixed(turboDescriptor(), KVQuantizedPlanes::values, DType::bf16));
  const AttentionCacheDescriptor& d = cache.descriptor();
  EXPECT(d.dtype == DType::bf16 && d.quantized->planes == KVQuantizedPlanes::values);
  EXPECT_EQ(d.quantized->keyBits, 0u);
  EXPECT_EQ(d.quantized->valueBits, 3u);
  const auto view = cache.quantizedView();
  EXPECT(view->keys.isDense() && !view->values->isDense() && !view->keys.scales);
  EXPECT_EQ(view->keys.codes.shape(), REQUIRE(Shape::make({3, 2, 4, 32})));
  EXPECT(view->keys.codes.dtype() == DType::bf16);
  EXPECT_EQ(view->values->codes.shape(), REQUIRE(Shape::make({3, 2, 4, 24})));
  EXPECT(cache.view().keys.dtype() == DType::bf16 && cache.view().values->dtype() == DType::u8);
  EXPECT_EQ(cache.bytesPerToken(), 2u * (64 + 24 + 2));
  EXPECT_EQ(cache.byteCount(), cache.bytesPerToken() * 3 * 4);
  EXPECT(cache.text().starts_with("2 heads of 32 and 64 as bf16 and turbo of 3 bits, 3 sequences"));
  const AttentionCache other = makeCache(device, mixed(turboDescriptor(), KVQuantizedPlanes::keys, DType::f32));
  EXPECT_EQ(other.bytesPerToken(), 2u * (20 + 2 + 256));
  EXPECT(other.text().starts_with("2 heads of 32 and 64 as turbo of 5 bits and f32, 3 sequences"));
}

TEST(MixedCache, PlanesMatchDenseAndQuantizedCaches) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const CacheFolder folder;
    for (uint64_t program = 0; program < 40; ++program) {
      const Context context(fmt::format("program {}", program));
      Seeded random(program);
      Family family(device, anyDescriptor(random), random);
      for (uint64_t calls = 3 + random.below(6); calls != 0; --calls) family.runAnyCall();
      family.expectAlike();
      if (program % 8 != 0) continue;
      family.saveAndLoad(folder);
      for (uint64_t calls = 0; calls < 3; ++calls) family.runAnyCall();
      family.expectAlike();
    }
  });
}

// Eight bits leave a small error, and dense elements none.
TEST(MixedCache, AttendsToAppendedTokens) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const KVQuantizedPlanes planes : kPlanes) {
      AttentionCacheDescriptor descriptor = attendedDescriptor(9, 2);
      descriptor.quantized = KVQuantizedStorage{.keyBits = 8, .valueBits = 8};
      AttentionFixture fixture(device, mixed(descriptor, planes, DType::f32));
      fixture.appendNow(5);
      fixture.appendNow(7);
      const Tensor queries = fixture.someQueries(3);
      const auto held = positions(0, 2) + positions(5, 12);
      EXPECT(largestDifference(fixture.attendNow(queries), fixture.expected(queries, 3, held)) < 0.02);
    }
  });
}

// Readers of version 4 report this number when they refuse the file.
TEST(MixedCache, FilesHaveTheirOwnVersion) {
  const CacheFolder folder;
  const auto device = FakeDevice::make();
  const auto versionOf = [&](const AttentionCacheDescriptor& descriptor) {
    REQUIRE(makeCache(device, descriptor).save(folder.path()));
    const auto file = readFile(folder.path());
    EXPECT(file[11] == std::byte{MNK_VERSION_MAJOR} && file[10] == std::byte{MNK_VERSION_MINOR});
    EXPECT(file[9] == std::byte{0});
    return static_cast<uint32_t>(file[8]);
  };
  EXPECT_EQ(versionOf(kDescriptor), 4u);
  EXPECT_EQ(versionOf(turboDescriptor()), 4u);
  for (const KVQuantizedPlanes planes : kPlanes) EXPECT_EQ(versionOf(mixed(turboDescriptor(), planes)), 5u);
}

}  // namespace mnk::test
