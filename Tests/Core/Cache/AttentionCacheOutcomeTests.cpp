// The state of a cache after conflicts between encoders and after device failures.
#include "AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

TEST(AttentionCacheOutcome, TheSecondOfTwoEncodersConflicts) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder first(device);
  CommandEncoder second(device);
  REQUIRE(append(cache, first, 2));
  REQUIRE(append(cache, second, 1));
  REQUIRE(first.commit());
  const auto refused = second.commit();
  EXPECT_ERROR(refused, {.op = "AttentionCache",
                         .what = "the cache was changed while this encoder recorded",
                         .got = "sequence 0 at position 2",
                         .expected = "position 0, where the encoder began",
                         .fix = "Encode this step again, with a new encoder."});
  EXPECT(!refused && refused.error().retryable);
  EXPECT_EQ(*cache.nextPosition(0), 2u);
  EXPECT_EQ(device->committed().size(), 1u);
  CommandEncoder again(device);
  REQUIRE(append(cache, again, 1));
  REQUIRE(again.commit());
  EXPECT_EQ(*cache.nextPosition(0), 3u);
}

TEST(AttentionCacheOutcome, EncodersOnDifferentSequencesDoNotConflict) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  CommandEncoder first(device), second(device);
  REQUIRE(append(cache, first, 2, 0));
  const Tensor wrong = tokens(device, 1, 3);
  EXPECT_ERROR(cache.append(first, wrong, wrong, 1), {.op = "AttentionCache.append"});  // takes no part
  REQUIRE(append(cache, second, 1, 1));
  REQUIRE(second.commit());
  REQUIRE(first.commit());
  EXPECT_EQ(*cache.nextPosition(0), 2u);
  EXPECT_EQ(*cache.nextPosition(1), 1u);
}

TEST(AttentionCacheOutcome, AConflictInOneCacheAdvancesNoOther) {
  const auto device = FakeDevice::make();
  AttentionCache calm = makeCache(device);
  AttentionCache contested = makeCache(device);
  CommandEncoder encoder(device);
  REQUIRE(append(calm, encoder, 3));
  REQUIRE(append(contested, encoder, 3));
  appendNow(contested, device, 1);
  EXPECT_ERROR(encoder.commit(), {.op = "AttentionCache"});
  EXPECT_EQ(*calm.nextPosition(0), 0u);
  EXPECT_EQ(*contested.nextPosition(0), 1u);
}

TEST(AttentionCacheOutcome, AFaultMakesItsSequencesSuspect) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device);
  appendNow(cache, device, 2, 0);
  appendNow(cache, device, 2, 1);
  device->holdCompletions();
  CommandEncoder encoder(device);
  REQUIRE(append(cache, encoder, 1, 1));
  const Tensor wrong = tokens(device, 1, 3);
  EXPECT(!cache.append(encoder, wrong, wrong, 2));
  const Completion completion = REQUIRE(encoder.commit());
  EXPECT(!cache.isSuspect(1));
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT_ERROR(completion.wait(), {.code = ErrorCode::deviceFault});
  EXPECT(!cache.isSuspect(0));
  EXPECT(cache.isSuspect(1));
  EXPECT(!cache.isSuspect(2));  // its append was refused, so none of its work failed
  EXPECT_EQ(*cache.nextPosition(1), 3u);

  CommandEncoder next(device);
  const ExpectedError suspect{.op = "AttentionCache",
                              .what = "the sequence is suspect because earlier work on it failed or was not committed",
                              .got = "sequence 1, unknown from position 2",
                              .expected = "a sequence whose contents are known",
                              .fix = "Truncate it to position 2 or less, or reset it."};
  const std::vector<uint32_t> sequences{0, 1};
  EXPECT_ERROR(append(cache, next, 1, 1), (suspect));
  EXPECT_ERROR(cache.append(next, {.keys = tokens(device, 2), .values = tokens(device, 2), .sequences = sequences}),
               (suspect));
  REQUIRE(append(cache, next, 1, 0));

  EXPECT_ERROR(cache.truncate(3, 1), (suspect));  // would keep outputs of the failed step
  EXPECT(cache.isSuspect(1));
  REQUIRE(cache.truncate(2, 1));
  EXPECT(!cache.isSuspect(1));
  CommandEncoder last(device);
  REQUIRE(append(cache, last, 1, 1));
  REQUIRE(last.commit());
  EXPECT_EQ(*cache.nextPosition(1), 3u);
}

TEST(AttentionCacheOutcome, ResetClearsSuspectSequences) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionCache cache = makeCache(device);
  CommandEncoder encoder(device);
  const std::vector<uint32_t> sequences{0, 1, 2};
  REQUIRE(cache.append(encoder, {.keys = tokens(device, 3), .values = tokens(device, 3), .sequences = sequences}));
  REQUIRE(encoder.commit());
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT(cache.isSuspect(0) && cache.isSuspect(1) && cache.isSuspect(2));
  REQUIRE(cache.reset(1));
  EXPECT(cache.isSuspect(0) && !cache.isSuspect(1));
  cache.reset();
  EXPECT(!cache.isSuspect(0) && !cache.isSuspect(2));
}

// The same with a kernel that really stops: work recorded before it may have finished, so the cache is not reliable.
TEST(AttentionCacheOutcome, AStoppedKernelMakesSequencesSuspect) {
  onEveryHost([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    appendNow(cache, device, 2, 0);
    CommandEncoder encoder(device);
    REQUIRE(append(cache, encoder, 1, 1));
    const Tensor data = tokens(device, 4);
    REQUIRE(encoder.dispatch({.kernel = {conformanceLibrary(), "faultUnsetConstant", {}},
                              .kind = "fault",
                              .buffers = {Binding::whole(0, data, Access::write)},
                              .grid = {.extent = {32, 1, 1}}}));
    const Completion completion = REQUIRE(encoder.commit());
    EXPECT_ERROR(completion.wait(), {.code = ErrorCode::deviceFault});
    EXPECT(!cache.isSuspect(0));
    EXPECT(cache.isSuspect(1));
    EXPECT_EQ(*cache.nextPosition(1), 1u);
    REQUIRE(cache.truncate(0, 1));
    appendNow(cache, device, 1, 1);
    EXPECT(!cache.isSuspect(1));
  });
}

// An encoder that began before the fault was known must not be committed after it.
TEST(AttentionCacheOutcome, AFaultWhileAnEncoderRecordsConflicts) {
  const auto device = FakeDevice::make();
  device->holdCompletions();
  AttentionCache cache = makeCache(device);
  CommandEncoder failing(device);
  REQUIRE(append(cache, failing, 1));
  REQUIRE(failing.commit());
  CommandEncoder next(device);
  REQUIRE(append(cache, next, 1));
  EXPECT(device->finishNext(fakeFailure()));
  EXPECT_ERROR(next.commit(), {.op = "AttentionCache", .what = "the sequence is suspect"});
  EXPECT(cache.isSuspect());
}

}  // namespace mnk::test
