#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

// Counts how often memory was given back. It starts at a page, which is what a GPU takes.
struct alignas(16384) WrappedMemory {
  std::array<uint64_t, 2048> memory{};
  int released = 0;

  static void release(void* context) { ++static_cast<WrappedMemory*>(context)->released; }
  Owned<mnk_tensor> wrap(mnk_device* device, mnk_dtype dtype, const uint64_t* shape, size_t rank, void* from,
                         mnk_error_out error) {
    return {mnk_tensor_make_wrapping(device, from, 64, dtype, shape, rank, 0, release, this, error),
            mnk_tensor_release};
  }
  Owned<mnk_tensor> wrap(mnk_device* device, mnk_dtype dtype, std::vector<uint64_t> shape, uint64_t offset,
                         mnk_error_out error) {
    return {mnk_tensor_make_wrapping(device, memory.data(), 64, dtype, shape.data(), shape.size(), offset, release,
                                     this, error),
            mnk_tensor_release};
  }
};

}  // namespace

TEST(CApiOwnership, WrappedMemoryIsReleasedOnceAfterItsLastUser) {
  const auto device = makeDevice();
  WrappedMemory wrapped;
  auto tensor = wrapped.wrap(device.get(), MNK_F32, {8}, 8, nullptr);
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
  const auto shapes = [](std::vector<uint64_t> shape, uint64_t offset, mnk_dtype dtype = MNK_F32) {
    return [=](WrappedMemory& wrapped, mnk_device* on, mnk_error_out error) {
      return wrapped.wrap(on, dtype, shape, offset, error);
    };
  };
  using Make = std::function<Owned<mnk_tensor>(WrappedMemory&, mnk_device*, mnk_error_out)>;
  const Make cases[] = {
      [](WrappedMemory& wrapped, mnk_device*, mnk_error_out error) {
        return wrapped.wrap(nullptr, MNK_F32, {8}, 0, error);
      },
      shapes({8}, 0, number<mnk_dtype>(9)),
      shapes({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0),
      shapes({UINT64_MAX, 2}, 0),
      shapes({17}, 0),
      shapes({1}, UINT64_MAX - 3),
      shapes({4}, 2),
      [](WrappedMemory& wrapped, mnk_device* on, mnk_error_out error) {
        return wrapped.wrap(on, MNK_F32, nullptr, 2, wrapped.memory.data(), error);
      },
      [](WrappedMemory& wrapped, mnk_device* on, mnk_error_out error) {
        const uint64_t one = 1;
        return wrapped.wrap(on, MNK_F32, &one, 1, nullptr, error);
      },
  };
  for (const Make& make : cases) {
    const Context context(fmt::format("case {}", &make - cases));
    WrappedMemory wrapped;
    Caught caught;
    EXPECT(!make(wrapped, device.get(), caught.out()));
    EXPECT(caught.isSet());
    EXPECT_EQ(wrapped.released, 1);
    EXPECT(!make(wrapped, device.get(), nullptr));
    EXPECT_EQ(wrapped.released, 2);
  }
  // It needs no function to release it.
  WrappedMemory wrapped;
  const uint64_t eight = 8;
  const Owned<mnk_tensor> tensor(mnk_tensor_make_wrapping(device.get(), wrapped.memory.data(), 64, MNK_F32, &eight, 1,
                                                          0, nullptr, nullptr, nullptr),
                                 mnk_tensor_release);
  EXPECT(tensor != nullptr);
  EXPECT(!mnk_tensor_make_wrapping(device.get(), wrapped.memory.data(), 4, MNK_F32, &eight, 1, 0, nullptr, nullptr,
                                   nullptr));
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
