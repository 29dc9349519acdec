#include <fmt/ranges.h>

#include <cmath>

#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

constexpr double kDispatchSeconds = 1e-6;  // of the software GPU

// Copies from one tensor to the next: "A" twice, without a barrier between them, then "B", then "A" again.
struct Chain {
  explicit Chain(const std::shared_ptr<Device>& device) : one(device), apart(device), two(device), three(device) {
    two.write.keys = one.write.into.keys;
    three.write.keys = two.write.into.keys;
  }
  static Plan named(const CopyFixture& copy, std::string kind) {
    Plan made = REQUIRE(plan(copy.write));
    made.dispatches.at(0).kind = std::move(kind);
    return made;
  }
  void encode(CommandEncoder& encoder) const {
    REQUIRE(encoder.encode(named(one, "A")));
    REQUIRE(encoder.encode(named(apart, "A")));
    REQUIRE(encoder.encode(named(two, "B")));
    REQUIRE(encoder.encode(named(three, "A")));
  }
  Summary run(const std::shared_ptr<Device>& device) const {
    CommandEncoder encoder(device, "step");
    REQUIRE(encoder.measureOps());
    encode(encoder);
    const Summary summary = REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(readTensor(three.out) == readTensor(one.in));
    EXPECT(summary.deviceSeconds > 0);
    return summary;
  }

  CopyFixture one, apart, two, three;
};

void expectSeconds(const Summary& summary, double a, double b) {
  EXPECT(std::abs(summary.kinds.at("A").deviceSeconds - a) < 1e-12);
  EXPECT(std::abs(summary.kinds.at("B").deviceSeconds - b) < 1e-12);
}
void expectMeasured(const Summary& summary) {
  expectSeconds(summary, 3 * kDispatchSeconds, kDispatchSeconds);
  EXPECT(summary.total.deviceSeconds <= summary.deviceSeconds * (1 + 1e-9));
}
void expectUnknown(const Summary& summary) {
  expectSeconds(summary, 0, 0);
  EXPECT_EQ(summary.total.deviceSeconds, 0);
}

const std::string kCopy = "dispatch kvCacheMove_4 grid 1x1x4 group 1x1x4";

}  // namespace

TEST(MetalOpTimes, AreThoseOfPassesOnAppleGPUs) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  expectMeasured(Chain(device).run(device));
  EXPECT_EQ(traceText(),
            fmt::format("encoder 'A' concurrent; sample 0; {0}; {0}; barrier; update fence; sample 1; "
                        "encoder 'B' concurrent; sample 2; wait for fence; {0}; barrier; update fence; sample 3; "
                        "encoder 'A' concurrent; sample 4; wait for fence; {0}; sample 5",
                        kCopy));
  EXPECT_EQ(softmetal::counters().commandBuffers, 1u);
}

TEST(MetalOpTimes, AreTakenBetweenDispatchesOnGPUsThatCan) {
  MetalFixture fixture;
  softmetal::machine().devices[0].sampling = softmetal::Sampling::dispatches;
  const auto device = fixture.makeDevice();
  expectMeasured(Chain(device).run(device));
  EXPECT_EQ(traceText(), fmt::format("encoder 'step' concurrent; sample 0; {0}; {0}; barrier; sample 1; "
                                     "sample 2; {0}; barrier; sample 3; sample 4; {0}; sample 5",
                                     kCopy));
  EXPECT_EQ(fmt::format("{}", fmt::join(softmetal::debugGroups(), " ")), "A A B A");
}

TEST(MetalOpTimes, AreUnknownWithoutTimestampsOrASampleBuffer) {
  MetalFixture fixture;
  for (const bool hasTimestamps : {false, true}) {
    softmetal::machine().devices[0].sampling = hasTimestamps ? softmetal::Sampling::passes : softmetal::Sampling::none;
    const auto device = fixture.makeDevice();
    if (hasTimestamps) softmetal::faults().failAt(softmetal::Call::sampleBuffer);
    expectUnknown(Chain(device).run(device));
    EXPECT_EQ(softmetal::counters().encoders, 1u);
    if (hasTimestamps) expectMeasured(Chain(device).run(device));
  }
  softmetal::machine().devices[0].takesSamples = false;
  const auto device = fixture.makeDevice();
  expectUnknown(Chain(device).run(device));
}

TEST(MetalOpTimes, OfMoreWorkThanMetalHasSampleBuffersForAreUnknown) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const Chain chain(device);
  std::vector<Completion> all;
  softmetal::faults().holdWork();
  for (int i = 0; i < 33; ++i) {
    CommandEncoder encoder(device);
    REQUIRE(encoder.measureOps());
    chain.encode(encoder);
    all.push_back(REQUIRE(encoder.commit()));
  }
  softmetal::faults().releaseWork();
  for (int i = 0; i < 32; ++i) expectMeasured(REQUIRE(all.at(i).wait()));
  expectUnknown(REQUIRE(all.back().wait()));
}

TEST(MetalOpTimes, OfMoreOpsThanASampleBufferHoldsAreUnknown) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const Chain chain(device);
  for (const int spans : {2048, 2049}) {
    CommandEncoder encoder(device);
    REQUIRE(encoder.measureOps());
    for (int i = 0; i < spans; ++i) REQUIRE(encoder.encode(Chain::named(chain.one, i % 2 == 0 ? "A" : "B")));
    const Summary summary = REQUIRE(REQUIRE(encoder.commit()).wait());
    if (spans == 2048) {
      expectSeconds(summary, 1024 * kDispatchSeconds, 1024 * kDispatchSeconds);
    } else {
      expectUnknown(summary);
    }
  }
}

// Metal orders passes over buffers that it tracks. Over others the fence alone does, which a violation would tell.
TEST(MetalOpTimes, PassesAreOrderedOverUntrackedMemory) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice({.describesDispatches = true});
  const Tensor between = makeUntracked(device);
  Chain chain(device);
  chain.one.write.into.keys = between;
  chain.two.write.keys = between;
  expectMeasured(chain.run(device));
}

TEST(MetalOpTimes, AreKnownInTheAppsCommandBufferUnlessItFails) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const Chain chain(device);
  for (const bool fails : {false, true}) {
    const AutoreleasePool pool;
    const auto native = appCommandBuffer(device);
    CommandEncoder encoder(device, REQUIRE(metal::makeSubmission(device, native.get(), "mine")));
    REQUIRE(encoder.measureOps());
    chain.encode(encoder);
    const Completion done = REQUIRE(encoder.commit());
    EXPECT_EQ(done.summary().total.deviceSeconds, 0);
    if (fails) softmetal::faults().failCommandBuffer(0, MTL::CommandBufferErrorTimeout, softmetal::When::after);
    native->commit();
    EXPECT_EQ(bool(done.wait()), !fails);
    if (fails) {
      EXPECT_EQ(done.summary().total.deviceSeconds, 0);
    } else {
      expectMeasured(done.summary());
    }
  }
}

// The second pass cannot be had: what the first has encoded into the app's command buffer uses memory that lives on.
TEST(MetalOpTimes, APassThatCannotBeHadFailsTheWork) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const Chain chain(device);
  softmetal::faults().failAt(softmetal::Call::encoder, 1);
  {
    CommandEncoder encoder(device);
    REQUIRE(encoder.measureOps());
    chain.encode(encoder);
    EXPECT(!encoder.commit());
  }
  const AutoreleasePool pool;
  const auto native = NS::RetainPtr(metal::nativeQueue(device)->commandBufferWithUnretainedReferences());
  softmetal::faults().failAt(softmetal::Call::encoder, 1);
  CommandEncoder encoder(device, REQUIRE(metal::makeSubmission(device, native.get(), "mine")));
  REQUIRE(encoder.measureOps());
  chain.encode(encoder);
  const Completion done = REQUIRE(encoder.commit());
  EXPECT(!done.wait());
  native->commit();
  native->waitUntilCompleted();
}

}  // namespace mnk::test
