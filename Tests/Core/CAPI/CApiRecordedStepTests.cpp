// Recorded steps and plans through the C API.
#include "CApiHarness.hpp"

namespace mnk::test {

namespace {

// A cache of three slots, and a token for it.
struct RecordedCache {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> token = makeTensor(device.get(), MNK_F32, {2, 4});
  mnk_attention_cache_descriptor descriptor{
      .kv_heads = 2, .head_dim = 4, .capacity = 3, .sequences = 1, .dtype = MNK_F32, .is_storage_only = true};
  Owned<mnk_cache> cache{mnk_cache_make(device.get(), &descriptor, nullptr), mnk_cache_release};

  bool append(mnk_encoder* encoder) const { return test::append(encoder, cache.get(), token.get(), token.get(), 0); }
  Owned<mnk_encoder> recording() const {
    return {mnk_encoder_make_recording(device.get(), "a step", nullptr), mnk_encoder_release};
  }
};

Owned<mnk_recorded_step> made(mnk_encoder* encoder, mnk_error_out error = nullptr) {
  return {mnk_recorded_step_make(encoder, error), mnk_recorded_step_release};
}

}  // namespace

TEST(CApiRecordedStep, RunsAndJoinsAnEncoder) {
  const RecordedCache s;
  Refusals no;
  Owned<mnk_recorded_step> step = [&] {
    const auto encoder = s.recording();
    EXPECT(s.append(encoder.get()));
    no(mnk_encoder_commit(encoder.get(), nullptr, nullptr, no.out()));
    auto recorded = made(encoder.get());
    no(made(encoder.get(), no.out()));
    no(mnk_encoder_barrier(encoder.get(), no.out()));
    return recorded;
  }();
  EXPECT_EQ(nextPosition(s.cache.get(), 0), 0u);
  EXPECT_EQ(mnk_recorded_step_summary(step.get()).total.dispatches, 1u);
  EXPECT_EQ(mnk_recorded_step_counts(step.get(), "KVCacheWrite").dispatches, 1u);
  EXPECT_EQ(mnk_recorded_step_counts(step.get(), "Another").dispatches, 0u);
  char* text = mnk_recorded_step_copy_text(step.get());
  EXPECT_EQ(std::string(text), "1 dispatch, 0 barriers, 64 bytes read, 64 bytes written");
  mnk_text_release(text);

  bool isFinished = false;
  const auto finished = [](void* context, const mnk_error* failure) { *static_cast<bool*>(context) = !failure; };
  const Owned<mnk_completion> done(mnk_recorded_step_run(step.get(), finished, &isFinished, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  const auto encoder = makeEncoder(s.device.get());
  EXPECT(mnk_encoder_encode_step(encoder.get(), step.get(), nullptr));
  EXPECT(mnk_encoder_encode_step(encoder.get(), step.get(), nullptr));
  commit(encoder);
  EXPECT(isFinished);
  EXPECT_EQ(nextPosition(s.cache.get(), 0), 3u);

  no(mnk_recorded_step_run(step.get(), finished, nullptr, no.out()));
}

TEST(CApiRecordedStep, APlanIsEncodedLater) {
  const RecordedCache s;
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  write(s.token, numbers.data());
  const auto into = makeTensor(s.device.get(), MNK_F32, {2, 4});
  mnk_hadamard op{.from = s.token.get(), .into = into.get()};
  const Owned<mnk_plan> plan(mnk_hadamard_make_plan(&op, nullptr), mnk_plan_release);
  const auto encoder = makeEncoder(s.device.get());
  EXPECT(mnk_encoder_encode_plan(encoder.get(), plan.get(), nullptr));
  commit(encoder);
  EXPECT_EQ(contents<float>(into)[0], 5.0f);
}

TEST(CApiRecordedStep, NullHandles) {
  const RecordedCache s;
  Refusals no;
  const auto encoder = makeEncoder(s.device.get());
  no(mnk_encoder_make_recording(nullptr, nullptr, no.out()));
  no(mnk_recorded_step_make(nullptr, no.out()));
  no(mnk_recorded_step_run(nullptr, nullptr, nullptr, no.out()));
  no(mnk_encoder_encode_step(encoder.get(), nullptr, no.out()));
  no(mnk_encoder_encode_step(nullptr, nullptr, no.out()));
  no(mnk_encoder_encode_plan(encoder.get(), nullptr, no.out()));
  no(mnk_encoder_encode_plan(nullptr, nullptr, no.out()));
  EXPECT_EQ(mnk_recorded_step_summary(nullptr).total.dispatches, 0u);
  EXPECT_EQ(mnk_recorded_step_counts(nullptr, "KVCacheWrite").dispatches, 0u);
  EXPECT(!mnk_recorded_step_copy_text(nullptr));
  EXPECT(!mnk_recorded_step_copy_kind(nullptr, 0));
  mnk_recorded_step_release(nullptr);
}

}  // namespace mnk::test
