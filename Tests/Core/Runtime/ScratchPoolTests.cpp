#include "Runtime/ScratchPool.hpp"

#include "Harness/EveryDevice.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

TEST(ScratchPool, ReusesReturnedBuffers) {
  const auto device = hostDevice({});
  ScratchPool& pool = device->scratch();
  const Buffer* first = nullptr;
  {
    const auto acquired = REQUIRE(pool.acquire(device, 1000));
    EXPECT(acquired->length() >= 1000);
    EXPECT(acquired->device() == device);
    first = acquired.get();
    EXPECT(REQUIRE(pool.acquire(device, 1000)).get() != first);
    EXPECT_EQ(pool.idleCount(), 1u);
  }
  EXPECT_EQ(pool.idleCount(), 2u);
  const auto again = REQUIRE(pool.acquire(device, 10));
  EXPECT_EQ(pool.idleCount(), 1u);
  EXPECT(again->device() == device);
}

TEST(ScratchPool, RetainsFewBuffersAndNoLargeOnes) {
  const auto device = hostDevice({});
  {
    std::vector<std::shared_ptr<Buffer>> acquired;
    for (uint64_t i = 0; i < 10; ++i) acquired.push_back(REQUIRE(device->scratch().acquire(device, 1000 * (i + 1))));
  }
  EXPECT_EQ(device->scratch().idleCount(), 4u);
  REQUIRE(device->scratch().acquire(device, uint64_t{65} << 20));
  EXPECT_EQ(device->scratch().idleCount(), 4u);
}

TEST(ScratchPool, DoesNotKeepItsDeviceAlive) {
  std::weak_ptr<Device> known;
  {
    auto device = hostDevice({});
    known = device;
    auto acquired = REQUIRE(device->scratch().acquire(device, 1));
    device.reset();
    EXPECT(!known.expired());  // the scratch allocation retains it
    acquired.reset();
  }
  EXPECT(known.expired());
}

TEST(MatrixLayout, IsDetectedOnEveryDevice) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const MatrixLayout found = device->probe().matrixLayout;
    EXPECT(found != MatrixLayout::unknown);
    EXPECT(device->probe().matrixLayout == found);
  });
  // Perturbed devices use the other layout, so that kernels cannot rely on one.
  EXPECT(hostDevice({.perturbsResults = true})->probe().matrixLayout == MatrixLayout::rowMajor);
}

}  // namespace mnk::test
