#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "CApiHarness.hpp"

namespace mnk::test {

namespace {

// Counts how often memory was given back. It starts at a page, which is what a GPU takes.
struct alignas(16384) WrappedMemory {
  std::array<uint64_t, 2048> memory{};
  int released = 0;

  static void release(void* context) { ++static_cast<WrappedMemory*>(context)->released; }
  // What is missing is NULL.
  struct Arguments {
    std::vector<uint64_t> shape = {8};
    uint64_t offset = 0;
    mnk_dtype dtype = MNK_F32;
    bool lacksShape = false, lacksMemory = false;
  };
  Owned<mnk_tensor> wrap(mnk_device* device, const Arguments& a, mnk_error_out error = nullptr) {
    return {mnk_tensor_make_wrapping(device, a.lacksMemory ? nullptr : memory.data(), 64, a.dtype,
                                     a.lacksShape ? nullptr : a.shape.data(), a.shape.size(), a.offset, release, this,
                                     error),
            mnk_tensor_release};
  }
};

}  // namespace

TEST(CApiOwnership, WrappedMemoryIsReleasedOnceAfterItsLastUser) {
  const auto device = makeDevice();
  WrappedMemory wrapped;
  auto tensor = wrapped.wrap(device.get(), {.offset = 8});
  EXPECT(tensor != nullptr);
  Owned<mnk_tensor> slice(mnk_tensor_make_slice(tensor.get(), 2, 1, nullptr), mnk_tensor_release);
  const float value = 5;
  EXPECT(mnk_tensor_write(slice.get(), &value, sizeof value, nullptr));
  float seen;
  std::memcpy(&seen, reinterpret_cast<std::byte*>(wrapped.memory.data()) + 16, sizeof seen);
  EXPECT_EQ(seen, 5.f);
  tensor.reset();
  EXPECT_EQ(wrapped.released, 0);
  slice.reset();
  EXPECT_EQ(wrapped.released, 1);
}

TEST(CApiOwnership, WrappedMemoryIsReleasedOnceOnEachFailure) {
  const auto device = makeDevice();
  const WrappedMemory::Arguments sound;
  const std::pair<mnk_device*, WrappedMemory::Arguments> cases[] = {
      {nullptr, sound},
      {device.get(), {.dtype = number<mnk_dtype>(9)}},
      {device.get(), {.shape = {1, 1, 1, 1, 1, 1, 1, 1, 1}}},
      {device.get(), {.shape = {UINT64_MAX, 2}}},
      {device.get(), {.shape = {17}}},
      {device.get(), {.shape = {1}, .offset = UINT64_MAX - 3}},
      {device.get(), {.shape = {4}, .offset = 2}},
      {device.get(), {.lacksShape = true}},
      {device.get(), {.lacksMemory = true}},
  };
  for (const auto& one : cases) {
    const Context context(fmt::format("case {}", &one - cases));
    WrappedMemory wrapped;
    Caught caught;
    EXPECT(!wrapped.wrap(one.first, one.second, caught.out()));
    EXPECT(caught.isSet());
    EXPECT_EQ(wrapped.released, 1);
    EXPECT(!wrapped.wrap(one.first, one.second));
    EXPECT_EQ(wrapped.released, 2);
  }
  // It needs no function to release it.
  WrappedMemory wrapped;
  for (const uint64_t extent : {8, 17}) {
    const Owned<mnk_tensor> tensor(mnk_tensor_make_wrapping(device.get(), wrapped.memory.data(), 64, MNK_F32, &extent,
                                                            1, 0, nullptr, nullptr, nullptr),
                                   mnk_tensor_release);
    EXPECT_EQ(tensor != nullptr, extent == 8);
  }
}

TEST(CApiOwnership, ObjectsMayBeReleasedInAnyOrder) {
  WriteFixture fixture;
  Owned<mnk_encoder> encoder = makeEncoder(fixture.device.get());
  Owned<mnk_plan> plan(mnk_kv_cache_write_make_plan(&fixture.write, nullptr), mnk_plan_release);
  EXPECT(mnk_encoder_kv_cache_write(encoder.get(), &fixture.write, nullptr));
  fixture.device.reset();
  fixture.keys.reset();
  fixture.cache.reset();
  EXPECT_EQ(mnk_plan_dispatch_count(plan.get()), 1u);
  EXPECT_EQ(std::string(mnk_plan_dispatch(plan.get(), 0).function), "kvCacheMove_16");
  EXPECT_EQ(std::string(mnk_plan_dispatch(plan.get(), 1).function), "");
  Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr), mnk_completion_release);
  encoder.reset();
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  EXPECT(mnk_completion_is_done(done.get()));
  EXPECT_EQ(mnk_completion_summary(done.get()).total.bytes_written, 96u);
  EXPECT_EQ(mnk_completion_counts(done.get(), "KVCacheWrite").dispatches, 1u);
  EXPECT_EQ(mnk_completion_counts(done.get(), "nothing").dispatches, 0u);
  EXPECT_EQ(mnk_completion_counts(done.get(), nullptr).dispatches, 0u);
  char* text = mnk_completion_copy_text(done.get());
  EXPECT(std::string(text).starts_with("1 dispatch, 0 barriers, 96 bytes read, 96 bytes written"));
  mnk_text_release(text);
}

TEST(CApiOwnership, TheCallbackRunsIfAndOnlyIfTheCommitSucceeds) {
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  struct Heard {
    std::atomic<int> calls = 0;
    std::atomic<bool> failed = false;
  } heard;
  const mnk_finished finished = [](void* context, const mnk_error* failure) {
    auto* heard = static_cast<Heard*>(context);
    heard->failed = failure != nullptr;
    ++heard->calls;
    heard->calls.notify_all();
  };
  {
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), finished, &heard, nullptr),
                                     mnk_completion_release);
    EXPECT(done && mnk_completion_wait(done.get(), nullptr));
  }
  heard.calls.wait(0);
  EXPECT_EQ(heard.calls.load(), 1);
  EXPECT(!heard.failed);
  Refusals no;
  no(mnk_encoder_commit(encoder.get(), finished, &heard, no.out()));
  no(mnk_encoder_barrier(encoder.get(), no.out()));
  EXPECT_EQ(heard.calls.load(), 1);
}

TEST(CApiOwnership, SummariesHaveTheTimeOfEachOpIfItIsMeasured) {
  const WriteFixture fixture;
  const bool mustBeKnown = std::string_view(mnk_device_kind(fixture.device.get())) == "host";
  for (const bool measures : {false, true}) {
    const Owned<mnk_encoder> encoder = makeEncoder(fixture.device.get());
    if (measures) EXPECT(mnk_encoder_measure_ops(encoder.get(), nullptr));
    EXPECT(mnk_encoder_kv_cache_write(encoder.get(), &fixture.write, nullptr));
    Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr), mnk_completion_release);
    EXPECT(mnk_completion_wait(done.get(), nullptr));
    EXPECT(!mnk_encoder_measure_ops(encoder.get(), nullptr));
    const Owned<char> kind(mnk_completion_copy_kind(done.get(), 0), mnk_text_release);
    EXPECT_EQ(std::string(kind.get()), "KVCacheWrite");
    EXPECT(!mnk_completion_copy_kind(done.get(), 1));
    const mnk_counts counts = mnk_completion_counts(done.get(), kind.get());
    EXPECT(measures ? counts.device_seconds > 0 || !mustBeKnown : counts.device_seconds == 0);
    const mnk_summary summary = mnk_completion_summary(done.get());
    EXPECT_EQ(summary.total.device_seconds, counts.device_seconds);
    EXPECT(counts.device_seconds <= summary.device_seconds || !mustBeKnown);
  }
}

}  // namespace mnk::test
