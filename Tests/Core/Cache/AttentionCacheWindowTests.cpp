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
  RefusedCalls no;
  no(fixture.cache.appendAndAttend(encoder, {.queries = queries,
                                             .keys = keys,
                                             .values = keys,
                                             .results = {.output = out},
                                             .options = {.window = 4},
                                             .sequences = {0}}));
  no(fixture.cache.attend(encoder, queries, {.output = out}, {.window = 4}, 0));
}

// A sliding-window cache refuses a rollback after which no step could attend.
TEST(AttentionCacheWindow, ASlidingWindowRefusesALongRollback) {
  RefusedCalls no;
  for (const uint32_t pinned : {0, 2}) {
    const auto device = devicesUnderTest().front().device;
    AttentionCacheDescriptor descriptor = attendedDescriptor(0, pinned);
    descriptor.slidingWindow = SlidingWindow{.window = 4, .maxRows = 2, .maxDraft = 3};
    AttentionFixture fixture(device, descriptor);  // 6 slots beside the pinned ones
    fixture.appendNow(20, 0);
    for (const uint64_t position : {16, 3, 21}) no(fixture.cache.truncate(position, 0));
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
