// Copies of a cache's sequences.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

TEST(AttentionCacheCopy, ACopiedSequenceIsIndependent) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const bool isQuantized : {false, true}) {
      AttentionCacheDescriptor descriptor = attendedDescriptor(6, 2);
      if (isQuantized) descriptor.quantized = KVQuantizedStorage{.keyBits = 3, .valueBits = 5};
      AttentionFixture fixture(device, descriptor);
      fixture.appendNow(10, 0);
      fixture.truncate(9, 0);
      fixture.appendNow(4, 2);
      CommandEncoder encoder(device);
      REQUIRE(fixture.cache.copy(encoder, 0, 2));
      EXPECT_EQ(encoder.summary().total.dispatches, isQuantized ? 4u : 2u);  // pinned positions, and the others
      REQUIRE(fixture.cache.copy(encoder, 0, 0));
      const Tensor queries = fixture.someQueries(2), copied = fixture.zeros({2, kQueryHeads, kAttendedDim});
      REQUIRE(fixture.cache.attend(encoder, queries, {.output = copied}, {}, 2));
      EXPECT_EQ(*fixture.cache.nextPosition(2), 4u);
      REQUIRE(REQUIRE(encoder.commit()).wait());
      EXPECT_EQ(*fixture.cache.nextPosition(2), 9u);
      EXPECT_EQ(*fixture.cache.count(2), *fixture.cache.count(0));
      EXPECT_EQ(floatsOf(copied), fixture.attendNow(queries, {}, 0));
      fixture.appendNow(1, 2);
      EXPECT_EQ(floatsOf(copied), fixture.attendNow(queries, {}, 0));
    }
  });
}

TEST(AttentionCacheCopy, ACopyOntoItselfIsChecked) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(6));
  fixture.appendNow(4, 0);
  CommandEncoder elsewhere(FakeDevice::make()), committed(device);
  EXPECT_ERROR(fixture.cache.copy(elsewhere, 0, 0), {.what = "the cache is of another device than the encoder"});
  REQUIRE(fixture.cache.copy(committed, 0, 0));
  REQUIRE(committed.commit());
  EXPECT_ERROR(fixture.cache.copy(committed, 0, 0), {.what = "the encoder is used after it was committed"});
}

TEST(AttentionCacheCopy, ACopyNeedsItsSourceAndTargetUnchanged) {
  const auto device = FakeDevice::make();
  enum class Change : uint8_t { append, wrap, resetSource, appendToTarget };
  for (const Change change : {Change::append, Change::wrap, Change::resetSource, Change::appendToTarget}) {
    AttentionFixture fixture(device, attendedDescriptor(6));
    fixture.appendNow(4, 0);
    CommandEncoder copying(device);
    REQUIRE(fixture.cache.copy(copying, 0, 1));
    if (change == Change::resetSource) {
      REQUIRE(fixture.cache.reset(0));
    } else {
      fixture.appendNow(change == Change::wrap ? 3 : 1, change == Change::appendToTarget ? 1 : 0);
    }
    const auto committed = copying.commit();
    EXPECT_EQ(bool(committed), change == Change::append);
    EXPECT_EQ(*fixture.cache.nextPosition(1), change == Change::append           ? 4u
                                              : change == Change::appendToTarget ? 1u
                                                                                 : 0u);
    if (committed) continue;
    EXPECT_ERROR(committed, {.what = "changed while this encoder recorded",
                             .got = change == Change::appendToTarget ? "sequence 1" : "sequence 0"});
    EXPECT(committed.error().retryable);
  }
}

// The outputs of a failed step are neither saved nor copied once they are truncated.
TEST(AttentionCacheCopy, ARecoveredSequenceIsCopiedAndSaved) {
  for (const uint32_t capacity : {8, 3}) {
    const auto device = FakeDevice::make();
    AttentionFixture fixture(device, attendedDescriptor(capacity, 1));
    fixture.appendNow(4);
    device->holdCompletions();
    CommandEncoder failing(device);
    fixture.append(failing, 1);
    const auto done = REQUIRE(failing.commit());
    device->finishNext(fakeFailure());
    EXPECT(!done.wait());
    fixture.truncate(4, 0);
    CommandEncoder encoder(device);
    REQUIRE(fixture.cache.copy(encoder, 0, 1));
    const auto copied = REQUIRE(encoder.commit());
    device->finishNext({});
    REQUIRE(copied.wait());
    EXPECT_EQ(*fixture.cache.nextPosition(1), 4u);
    const CacheFolder folder;
    REQUIRE(fixture.cache.save(folder.path()));
    EXPECT_EQ(*REQUIRE(AttentionCache::load(device, folder.path(), UINT32_MAX)).nextPosition(0), 4u);
  }
}

TEST(AttentionCacheCopy, AFailedCopyLeavesItsTargetSuspect) {
  const auto device = FakeDevice::make();
  AttentionFixture fixture(device, attendedDescriptor(8));
  fixture.appendNow(3, 0);
  fixture.appendNow(3, 1);
  {
    CommandEncoder encoder(device);
    EXPECT_ERROR(fixture.cache.copy(encoder, 0, 3), {.op = "AttentionCache.copy", .got = "sequence 3"});
    EXPECT_ERROR(fixture.cache.copy(encoder, 3, 0), {.op = "AttentionCache.copy", .got = "sequence 3"});
  }
  device->holdCompletions();
  CommandEncoder encoder(device);
  REQUIRE(fixture.cache.copy(encoder, 0, 1));
  const auto done = REQUIRE(encoder.commit());
  device->finishNext(fakeFailure());
  EXPECT(!done.wait());
  EXPECT(!fixture.cache.isSuspect(0));
  EXPECT(fixture.cache.isSuspect(1));
  EXPECT_ERROR(fixture.cache.truncate(2, 1), {.got = "unknown from position 0"});
  // A later copy makes the target valid again.
  CommandEncoder again(device);
  REQUIRE(fixture.cache.copy(again, 0, 1));
  const auto doneAgain = REQUIRE(again.commit());
  device->finishNext({});
  REQUIRE(doneAgain.wait());
  EXPECT(!fixture.cache.isSuspect(1));
}

}  // namespace mnk::test
