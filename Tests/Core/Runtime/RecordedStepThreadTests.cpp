// Threads and handlers that run one recorded step.
#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "Cache/AttentionCacheFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

// A run that is refused because another thread was faster is retried.
TEST(RecordedStep, ThreadsShareAStep) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    const Tensor token = tokens(device, 1);
    const RecordedStep step = REQUIRE(
        RecordedStep::record(device, [&](CommandEncoder& encoder) { return cache.append(encoder, token, token, 0); }));
    constexpr int kThreads = 2, kRuns = 50;
    std::atomic<int> finished = 0;
    std::atomic<bool> isBad = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int run = 0; run < kRuns; ++run) {
          auto ran = step.run([&](const Result<Summary>&) { ++finished; });
          if (!ran && !ran.error().retryable) isBad = true;
          if (!ran) --run;
          if (isBad) return;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(CommandEncoder::run(device, [](CommandEncoder& encoder) { return encoder.barrier(); }));
    EXPECT(!isBad);
    EXPECT_EQ(*cache.nextPosition(0), uint64_t{kThreads * kRuns});
    EXPECT_EQ(finished.load(), kThreads * kRuns);
  });
}

TEST(RecordedStep, HandlersRunTheNextStep) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCache cache = makeCache(device);
    const Tensor token = tokens(device, 1);
    const RecordedStep step = REQUIRE(
        RecordedStep::record(device, [&](CommandEncoder& encoder) { return cache.append(encoder, token, token, 0); }));
    std::latch all(10);
    std::atomic<int> left = 10;
    std::function<void(const Result<Summary>&)> next = [&](const Result<Summary>& result) {
      EXPECT(result);
      if (--left > 0) EXPECT(step.run(next));
      all.count_down();  // the last run ends this test
    };
    REQUIRE(step.run(next));
    all.wait();
    EXPECT_EQ(*cache.nextPosition(0), 10u);
  });
}

}  // namespace mnk::test
