// Windows that a ring cannot serve after a rollback, and steps that it serves in many chunks.
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

// A larger ring or a smaller window would not bring back what was overwritten before a rollback.
TEST(AttentionCacheWindow, ALongRollbackIsNamed) {
  const auto device = devicesUnderTest().front().device;
  AttentionFixture fixture(device, attendedDescriptor(8, 1));
  fixture.appendNow(20, 0);
  fixture.truncate(15, 0);
  const Tensor keys = fixture.zeros({1, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(1);
  const Tensor out = fixture.zeros({1, kQueryHeads, kAttendedDim});
  CommandEncoder encoder(device);
  EXPECT_ERROR(fixture.cache.appendAndAttend(encoder, {.queries = queries,
                                                       .keys = keys,
                                                       .values = keys,
                                                       .results = {.output = out},
                                                       .options = {.window = 4},
                                                       .sequences = {0}}),
               {.op = "AttentionCache.appendAndAttend",
                .what = "the window reaches positions that the sequence has lost",
                .got = "token 0 of 1, whose window of 4 reaches positions that a ring of 8 has overwritten; it is at "
                       "position 15 and holds positions 13 to 14 and the first 1",
                .expected = "a window of at most 3, or position 16 or later",
                .fix = "Reset the sequence and append its tokens again"});
  EXPECT_ERROR(fixture.cache.attend(encoder, queries, {.output = out}, {.window = 4}, 0),
               {.got = "after a rollback, growth or copy", .fix = "Reset the sequence and store its tokens again"});
}

// A sliding-window cache refuses a rollback after which no step could attend.
TEST(AttentionCacheWindow, ASlidingWindowRefusesALongRollback) {
  for (const uint32_t pinned : {0, 2}) {
    const auto device = devicesUnderTest().front().device;
    AttentionCacheDescriptor descriptor = attendedDescriptor(0, pinned);
    descriptor.slidingWindow = SlidingWindow{.window = 4, .maxRows = 2, .maxDraft = 3};
    AttentionFixture fixture(device, descriptor);  // 6 slots beside the pinned ones
    fixture.appendNow(20, 0);
    EXPECT_ERROR(
        fixture.cache.truncate(16, 0),
        {.op = "AttentionCache",
         .what = "the rollback is too long for the sliding window",
         .got = "a rollback of 4 tokens to position 16 of sequence 0, whose ring has overwritten positions that "
                "its window of 4 then sees",
         .expected = pinned == 0 ? "0, or 17 to 20" : "0 to 2, or 17 to 20",
         .fix = "Reset the sequence and append its tokens again; roll back less, or make the cache for longer "
                "drafts (maxDraft)."});
    EXPECT_ERROR(fixture.cache.truncate(3, 0), {.what = "the rollback is too long for the sliding window"});
    EXPECT_ERROR(fixture.cache.truncate(21, 0), {.what = "cannot be cut there", .expected = "or 17 to 20"});
    EXPECT_EQ(*fixture.cache.nextPosition(0), 20u);
    REQUIRE(fixture.cache.truncate(17, 0));
    REQUIRE(fixture.cache.truncate(pinned, 0));
  }
}

TEST(AttentionCacheWindow, ManyChunksAreAWarning) {
  const auto device = devicesUnderTest().front().device;
  const auto textOf = [&](AttentionCacheDescriptor descriptor, uint64_t tokens, uint32_t window) {
    descriptor.sequences = 1;
    AttentionFixture fixture(device, descriptor);
    const Tensor keys = fixture.zeros({tokens, kAttendedHeads, kAttendedDim}), queries = fixture.someQueries(tokens);
    const Tensor out = fixture.zeros({tokens, kQueryHeads, kAttendedDim});
    const CacheStep step{.queries = queries,
                         .keys = keys,
                         .values = keys,
                         .results = {.output = out},
                         .options = {.window = window},
                         .sequences = {0}};
    const RecordedStep recorded = REQUIRE(RecordedStep::record(
        device, [&](CommandEncoder& encoder) { return fixture.cache.appendAndAttend(encoder, step); }));
    CommandEncoder encoder(device);
    REQUIRE(fixture.cache.appendAndAttend(encoder, step));
    const auto done = REQUIRE(encoder.commit());
    EXPECT_EQ(REQUIRE(done.wait()).warning, done.summary().warning);
    EXPECT_EQ(recorded.summary().warning, done.summary().warning);
    return done.summary().text();
  };
  AttentionCacheDescriptor narrow = attendedDescriptor(0);
  narrow.slidingWindow = SlidingWindow{.window = 8, .maxRows = 1};
  EXPECT_EQ(textOf(narrow, 15, 0).find("warning"), std::string::npos);  // 8 chunks
  EXPECT(textOf(narrow, 30, 0)
             .ends_with("; warning: AttentionCache.appendAndAttend divided 30 tokens into 23 chunks; a "
                        "SlidingWindow with more than 1 maxRows takes fewer"));
  narrow.slidingWindow->maxRows = 64;
  EXPECT_EQ(textOf(narrow, 90, 0).find("warning"), std::string::npos);
  EXPECT(textOf(attendedDescriptor(8), 30, 0)
             .find("23 chunks, because a full ring without a window takes one token at "
                   "a time; pass a window") != std::string::npos);
  EXPECT(textOf(attendedDescriptor(8), 30, 8).find("23 chunks; a ring of more than 8 slots") != std::string::npos);
  // A plan shows its own.
  const Plan plan{.op = "Op", .dispatches = {}, .warning = "it is slow"};
  EXPECT_EQ(plan.text(), "Op: 0 dispatches\n  warning: it is slow");
}

}  // namespace mnk::test
