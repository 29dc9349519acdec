// Memory that command buffers may still touch: those of the device, and those that the app commits itself.
#include "CAPI/CApiHarness.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/mnk_metal.h"
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

TEST(MetalInFlight, TheCApiReportsTheSame) {
  MetalFixture fixture;
  const mnk_metal_options options{.library_path = fixture.shippedLibrary().c_str()};
  const Owned<mnk_device> device(mnk_device_make_metal(&options, nullptr), mnk_device_release);
  const auto from = makeTensor(device.get(), MNK_F32, {1, 4, 1}), into = makeTensor(device.get(), MNK_F32, {1, 4, 1});
  const float numbers[] = {1, 2, 3, 4};
  EXPECT(mnk_tensor_write(from.get(), numbers, sizeof numbers, nullptr));
  const mnk_kv_cache_write copy{.keys = {.tensor = from.get(), .layout = MNK_KV_LAYOUT_HEAD_MAJOR},
                                .into = {.keys = into.get()}};
  const AutoreleasePool pool;
  auto* queue = static_cast<MTL::CommandQueue*>(mnk_device_metal_queue(device.get()));
  float read[4] = {};
  Caught caught;
  for (const bool fails : {false, true}) {
    const auto native = NS::RetainPtr(queue->commandBuffer());
    const Owned<mnk_encoder> encoder(mnk_encoder_make_into_metal(device.get(), native.get(), nullptr, nullptr),
                                     mnk_encoder_release);
    EXPECT(mnk_encoder_kv_cache_write(encoder.get(), &copy, nullptr));
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(!mnk_tensor_read(into.get(), read, sizeof read, caught.out()));
    caught.expect(kNotCommitted);
    EXPECT(!mnk_device_copy_last_failure(device.get()));
    if (fails) softmetal::faults().failCommandBuffer(0, 2);
    native->commit();
    EXPECT_EQ(mnk_completion_wait(done.get(), nullptr), !fails);
    EXPECT_EQ(mnk_tensor_read(into.get(), read, sizeof read, caught.out()), !fails);
    EXPECT_EQ(read[3], 4.f);
  }
  caught.expect({.code = ErrorCode::timeout, .what = "earlier work that was to write this memory failed"});
  const Owned<mnk_error> last(mnk_device_copy_last_failure(device.get()), mnk_error_release);
  EXPECT_EQ(mnk_error_get_code(last.get()), MNK_TIMEOUT);
  EXPECT(mnk_tensor_write(into.get(), numbers, sizeof numbers, nullptr));
  EXPECT(mnk_tensor_read(into.get(), read, sizeof read, nullptr));
}

}  // namespace mnk::test
