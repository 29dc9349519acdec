// Calls every function that waits for a device from a completion handler while other work is queued. Each call fails
// immediately or does not need to wait; a call that hangs here would hang an app forever.
#include <latch>
#include <optional>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

namespace {

// Runs a body in a completion handler, after `then` has committed work that cannot start before the handler returns.
void inHandler(const std::shared_ptr<Device>& device, const std::function<void()>& then,
               const std::function<void()>& body) {
  auto isCommitted = std::make_shared<std::latch>(1), isDone = std::make_shared<std::latch>(1);
  CommandEncoder encoder(device);
  REQUIRE(encoder.commit([=](const Result<Summary>&) {
    isCommitted->wait();
    body();
    isDone->count_down();
  }));
  then();
  isCommitted->count_down();
  isDone->wait();
}

}  // namespace

TEST(HandlerWait, RefusesEveryCallThatWouldWait) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const CacheFolder folder;
    Seeded random;
    AttentionCacheDescriptor descriptor = turboDescriptor();
    AttentionCache saved = makeCache(device, descriptor), cache = makeCache(device, descriptor);
    appendAlike(device, random, {saved}, 2);
    REQUIRE(saved.save(folder.path("saved")));
    const Tensor keys = someTokens(device, random, 1, descriptor.kvHeads, descriptor.headDim);
    const Tensor values = someTokens(device, random, 1, descriptor.kvHeads, descriptor.valueHeadDim);
    std::optional<Completion> later;
    int ran = 0;
    // Failures are recorded on the test's thread.
    std::vector<std::pair<std::string, Result<void>>> refused, allowed;
    const auto outcomeOf = [](auto result) -> Result<void> {
      return result ? Result<void>() : Result<void>(std::move(result).error());
    };
    inHandler(
        device,
        [&] {
          CommandEncoder encoder(device);
          REQUIRE(cache.append(encoder, keys, values, 0));
          later = REQUIRE(encoder.commit());
        },
        [&] {
          std::byte byte{};
          const Tensor codes = cache.view().keys;
          refused.emplace_back("Completion::wait", outcomeOf(later->wait()));
          refused.emplace_back(
              "CommandEncoder::run",
              outcomeOf(CommandEncoder::run(device, [&](CommandEncoder&) { return ++ran, Result<void>(); })));
          refused.emplace_back("Tensor::write", codes.write(std::vector<std::byte>(codes.byteCount())));
          std::vector<std::byte> all(codes.byteCount());
          refused.emplace_back("Tensor::read", codes.read(all));
          refused.emplace_back("Buffer::read", codes.buffer()->read(codes.byteOffset(), {&byte, 1}));
          refused.emplace_back("Buffer::write", codes.buffer()->write(codes.byteOffset(), {&byte, 1}));
          refused.emplace_back("AttentionCache::save", cache.save(folder.path("refused")));
          // These calls have nothing to wait for.
          allowed.emplace_back("save", saved.save(folder.path("saved again")));
          allowed.emplace_back("load", outcomeOf(AttentionCache::load(device, folder.path("saved"), kPlenty)));
          allowed.emplace_back("make", outcomeOf(AttentionCache::make(device, descriptor)));
          (void)device->probe();
          CommandEncoder encoder(device);
          allowed.emplace_back("encode", saved.append(encoder, keys, values, 0));
          allowed.emplace_back("commit", outcomeOf(encoder.commit()));
        });
    for (const auto& [name, outcome] : refused) {
      const Context context(name);
      EXPECT_ERROR(outcome, (kInHandler));
    }
    for (const auto& [name, outcome] : allowed) {
      const Context context(name);
      REQUIRE(outcome);
    }
    EXPECT_EQ(refused.size() + allowed.size(), 12u);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(folder.fileCount(), 2u);
    REQUIRE(later->wait());
    EXPECT(device->probe().matrixLayout != MatrixLayout::unknown || device->kind() == "metal");
  });
}

// The device's thread releases the memory of finished work.
TEST(HandlerWait, ReleasingMemoryDoesNotWaitForItsDevice) {
  const auto device = hostDevice({});
  std::latch isCommitted(1), isReleased(1);
  std::optional<Completion> later;
  std::optional<Result<Summary>> waited;
  alignas(64) static float memory[16];
  Gate gate(device);  // until only the work holds the memory
  {
    const auto buffer = REQUIRE(device->wrapMemory(memory, sizeof memory, [&] {
      isCommitted.wait();
      waited = later->wait();
      isReleased.count_down();
    }));
    const Tensor wrapped = REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({1, 1, 16}))));
    const Tensor source = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, 1, 16}))));
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(KVCacheWrite{.keys = source, .into = {.keys = wrapped}}));
    REQUIRE(encoder.commit());
  }
  CommandEncoder encoder(device);
  later = REQUIRE(encoder.commit());
  isCommitted.count_down();
  gate.open();
  isReleased.wait();
  EXPECT_ERROR(*waited, (kInHandler));
}

TEST(HandlerWait, HandlersMayReleaseEachOthersDevices) {
  auto released = std::make_shared<std::latch>(2);
  std::vector<Completion> works;
  {
    std::shared_ptr<Device> devices[] = {hostDevice({}), hostDevice({})};
    auto areBoth = std::make_shared<std::latch>(3);
    for (int i = 0; i < 2; ++i) {
      CommandEncoder encoder(devices[i]);
      works.push_back(REQUIRE(encoder.commit([=, other = devices[1 - i]](const Result<Summary>&) mutable {
        areBoth->arrive_and_wait();
        other.reset();
        released->count_down();
      })));
    }
    for (auto& device : devices) device.reset();
    areBoth->count_down();
  }
  released->wait();
  for (const Completion& work : works) REQUIRE(work.wait());  // although its device is gone
}

}  // namespace mnk::test
