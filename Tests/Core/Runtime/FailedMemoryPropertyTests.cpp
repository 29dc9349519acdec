// Encoders with several dispatches that fail or succeed, two in flight at a time, against one flag per byte.
#include <bitset>

#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kBytes = 160;
using Bytes = std::bitset<kBytes>;

Bytes bytesOf(const Region& region) {
  Bytes bytes;
  for (uint64_t row = 0; row < region.rows; ++row) {
    for (uint64_t i = 0; i < region.rowBytes; ++i) bytes.set(region.offset + row * region.rowStride + i);
  }
  return bytes;
}

Region randomRegion(Seeded& random) {
  return {.offset = random.below(60),
          .rowBytes = 1 + random.below(6),
          .rowStride = random.below(2) == 0 ? 16 : random.below(14),
          .rows = 1 + random.below(6)};
}

// The accesses of an encoder's dispatches.
struct Work {
  Bytes readFirst;  // before the encoder itself has written them
  Bytes written;
  Completion completion;
};

}  // namespace

TEST(FailedMemory, IsExactForSeveralDispatches) {
  Seeded random(8);
  const auto device = FakeDevice::make();
  device->holdCompletions();
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::u8, REQUIRE(Shape::make({kBytes}))));
  Bytes failed;
  uint32_t refused = 0, dependent = 0;
  const auto commit = [&] {
    Work work;
    CommandEncoder encoder(device);
    for (uint64_t left = 1 + random.below(4); left > 0; --left) {
      const Region read = randomRegion(random), write = randomRegion(random);
      Dispatch dispatch = fakeDispatch("A", {Binding::whole(0, tensor, Access::readWrite)});
      dispatch.buffers[0].reads = {read};
      dispatch.buffers[0].writes = {write, randomRegion(random)};
      if (random.below(2) == 0) dispatch.buffers[0].reads.clear();
      Bytes reads;
      for (const Region& region : dispatch.buffers[0].reads) reads |= bytesOf(region);
      reads &= ~work.written;
      const bool isRefused = (reads & failed).any();
      EXPECT_EQ(!encoder.dispatch(dispatch), isRefused);
      refused += isRefused;
      if (isRefused) continue;
      work.readFirst |= reads;
      for (const Region& region : dispatch.buffers[0].writes) work.written |= bytesOf(region);
    }
    work.completion = REQUIRE(encoder.commit());
    return work;
  };
  for (int step = 0; step < 1500; ++step) {
    if (step % 3 == 0) {  // otherwise nearly all bytes stay failed
      const uint64_t begin = random.below(kBytes / 4);
      REQUIRE(tensor.buffer()->write(begin, std::vector<std::byte>(kBytes - begin)));
      failed &= ~(~Bytes() << begin);
    }
    const Work works[] = {commit(), commit()};
    for (const Work& work : works) {
      const bool fails = random.below(3) == 0, dependsOnFailed = (work.readFirst & failed).any();
      device->finishNext(fails ? Result<void>(Error{.what = "the device stopped"}) : Result<void>());
      EXPECT_EQ(!work.completion.wait(), fails || dependsOnFailed);
      dependent += !fails && dependsOnFailed;
      if (fails || dependsOnFailed) {
        failed |= work.written;
      } else {
        failed &= ~work.written;
      }
    }
    for (uint64_t byte = 0; byte < kBytes; ++byte) {
      std::byte value;
      EXPECT_EQ(!tensor.buffer()->read(byte, {&value, 1}), bool(failed[byte]));
    }
  }
  EXPECT(refused > 100);
  EXPECT(dependent > 100);
}

}  // namespace mnk::test
