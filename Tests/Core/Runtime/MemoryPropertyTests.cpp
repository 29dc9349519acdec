// Which bytes cannot be read or written because of an open step, of work in flight and of failed work: random rows of
// one tensor, compared with one flag per byte.
#include <bitset>

#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kBytes = 160;
using Bytes = std::bitset<kBytes>;

Region drawnRows(Seeded& random, Bytes& bytes) {
  const Region region{.offset = random.below(60),
                      .rowBytes = 1 + random.below(6),
                      .rowStride = random.below(2) == 0 ? 16 : random.below(14),
                      .rows = 1 + random.below(6)};
  for (uint64_t row = 0; row < region.rows; ++row) {
    for (uint64_t i = 0; i < region.rowBytes; ++i) bytes.set(region.offset + row * region.rowStride + i);
  }
  return region;
}

// The accesses of an encoder's dispatches.
struct ByteWork {
  Bytes read, written;
  Bytes readFirst;       // before the encoder itself has written them
  Bytes writtenForSure;  // by dispatches that write all of their declared bytes
  Completion completion = {};

  Bytes touched() const { return read | written; }
  // A plan of one or two dispatches.
  Plan drawPlan(const Tensor& tensor, Seeded& random) {
    Plan plan{.op = "Drawn", .dispatches = {}};
    for (uint64_t left = 1 + random.below(2); left > 0; --left) {
      Dispatch& dispatch = plan.dispatches.emplace_back(fakeDispatch("A", {Binding::whole(0, tensor, Access::read)}));
      Bytes reads, writes;
      dispatch.buffers[0].reads = {drawnRows(random, reads)};
      dispatch.buffers[0].writes = {drawnRows(random, writes), drawnRows(random, writes)};
      if (random.below(2) == 0) dispatch.buffers[0].reads.clear(), reads.reset();
      read |= reads;
      readFirst |= reads & ~writtenForSure;
      written |= writes;
      if (random.below(4) == 0) {
        dispatch.bytesWritten = 1;
      } else {
        writtenForSure |= writes;
      }
    }
    return plan;
  }
};

struct ByteFixture {
  std::shared_ptr<FakeDevice> device = FakeDevice::make(), other = FakeDevice::make();
  Tensor tensor = REQUIRE(Tensor::zeros(device, DType::u8, REQUIRE(Shape::make({kBytes}))));
  std::shared_ptr<Buffer> sameMemory = REQUIRE(other->wrapMemory(tensor.buffer()->contents(), kBytes, {}));

  // Through buffers of both devices.
  void expectRefused(const Bytes& reads, const Bytes& writes) const {
    std::byte value{};
    for (uint64_t byte = 0; byte < kBytes; ++byte) {
      Buffer& buffer = byte % 2 == 0 ? *tensor.buffer() : *sameMemory;
      EXPECT_EQ(!buffer.read(byte, {&value, 1}), bool(reads[byte]));
      EXPECT_EQ(!buffer.write(byte, {&value, 1}), bool(writes[byte]));
    }
  }
};

}  // namespace

TEST(OpenStep, CoversExactlyItsBytes) {
  Seeded random(10);
  const ByteFixture s;
  for (int step = 0; step < 500; ++step) {
    ByteWork work;
    {
      CommandEncoder encoder(s.device);
      for (uint64_t left = 1 + random.below(3); left > 0; --left) {
        REQUIRE(encoder.encode(work.drawPlan(s.tensor, random)));
      }
      s.expectRefused(work.written, work.touched());
      if (random.below(2) == 0) REQUIRE(encoder.commit());
    }
    s.expectRefused({}, {});
  }
}

// In a handler, a call that would wait fails.
TEST(MemoryInFlight, CallsWaitForExactlyTheirBytes) {
  Seeded random(9);
  const ByteFixture s;
  s.device->holdCompletions();
  for (int step = 0; step < 500; ++step) {
    ByteWork work;
    int calls = 0;
    REQUIRE(CommandEncoder(s.device).commit([&](const Result<Summary>&) {
      s.expectRefused(work.written, work.touched());
      ++calls;
    }));
    for (uint64_t left = 1 + random.below(3); left > 0; --left) {
      CommandEncoder encoder(s.device);
      REQUIRE(encoder.encode(work.drawPlan(s.tensor, random)));
      REQUIRE(encoder.commit());
    }
    while (s.device->finishNext({})) {
    }
    EXPECT_EQ(calls, 1);
    s.expectRefused({}, {});
  }
}

// Encoders that fail or succeed, three in flight at a time.
TEST(FailedMemory, CoversExactlyTheUnwrittenBytes) {
  Seeded random(8);
  const ByteFixture s;
  s.device->holdCompletions();
  Bytes failed;
  uint32_t refused = 0, dependent = 0, cleared = 0;
  const auto commit = [&] {
    ByteWork work;
    CommandEncoder encoder(s.device);
    for (uint64_t left = 1 + random.below(3); left > 0; --left) {
      ByteWork after = work;
      const Plan plan = after.drawPlan(s.tensor, random);
      const bool isRefused = (after.readFirst & failed).any();
      EXPECT_EQ(!encoder.encode(plan), isRefused);
      refused += isRefused;
      if (!isRefused) work = after;
    }
    work.completion = REQUIRE(encoder.commit());
    return work;
  };
  for (int step = 0; step < 1000; ++step) {
    if (step % 3 == 0) {  // otherwise nearly all bytes stay failed
      const uint64_t begin = random.below(kBytes / 4), end = begin + random.below(kBytes - begin) + 1;
      REQUIRE(s.tensor.buffer()->write(begin, std::vector<std::byte>(end - begin)));
      for (uint64_t byte = begin; byte < end; ++byte) failed.reset(byte);
    }
    const ByteWork works[] = {commit(), commit(), commit()};
    for (const ByteWork& work : works) {
      const bool fails = random.below(3) == 0, dependsOnFailed = (work.readFirst & failed).any();
      s.device->finishNext(fails ? Result<void>(fakeFailure()) : Result<void>());
      EXPECT_EQ(!work.completion.wait(), fails || dependsOnFailed);
      dependent += !fails && dependsOnFailed;
      const Bytes before = failed;
      failed = fails || dependsOnFailed ? failed | work.written : failed & ~work.writtenForSure;
      cleared += (before & ~failed).any();
    }
    for (uint64_t byte = 0; byte < kBytes; ++byte) {
      std::byte value;
      EXPECT_EQ(!s.tensor.buffer()->read(byte, {&value, 1}), bool(failed[byte]));
    }
  }
  for (const uint32_t bin : {refused, dependent, cleared}) EXPECT(bin > 100);
}

}  // namespace mnk::test
