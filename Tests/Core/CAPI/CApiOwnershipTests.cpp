#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

// Counts how often memory was given back. It starts at a page, which is what a GPU takes.
struct alignas(16384) Lent {
  std::array<uint64_t, 2048> memory{};
  int released = 0;

  static void release(void* context) { ++static_cast<Lent*>(context)->released; }
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
  Lent lent;
  auto tensor = lent.wrap(device.get(), MNK_F32, {8}, 8, nullptr);
  EXPECT(tensor != nullptr);
  Owned<mnk_tensor> slice(mnk_tensor_make_slice(tensor.get(), 2, 1, nullptr), mnk_tensor_release);
  const float value = 5;
  EXPECT(mnk_tensor_write(slice.get(), &value, sizeof value, nullptr));
  float seen;
  std::memcpy(&seen, reinterpret_cast<std::byte*>(lent.memory.data()) + 16, sizeof seen);
  EXPECT_EQ(seen, 5.f);
  tensor.reset();
  EXPECT_EQ(lent.released, 0);
  slice.reset();
  EXPECT_EQ(lent.released, 1);
}

TEST(CApiOwnership, WrappedMemoryIsReleasedOnceOnEachFailure) {
  const auto device = makeDevice();
  struct Case {
    const char* name;
    Owned<mnk_tensor> (*make)(Lent&, mnk_device*, mnk_error_out);
  };
  const Case cases[] = {
      {"no device",
       [](Lent& lent, mnk_device*, mnk_error_out error) { return lent.wrap(nullptr, MNK_F32, {8}, 0, error); }},
      {"unknown dtype", [](Lent& lent, mnk_device* device,
                           mnk_error_out error) { return lent.wrap(device, number<mnk_dtype>(9), {8}, 0, error); }},
      {"too many extents",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, error);
       }},
      {"overflowing shape",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {UINT64_MAX, 2}, 0, error);
       }},
      {"too long",
       [](Lent& lent, mnk_device* device, mnk_error_out error) { return lent.wrap(device, MNK_F32, {17}, 0, error); }},
      {"offset past the end",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {1}, UINT64_MAX - 3, error);
       }},
      {"misaligned",
       [](Lent& lent, mnk_device* device, mnk_error_out error) { return lent.wrap(device, MNK_F32, {4}, 2, error); }},
      {"no shape",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return Owned<mnk_tensor>(mnk_tensor_make_wrapping(device, lent.memory.data(), 64, MNK_F32, nullptr, 2, 0,
                                                           Lent::release, &lent, error),
                                  mnk_tensor_release);
       }},
      {"no memory",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         const uint64_t one = 1;
         return Owned<mnk_tensor>(
             mnk_tensor_make_wrapping(device, nullptr, 64, MNK_F32, &one, 1, 0, Lent::release, &lent, error),
             mnk_tensor_release);
       }},
  };
  for (const Case& one : cases) {
    Context context(one.name);
    Lent lent;
    Caught caught;
    EXPECT(!one.make(lent, device.get(), caught.out()));
    EXPECT(caught.isSet());
    EXPECT_EQ(lent.released, 1);
    EXPECT(!one.make(lent, device.get(), nullptr));
    EXPECT_EQ(lent.released, 2);
  }
}

TEST(CApiOwnership, WrappedMemoryNeedsNoReleaseFunction) {
  const auto device = makeDevice();
  Lent lent;
  const uint64_t eight = 8;
  const Owned<mnk_tensor> tensor(
      mnk_tensor_make_wrapping(device.get(), lent.memory.data(), 64, MNK_F32, &eight, 1, 0, nullptr, nullptr, nullptr),
      mnk_tensor_release);
  EXPECT(tensor != nullptr);
  EXPECT(
      !mnk_tensor_make_wrapping(device.get(), lent.memory.data(), 4, MNK_F32, &eight, 1, 0, nullptr, nullptr, nullptr));
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
  Caught caught;
  EXPECT(!mnk_encoder_commit(encoder.get(), finished, &heard, caught.out()));
  caught.expect({.op = "CommandEncoder", .what = "after it was committed", .got = "a committed encoder"});
  EXPECT(!mnk_encoder_barrier(encoder.get(), caught.out()));
  caught.expect({.op = "CommandEncoder", .what = "after it was committed"});
  EXPECT_EQ(heard.calls.load(), 1);
}

}  // namespace mnk::test
