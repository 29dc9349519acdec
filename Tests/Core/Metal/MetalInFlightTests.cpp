// Memory that command buffers may still touch: those of the device, and those that the app commits itself.
#include "Harness/HeldWork.hpp"
#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

const ExpectedError kNotCommitted{.code = ErrorCode::wouldDeadlock,
                                  .op = "Buffer",
                                  .what = "work on this memory has not been started",
                                  .got = "a command buffer of the app's that is not committed",
                                  .expected = "work that runs",
                                  .fix = "Read it after the command buffer is committed."};

}  // namespace

// A handler that the app added first runs before the end of the work is reported, on the thread that will report it.
TEST(MetalInFlight, AHandlerOfTheAppsReadsWhatItsCommandBufferWrote) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  for (const bool fails : {false, true}) {
    const CopyFixture copy(device);
    const AutoreleasePool pool;
    const auto native = appCommandBuffer(device);
    std::optional<Result<std::vector<float>>> read;
    std::latch isRead{1};
    native->addCompletedHandler([&](MTL::CommandBuffer*) {
      read = valuesOf(copy.out);
      isRead.count_down();
    });
    const Completion done = commitInto(device, native.get(), copy);
    if (fails) softmetal::faults().failCommandBuffer(0, 2);
    native->commit();
    isRead.wait();
    EXPECT_EQ(bool(done.wait()), !fails);
    if (fails) {
      EXPECT_ERROR(*read, {.code = ErrorCode::deviceFault,
                           .op = "Buffer",
                           .what = "work on this memory failed",
                           .got = "a command buffer of the app's that ended with an error",
                           .expected = "memory that was written since",
                           .fix = "See the command buffer's error"});
    } else {
      EXPECT(REQUIRE(*read) == REQUIRE(valuesOf(copy.in)));
    }
  }
}

TEST(MetalInFlight, AnAppsCommandBufferIsWaitedForOnceItIsCommitted) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  for (const bool isEnqueued : {false, true}) {
    const CopyFixture copy(device), other(device);
    const AutoreleasePool pool;
    const auto native = appCommandBuffer(device);
    commitInto(device, native.get(), copy);
    if (isEnqueued) native->enqueue();
    const auto refused = valuesOf(copy.out);
    EXPECT_ERROR(refused, (kNotCommitted));
    EXPECT(!refused && refused.error().retryable);
    REQUIRE(valuesOf(copy.in));
    REQUIRE(valuesOf(other.out));
    EXPECT_ERROR(fill(copy.in, 1), {.code = ErrorCode::wouldDeadlock,
                                    .what = "has not been started",
                                    .fix = "Write it after the command buffer is committed."});
    softmetal::faults().holdWork();
    native->commit();
    const auto read = waitingFor([] { softmetal::faults().releaseWork(); }, [&] { return valuesOf(copy.out); });
    EXPECT(REQUIRE(read) == (std::vector<float>{1, 2, 3, 4}));
    REQUIRE(fill(copy.in, 1));
  }
}

TEST(MetalInFlight, AnAppsCommandBufferThatIsReleasedLeavesAFailure) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  {
    const AutoreleasePool pool;
    const auto native = appCommandBuffer(device);
    commitInto(device, native.get(), copy);
    EXPECT_ERROR(valuesOf(copy.out), (kNotCommitted));
  }
  EXPECT_ERROR(valuesOf(copy.out), {.what = "earlier work that was to write this memory failed",
                                    .got = "the app's command buffer was released"});
  REQUIRE(submit(device, copy.write).wait());
  copy.expectCopied();
}

TEST(MetalInFlight, ACacheIsFineAgainOnceItIsAppendedAgain) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  for (const bool isQuantized : {false, true}) {
    const Context context(isQuantized ? "quantized" : "dense");
    AttentionCacheDescriptor descriptor{.kvHeads = 2, .headDim = 32, .capacity = 4, .sequences = 2};
    if (isQuantized) descriptor.quantized = KVQuantizedStorage{};
    AttentionCache cache = REQUIRE(AttentionCache::make(device, descriptor));
    const auto tokens = [&](uint64_t count) {
      return REQUIRE(floats(device, count * 64, 1).reshaped(REQUIRE(Shape::make({count, 2, 32}))));
    };
    const Tensor out = tokens(1);
    const auto append = [&](CommandEncoder& encoder, uint64_t count) {
      return cache.append(encoder, tokens(count), tokens(count), 0);
    };
    const auto attend = [&](CommandEncoder& encoder) {
      return cache.attend(encoder, tokens(1), {.output = out}, {}, 0);
    };
    const auto bytes = [&] {
      const Tensor stored = isQuantized ? cache.quantizedView()->keys.codes : cache.view().keys;
      std::vector<std::byte> read(stored.byteCount());
      return stored.read(read);
    };
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) { return append(encoder, 2); }));
    softmetal::faults().failCommandBuffer(0, 3);
    EXPECT(!CommandEncoder::run(device, [&](CommandEncoder& encoder) { return append(encoder, 1); }));
    EXPECT_ERROR(bytes(), {.code = ErrorCode::pageFault, .op = "Buffer"});
    EXPECT(cache.isSuspect());
    REQUIRE(cache.truncate(2, 0));
    REQUIRE(CommandEncoder::run(device, attend));
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto appended = append(encoder, 1); !appended) return appended;
      return attend(encoder);
    }));
    REQUIRE(CommandEncoder::run(device, attend));
    REQUIRE(bytes());
  }
}

}  // namespace mnk::test
