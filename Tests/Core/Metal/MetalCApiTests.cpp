#include <vector>

#include "CAPI/CApiHarness.hpp"
#include "MLXNativeKernels/mnk_metal.h"
#include "MetalFixture.hpp"

#pragma clang diagnostic ignored "-Wnonnull"  // what C allows to be passed is tested

namespace mnk::test {

namespace {

Owned<mnk_device> makeMetal(const MetalFixture& fixture) {
  mnk_metal_options options{};
  options.library_path = fixture.shippedLibrary().c_str();
  return {mnk_device_make_metal(&options, nullptr), mnk_device_release};
}

constexpr uint64_t kShape[] = {1, 4, 1};
constexpr float kNumbers[] = {1, 2, 3, 4};

}  // namespace

TEST(MetalCApi, MakesADeviceOverTheAppsObjects) {
  MetalFixture fixture;
  const AutoreleasePool pool;
  const auto native = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  const auto queue = NS::TransferPtr(native->newCommandQueue());
  mnk_metal_options options{};
  options.device = native.get();
  options.queue = queue.get();
  options.library_path = fixture.shippedLibrary().c_str();
  options.describes_dispatches = true;
  const Owned<mnk_device> device(mnk_device_make_metal(&options, nullptr), mnk_device_release);
  EXPECT_EQ(std::string(mnk_device_kind(device.get())), "metal");
  EXPECT(mnk_device_metal_device(device.get()) == native.get());
  EXPECT(mnk_device_metal_queue(device.get()) == queue.get());
  const Owned<mnk_library> library(mnk_library_make_shipped(device.get(), nullptr), mnk_library_release);
  EXPECT_EQ(mnk_library_get_origin(library.get()), MNK_ORIGIN_GIVEN_FILE);
  const auto from = makeTensor(device.get(), MNK_F32, {1, 4, 1}), into = makeTensor(device.get(), MNK_F32, {1, 4, 1});
  const auto encoder = makeEncoder(device.get());
  const mnk_kv_cache_write write{.keys = {.tensor = from.get(), .layout = MNK_KV_LAYOUT_HEAD_MAJOR},
                                 .into = {.keys = into.get()}};
  EXPECT(mnk_encoder_kv_cache_write(encoder.get(), &write, nullptr));
  commit(encoder);
  EXPECT(softmetal::debugGroups().at(0).starts_with("KVCacheWrite kvCacheMove_4 binds"));
  EXPECT_EQ(std::string(mnk_library_origin_path(library.get())), fixture.shippedLibrary());
}

TEST(MetalCApi, WrapsABufferAndHandsItBack) {
  MetalFixture fixture;
  const auto device = makeMetal(fixture);
  const AutoreleasePool pool;
  auto* gpu = static_cast<MTL::Device*>(mnk_device_metal_device(device.get()));
  const auto native = NS::TransferPtr(gpu->newBuffer(32, MTL::ResourceStorageModeShared));
  const Owned<mnk_tensor> tensor(
      mnk_tensor_make_over_metal_buffer(device.get(), native.get(), MNK_F32, kShape, 3, 16, nullptr),
      mnk_tensor_release);
  EXPECT(mnk_tensor_metal_buffer(tensor.get()) == native.get());
  EXPECT_EQ(mnk_tensor_byte_offset(tensor.get()), 16u);
  EXPECT(mnk_tensor_write(tensor.get(), kNumbers, sizeof kNumbers, nullptr));
  EXPECT_EQ(static_cast<float*>(native->contents())[7], 4.f);

  Refusals no;
  no(mnk_tensor_make_over_metal_buffer(device.get(), native.get(), MNK_F32, kShape, 3, 20, no.out()));
  no(mnk_tensor_make_over_metal_buffer(device.get(), native.get(), number<mnk_dtype>(99), kShape, 3, 0, no.out()));
}

// As RecordedStep.run(into:) of Swift does.
TEST(MetalCApi, RunsARecordedStepInTheAppsCommandBuffer) {
  MetalFixture fixture;
  const auto device = makeMetal(fixture);
  constexpr uint64_t kRuns = 3;
  const auto token = makeTensor(device.get(), MNK_F32, {1, 4});
  EXPECT(mnk_tensor_write(token.get(), kNumbers, sizeof kNumbers, nullptr));
  const mnk_attention_cache_descriptor descriptor{
      .kv_heads = 1, .head_dim = 4, .capacity = kRuns, .sequences = 1, .dtype = MNK_F32, .is_storage_only = true};
  const Owned<mnk_cache> cache(mnk_cache_make(device.get(), &descriptor, nullptr), mnk_cache_release);
  const Owned<mnk_encoder> recording(mnk_encoder_make_recording(device.get(), "token", nullptr), mnk_encoder_release);
  EXPECT(append(recording.get(), cache.get(), token.get(), token.get(), 0));
  const Owned<mnk_recorded_step> step(mnk_recorded_step_make(recording.get(), nullptr), mnk_recorded_step_release);
  const AutoreleasePool pool;
  auto* const queue = static_cast<MTL::CommandQueue*>(mnk_device_metal_queue(device.get()));
  Refusals no;
  for (uint64_t run = 0; run <= kRuns; ++run) {
    auto* const commands = queue->commandBuffer();
    const Owned<mnk_encoder> encoder(mnk_encoder_make_into_metal(device.get(), commands, "mine", nullptr),
                                     mnk_encoder_release);
    if (run == kRuns) {
      no(mnk_encoder_encode_step(encoder.get(), step.get(), no.out()));
      continue;
    }
    EXPECT(mnk_encoder_encode_step(encoder.get(), step.get(), nullptr));
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(!mnk_completion_is_done(done.get()));
    EXPECT_EQ(nextPosition(cache.get(), 0), run + 1);
    commands->commit();
    EXPECT(mnk_completion_wait(done.get(), nullptr));
  }
  const auto keys = contents<float>({mnk_cache_make_keys(cache.get(), nullptr), mnk_tensor_release});
  EXPECT(keys == std::vector<float>({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(MetalCApi, MissingObjectsAreTypedErrors) {
  MetalFixture fixture;
  const auto device = makeMetal(fixture);
  const mnk_host_options hostOptions{};
  const Owned<mnk_device> host(mnk_device_make_host(&hostOptions, nullptr), mnk_device_release);
  int anything = 0;
  Refusals no;
  no(mnk_device_make_metal(nullptr, no.out()));
  no(mnk_tensor_make_over_metal_buffer(nullptr, &anything, MNK_F32, kShape, 3, 0, no.out()));
  no(mnk_tensor_make_over_metal_buffer(device.get(), nullptr, MNK_F32, kShape, 3, 0, no.out()));
  no(mnk_tensor_make_over_metal_buffer(host.get(), &anything, MNK_F32, kShape, 3, 0, no.out()));
  no(mnk_encoder_make_into_metal(device.get(), nullptr, nullptr, no.out()));
  no(mnk_encoder_make_into_metal(host.get(), &anything, nullptr, no.out()));
  EXPECT(!mnk_device_metal_device(nullptr) && !mnk_device_metal_queue(nullptr) && !mnk_tensor_metal_buffer(nullptr));
  EXPECT(!mnk_device_metal_device(host.get()) && !mnk_device_metal_queue(host.get()));
  EXPECT_EQ(mnk_library_get_origin(nullptr), MNK_ORIGIN_PROGRAM);
  EXPECT_EQ(std::string(mnk_library_origin_path(nullptr)), "");
}

}  // namespace mnk::test
