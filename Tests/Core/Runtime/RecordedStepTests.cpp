#include "MLXNativeKernels/CommandEncoder.hpp"

#include <algorithm>
#include <cstring>

#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"

namespace mnk::test {

namespace {

using Call = FakeDevice::Call;
using Body = std::function<Result<void>(CommandEncoder&)>;

RecordedStep record(const std::shared_ptr<Device>& device, const Body& body) {
  return REQUIRE(RecordedStep::record(device, body, "a step"));
}

// A device, and two caches of four slots that refuse a fifth token.
struct RecordingFixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  AttentionCache cache = make(), other = make();
  Tensor token = tokens(device, 1), source = tokens(device, 1);

  AttentionCache make() const {
    AttentionCacheDescriptor descriptor = kDescriptor;
    descriptor.whenFull = KVWrap::linear;
    return makeCache(device, descriptor);
  }
  // Appends to both caches.
  RecordedStep both() {
    return record(device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto done = cache.append(encoder, token, token, 0); !done) return done;
      return other.append(encoder, token, token, 0);
    });
  }
};

// The error of the call that would append the fifth token.
const ExpectedError kFull{.op = "AttentionCache.append", .what = "the write runs past the end of a linear cache"};

int32_t firstPosition(const FakeDevice::Recorded& recorded, size_t index = 0) {
  for (const InlineBytes& inlined : recorded.dispatches[index].dispatch.inlines) {
    if (inlined.index != kMultiRoPEParams) continue;
    MultiRoPEParams params;
    std::memcpy(&params, inlined.bytes.data(), sizeof params);
    return params.firstPosition;
  }
  return INT32_MIN;
}

}  // namespace

TEST(RecordedStep, RecordingRunsAndAdvancesNothing) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  EXPECT_EQ(*s.cache.nextPosition(0), 0u);
  EXPECT_EQ(s.device->tried(Call::commit), 0u);
  EXPECT_EQ(s.device->droppedSubmissions(), 1u);
  EXPECT_EQ(step.summary().total.dispatches, 2u);
  EXPECT(step.device() == s.device);
  // A recording does not keep caches from changing, and such changes do not keep it from running.
  appendNow(s.cache, s.device, 1);
  REQUIRE(s.cache.truncate(0, 0));
  REQUIRE(step.run());
  EXPECT_EQ(*s.cache.nextPosition(0), 1u);
}

TEST(RecordedStep, RunsRepeatCallsAndBarriers) {
  RecordingFixture s;
  const Tensor a = tokens(s.device, 1), b = tokens(s.device, 1);
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto done = encoder.dispatch(fakeDispatch("A", {}, {a})); !done) return done;
    if (auto done = encoder.dispatch(fakeDispatch("B", {a}, {b})); !done) return done;
    if (auto done = encoder.barrier(); !done) return done;
    if (auto done = encoder.dispatch(fakeDispatch("C", {}, {})); !done) return done;
    Plan plan{.op = "Own", .dispatches = {fakeDispatch("D", {b}, {a}), fakeDispatch("E", {a}, {})}};
    return encoder.encode(plan);
  });
  EXPECT_EQ(step.summary().text(), "5 dispatches, 3 barriers, 96 bytes read, 96 bytes written");
  for (uint64_t run = 1; run <= 3; ++run) {
    const Completion done = REQUIRE(step.run());
    EXPECT_EQ(done.summary().text(), step.summary().text());
    EXPECT_EQ(s.device->committed().size(), run);
    EXPECT_EQ(s.device->committed().back().trace, "A | B | C D | E");
    EXPECT_EQ(s.device->committed().back().label, "a step");
  }
}

// Each call of a cache counts once, although it encodes several ops.
TEST(RecordedStep, CachesAdvanceWithEveryRunUntilFull) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  for (uint64_t run = 1; run <= 4; ++run) {
    REQUIRE(step.run());
    EXPECT_EQ(s.device->committed().back().dispatches.size(), 2u);
    EXPECT_EQ(*s.cache.nextPosition(0), run);
    EXPECT_EQ(*s.other.nextPosition(0), run);
  }
  EXPECT_ERROR(step.run(), (kFull));
  // A run advances all caches or none: only the first has space.
  REQUIRE(s.cache.truncate(1, 0));
  EXPECT_ERROR(step.run(), (kFull));
  EXPECT_EQ(*s.cache.nextPosition(0), 1u);
  EXPECT_EQ(s.device->committed().size(), 4u);
  REQUIRE(s.other.truncate(2, 0));
  REQUIRE(step.run());
  EXPECT_EQ(*s.cache.nextPosition(0), 2u);
  EXPECT_EQ(*s.other.nextPosition(0), 3u);
}

TEST(RecordedStep, RecordsAllCallsOfCaches) {
  const auto device = FakeDevice::make();
  AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = 64, .capacity = 8, .sequences = 3};
  descriptor.quantized.emplace();
  AttentionCache cache = makeCache(device, descriptor);
  const Tensor one = tokens(device, 1, 2, 64), two = tokens(device, 2, 2, 64), into = tokens(device, 2, 2, 64);
  const Tensor numbers = tokens(device, 1, 2, 64);
  const Body body = [&](CommandEncoder& encoder) -> Result<void> {
    std::vector<uint32_t> listed{0, 1}, rows{1, 1};
    for (const auto& call : std::vector<Body>{
             [&](auto& e) { return cache.append(e, one, one, 0); },
             [&](auto& e) {
               return cache.append(e, {.keys = two, .values = two, .sequences = listed, .rowCounts = rows});
             },
             [&](auto& e) {
               return cache.attend(
                   e, {.queries = two, .results = {.output = into}, .sequences = listed, .rowCounts = rows});
             },
             [&](auto& e) { return cache.attend(e, one, {.output = numbers}, {}, 1); },
             [&](auto& e) { return cache.copy(e, 0, 2); },
             [&](auto& e) { return cache.dequantize(e, numbers, {}, 0, 2); },
             [&](auto& e) {
               return cache.appendAndAttend(
                   e, {.queries = one, .keys = one, .values = one, .results = {.output = numbers}, .sequences = {0}});
             }}) {
      if (auto done = call(encoder); !done) return done;
    }
    listed = {7, 7};  // the recording holds a copy
    return {};
  };
  const RecordedStep step = record(device, body);
  REQUIRE(step.run());
  const std::string trace = device->committed().back().trace;
  EXPECT_EQ(*cache.nextPosition(0), 3u);
  EXPECT_EQ(*cache.nextPosition(1), 1u);
  EXPECT_EQ(*cache.nextPosition(2), 2u);
  REQUIRE(step.run());
  EXPECT_EQ(*cache.nextPosition(0), 6u);
  EXPECT_EQ(*cache.nextPosition(2), 5u);
  cache.reset();
  CommandEncoder fresh(device);
  REQUIRE(body(fresh));
  REQUIRE(fresh.commit());
  EXPECT_EQ(device->committed().back().trace, trace);
}

// Also after the cache was truncated or reset, and if the encoder has appended to it before.
TEST(RecordedStep, RotaryPositionsFollowTheCache) {
  RecordingFixture s;
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto done = encoder.dispatch(fakeDispatch("project", {s.source}, {s.token})); !done) return done;
    if (auto done = encoder.encode(MultiRoPE{.queries = s.token, .positions = s.cache.nextPositions({0})}); !done)
      return done;
    return s.cache.append(encoder, s.token, s.token, 0);
  });
  const auto expectPosition = [&](int32_t expected) {
    REQUIRE(step.run());
    EXPECT_EQ(firstPosition(s.device->committed().back(), 1), expected);
  };
  for (const int32_t position : {0, 1, 2}) expectPosition(position);
  REQUIRE(s.cache.truncate(1, 0));
  expectPosition(1);
  s.cache.reset();
  expectPosition(0);
  CommandEncoder encoder(s.device);
  REQUIRE(s.cache.append(encoder, s.token, s.token, 0));
  REQUIRE(step.encode(encoder));
  REQUIRE(step.encode(encoder));
  REQUIRE(encoder.commit());
  EXPECT_EQ(firstPosition(s.device->committed().back(), 2), 2);
  EXPECT_EQ(firstPosition(s.device->committed().back(), 5), 3);
  EXPECT_ERROR(step.run(), (kFull));
}

// Numbers would stay while the cache advances.
TEST(RecordedStep, RefusesNumbersBesideAnAppend) {
  RecordingFixture s;
  const Tensor rows = tokens(s.device, 1, 2, 64);
  const ExpectedError expected{
      .op = "RecordedStep",
      .what = "rotary positions stay as recorded, while the cache advances with every run",
      .got = "positions given as numbers, and an append to a cache",
      .expected = "positions that follow the cache, or a tensor of positions that is written before each run",
      .fix = "Use the next positions of the cache, or pass `rotary` without positions to appendAndAttend."};
  const Tensor tensor = REQUIRE(Tensor::zeros(s.device, DType::i32, REQUIRE(Shape::make({1}))));
  const auto recorded = [&](const RotaryPositions& positions, bool rotatesFirst) {
    const Body rotate = [&](CommandEncoder& encoder) {
      return encoder.encode(MultiRoPE{.queries = rows, .positions = positions});
    };
    const Body append = [&](CommandEncoder& encoder) { return s.cache.append(encoder, s.token, s.token, 0); };
    return RecordedStep::record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto done = rotatesFirst ? rotate(encoder) : append(encoder); !done) return done;
      return rotatesFirst ? append(encoder) : rotate(encoder);
    });
  };
  for (const bool rotatesFirst : {true, false}) {
    EXPECT_ERROR(recorded(5, rotatesFirst), (expected));
    EXPECT_ERROR(recorded(std::vector<int32_t>{5}, rotatesFirst), (expected));
    REQUIRE(recorded(tensor, rotatesFirst));
  }
  const Plan planned = REQUIRE(plan(MultiRoPE{.queries = rows, .positions = 5}));
  EXPECT_ERROR(RecordedStep::record(s.device,
                                    [&](CommandEncoder& encoder) -> Result<void> {
                                      if (auto done = encoder.encode(planned); !done) return done;
                                      return s.cache.append(encoder, s.token, s.token, 0);
                                    }),
               (expected));
  REQUIRE(RecordedStep::record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto done = encoder.encode(MultiRoPE{.queries = rows, .offsets = tensor}); !done) return done;
    return s.cache.append(encoder, s.token, s.token, 0);
  }));
  const RecordedStep inner =
      record(s.device, [&](CommandEncoder& encoder) { return encoder.encode(MultiRoPE{.queries = rows}); });
  EXPECT_ERROR(RecordedStep::record(s.device,
                                    [&](CommandEncoder& encoder) -> Result<void> {
                                      if (auto done = inner.encode(encoder); !done) return done;
                                      return s.cache.append(encoder, s.token, s.token, 0);
                                    }),
               (expected));
}

TEST(RecordedStep, RebuildsForgottenKernels) {
  RecordingFixture s;
  const Tensor rows = tokens(s.device, 1, 2, 64);
  const RecordedStep step =
      record(s.device, [&](CommandEncoder& encoder) { return encoder.encode(MultiRoPE{.queries = rows}); });
  for (int run = 0; run < 3; ++run) REQUIRE(step.run());
  EXPECT_EQ(s.device->tried(Call::makePipeline), 1u);
  s.device->registry().clear();
  for (int run = 0; run < 3; ++run) REQUIRE(step.run());
  EXPECT_EQ(s.device->tried(Call::makePipeline), 2u);
  const auto committed = s.device->committed();
  EXPECT(committed[5].dispatches[0].pipeline != committed[2].dispatches[0].pipeline);
}

TEST(RecordedStep, PositionsOfNumbersStay) {
  RecordingFixture s;
  const Tensor rows = tokens(s.device, 2, 2, 64);
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) {
    return encoder.encode(MultiRoPE{.queries = rows, .positions = std::vector<int32_t>{3, 9}});
  });
  for (int run = 0; run < 3; ++run) {
    REQUIRE(step.run());
    const std::vector<InlineBytes> inlines = s.device->committed().back().dispatches[0].dispatch.inlines;
    const bool isThere = std::any_of(inlines.begin(), inlines.end(), [](const InlineBytes& inlined) {
      const int32_t expected[] = {3, 9};
      return inlined.index == kMultiRoPEPositions && inlined.bytes.size() == sizeof expected &&
             std::memcmp(inlined.bytes.data(), expected, sizeof expected) == 0;
    });
    EXPECT(isThere);
  }
}

// A step can be encoded beside other work, more than once, and as part of another step.
TEST(RecordedStep, JoinsOtherWork) {
  RecordingFixture s;
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto done = encoder.dispatch(fakeDispatch("project", {s.source}, {s.token})); !done) return done;
    if (auto done = encoder.encode(MultiRoPE{.queries = s.token, .positions = s.cache.nextPositions({0})}); !done)
      return done;
    return s.cache.append(encoder, s.token, s.token, 0);
  });
  const RecordedStep twice = record(s.device, [&](CommandEncoder& encoder) -> Result<void> {
    if (auto done = step.encode(encoder); !done) return done;
    return step.encode(encoder);
  });
  {
    CommandEncoder dropped(s.device);
    REQUIRE(step.encode(dropped));
  }
  REQUIRE(twice.run());
  CommandEncoder encoder(s.device);
  REQUIRE(s.other.append(encoder, s.token, s.token, 0));
  REQUIRE(step.encode(encoder));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*s.cache.nextPosition(0), 3u);
  EXPECT_EQ(*s.other.nextPosition(0), 1u);
  EXPECT_EQ(firstPosition(s.device->committed()[0], 1), 0);
  EXPECT_EQ(firstPosition(s.device->committed()[0], 4), 1);
  EXPECT_EQ(firstPosition(s.device->committed()[1], 2), 2);
}

TEST(RecordedStep, APartlyEncodedStepCannotBeCommitted) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  REQUIRE(step.run());
  {
    CommandEncoder encoder(s.device);
    REQUIRE(append(s.other, encoder, 3));
    EXPECT_ERROR(step.encode(encoder), (kFull));
    EXPECT_ERROR(s.cache.append(encoder, s.token, s.token, 0), (kFull));
    EXPECT_ERROR(encoder.commit(), (kFull));
  }
  // If the first call is refused, the encoder holds no part of the step.
  CommandEncoder encoder(s.device);
  REQUIRE(append(s.cache, encoder, 3));
  EXPECT_ERROR(step.encode(encoder), (kFull));
  REQUIRE(encoder.commit());
  EXPECT_EQ(*s.cache.nextPosition(0), 4u);
  EXPECT_EQ(*s.other.nextPosition(0), 1u);
}

TEST(RecordedStep, IsRefusedIfACacheAdvanced) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  CommandEncoder encoder(s.device);
  REQUIRE(step.encode(encoder));
  appendNow(s.other, s.device, 1);
  const auto refused = encoder.commit();
  EXPECT_ERROR(refused, {.op = "AttentionCache", .what = "the cache was changed while this encoder recorded"});
  EXPECT(!refused && refused.error().retryable);
  EXPECT_EQ(*s.cache.nextPosition(0), 0u);
}

TEST(RecordedStep, FailingCallsAreNotRecorded) {
  RecordingFixture s;
  const Tensor wrong = tokens(s.device, 1, 3);
  // A body that fails records nothing; one that continues after an error records the successful calls.
  EXPECT_ERROR(RecordedStep::record(s.device, [&](CommandEncoder& e) { return s.cache.append(e, wrong, wrong, 0); }),
               {.op = "AttentionCache.append"});
  const RecordedStep step = record(s.device, [&](CommandEncoder& encoder) {
    EXPECT(!s.cache.append(encoder, wrong, wrong, 0));
    EXPECT(!encoder.encode(MultiRoPE{.queries = wrong, .positions = int64_t{1} << 40}));
    return s.cache.append(encoder, s.token, s.token, 0);
  });
  REQUIRE(step.run());
  EXPECT_EQ(*s.cache.nextPosition(0), 1u);
  EXPECT_EQ(s.device->committed().back().dispatches.size(), 1u);
}

TEST(RecordedStep, ReportsErrorsOfRecording) {
  const auto device = FakeDevice::make();
  EXPECT_ERROR(RecordedStep::record(device, {}), {.op = "RecordedStep",
                                                  .what = "there is nothing to record",
                                                  .got = "an empty function",
                                                  .expected = "a function that encodes",
                                                  .fix = "Pass a function that records work into the encoder."});
  EXPECT_ERROR(RecordedStep::record(nullptr, [](CommandEncoder&) { return Result<void>(); }),
               {.op = "RecordedStep",
                .what = "there is no device to record for",
                .got = "a null device",
                .expected = "a device",
                .fix = "Make one with Device::makeDefault and pass it."});
  EXPECT_ERROR(RecordedStep::record(device, [](CommandEncoder&) -> Result<void> { throw std::bad_alloc(); }),
               {.code = ErrorCode::outOfMemory, .op = "RecordedStep"});
  device->failAt(Call::makeSubmission);
  EXPECT(!RecordedStep::record(device, [](CommandEncoder& encoder) { return encoder.barrier(); }));
}

TEST(RecordedStep, ARecordingEncoderCannotBeCommitted) {
  RecordingFixture s;
  record(s.device, [&](CommandEncoder& encoder) {
    EXPECT_ERROR(encoder.commit(), {.op = "CommandEncoder",
                                    .what = "the encoder of a recording never runs",
                                    .got = "it is committed",
                                    .expected = "calls that encode",
                                    .fix = "End the recording, then run its step."});
    EXPECT_ERROR(encoder.join(&s, nullptr),
                 {.what = "the encoder of a recording never runs", .got = "a participant of the caller joins it"});
    return s.cache.append(encoder, s.token, s.token, 0);
  });
  EXPECT_EQ(s.device->tried(Call::commit), 0u);
}

TEST(RecordedStep, RefusesAnEncoderOfAnotherDevice) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  const auto elsewhere = FakeDevice::make();
  CommandEncoder encoder(elsewhere);
  EXPECT_ERROR(step.encode(encoder), {.op = "RecordedStep",
                                      .what = "the encoder is of another device than the step",
                                      .got = "Fake",
                                      .expected = "the same device object as when it was recorded, Fake",
                                      .fix = "Record the step on the device that runs it."});
  REQUIRE(encoder.commit());
}

TEST(RecordedStep, AnEmptyStepRuns) {
  const auto device = FakeDevice::make();
  const RecordedStep step = record(device, [](CommandEncoder&) { return Result<void>(); });
  REQUIRE(REQUIRE(step.run()).wait());
}

TEST(RecordedStep, ADeviceFailureReachesItsCaches) {
  RecordingFixture s;
  const RecordedStep step = s.both();
  REQUIRE(step.run());
  s.device->holdCompletions();
  const Completion failed = REQUIRE(step.run());
  EXPECT(s.device->finishNext(fakeFailure()));
  EXPECT(!failed.wait());
  EXPECT(s.cache.isSuspect() && s.other.isSuspect());
  EXPECT_ERROR(step.run(), {.op = "AttentionCache.append"});
  for (AttentionCache* cache : {&s.cache, &s.other}) REQUIRE(cache->truncate(1, 0));
  const Completion again = REQUIRE(step.run());
  EXPECT(s.device->finishNext({}));
  REQUIRE(again.wait());
  EXPECT_EQ(*s.cache.nextPosition(0), 2u);
}

}  // namespace mnk::test
