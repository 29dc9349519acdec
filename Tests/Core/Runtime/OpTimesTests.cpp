#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::test {

namespace {

// Two ops; the second reads the results of the first.
struct TwoOps {
  explicit TwoOps(const std::shared_ptr<Device>& device)
      : first(write(make(device), make(device))), second(write(first.into.keys, make(device))) {}

  static Tensor make(const std::shared_ptr<Device>& device) {
    return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, 4, 1}))));
  }
  static KVCacheWrite write(const Tensor& from, const Tensor& into) {
    return {.keys = from, .values = {}, .sourceLayout = KVLayout::headMajor, .into = {.keys = into, .values = {}}};
  }
  void encode(CommandEncoder& encoder) const {
    REQUIRE(encoder.encode(first));
    Plan renamed = REQUIRE(plan(second));
    for (Dispatch& dispatch : renamed.dispatches) dispatch.kind = "Second";
    REQUIRE(encoder.encode(renamed));
    REQUIRE(encoder.encode(first));
  }

  KVCacheWrite first, second;
};

// A GPU may be unable to measure, and its clocks are not compared.
bool mustBeKnown(const Device& device) {
  return device.kind() == "host";
}

}  // namespace

// Requested before or after the ops are encoded, or not at all.
TEST(OpTimes, AreKnownByKindIfRequested) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    enum class Request { before, after, none };
    for (const Request request : {Request::before, Request::after, Request::none}) {
      CommandEncoder encoder(device);
      if (request == Request::before) REQUIRE(encoder.measureOps());
      TwoOps(device).encode(encoder);
      if (request == Request::after) REQUIRE(encoder.measureOps());
      const Completion done = REQUIRE(encoder.commit());
      const Summary summary = REQUIRE(done.wait());
      EXPECT_EQ(summary.kinds.size(), 2u);
      const bool isKnown = summary.total.deviceSeconds > 0;
      EXPECT(request == Request::none ? !isKnown : isKnown || !mustBeKnown(*device));
      double sum = 0;
      for (const auto& [kind, counts] : summary.kinds) {
        EXPECT_EQ(counts.deviceSeconds > 0, isKnown);
        sum += counts.deviceSeconds;
      }
      EXPECT_EQ(summary.kinds.at("KVCacheWrite").dispatches, 2u);
      EXPECT_EQ(summary.kinds.at("Second").dispatches, 1u);
      EXPECT_EQ(summary.total.deviceSeconds, sum);
      EXPECT(summary.deviceSeconds > 0);
      EXPECT(sum <= summary.deviceSeconds || !mustBeKnown(*device));
      EXPECT_EQ(done.summary().kinds.at("Second").deviceSeconds, summary.kinds.at("Second").deviceSeconds);
      EXPECT_EQ(encoder.summary().total.deviceSeconds, 0);
    }
    // Nor has an empty step any.
    CommandEncoder encoder(device);
    REQUIRE(encoder.measureOps());
    REQUIRE(encoder.barrier());
    const Summary empty = REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT(empty.kinds.empty());
    EXPECT_EQ(empty.total.deviceSeconds, 0);
  });
}

TEST(OpTimes, AreUnknownOnADeviceThatCannotMeasure) {
  const auto device = FakeDevice::make();
  CommandEncoder encoder(device);
  REQUIRE(encoder.measureOps());
  REQUIRE(encoder.dispatch(fakeDispatch("A")));
  const Summary summary = REQUIRE(REQUIRE(encoder.commit()).wait());
  EXPECT_EQ(summary.kinds.size(), 1u);
  EXPECT_EQ(summary.total.deviceSeconds, 0);
}

}  // namespace mnk::test
