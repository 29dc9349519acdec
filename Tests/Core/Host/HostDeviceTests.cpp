// Buffers, submissions and lifetimes of the Host device.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <set>
#include <thread>

#include "Devices/HostFactory.hpp"
#include "HostOptions.hpp"
#include "HostTestSupport.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"

using namespace mnk;
using namespace mnk::test;

TEST(HostDevice, ReportsItsName) {
  const auto device = hostDevice({.workers = 2});
  EXPECT_EQ(device->kind(), "host");
  EXPECT_EQ(device->name(),
            fmt::format("Host ({}, {}, 2 workers)", host::architectureName(), host::name(host::bestLevel())));
}

TEST(HostDevice, RefusesUnsupportedOptions) {
  EXPECT_ERROR(host::makeDevice({.level = static_cast<HostOptions::Level>(9)}),
               {.code = ErrorCode::unsupported, .what = "no kernels for the instruction set", .fix = "the best level"});
  EXPECT_ERROR(host::makeDevice({.workers = 100000}),
               {.what = "too many workers", .got = "100000", .expected = "at most", .fix = "0"});
}

// For example, in an app for Apple platforms that does not link the product.
TEST(HostDevice, IsUnsupportedUntilRegistered) {
  const host::Factory registered = host::setFactory(nullptr);
  EXPECT_ERROR(host::makeDevice({}), {.code = ErrorCode::unsupported,
                                      .what = "has not registered the Host device",
                                      .expected = "MLXNativeKernelsHost",
                                      .fix = "registerHostDevice()"});
  mnk_register_host_device();
  EXPECT(host::makeDevice({}));
  host::setFactory(registered);
}

TEST(HostDevice, BuffersAreZeroedAndPageAligned) {
  const auto device = hostDevice({});
  const auto buffer = REQUIRE(device->makeBuffer(10000));
  EXPECT_EQ(buffer->length(), uint64_t(10000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->contents()) % 4096, uintptr_t(0));
  for (uint64_t i = 0; i < 10000; ++i) EXPECT(buffer->contents()[i] == std::byte(0));
  EXPECT(buffer->range().space == nullptr);
  EXPECT_EQ(buffer->range().begin, uint64_t(reinterpret_cast<uintptr_t>(buffer->contents())));
  EXPECT_EQ(buffer->range().end - buffer->range().begin, uint64_t(10000));
  EXPECT(buffer->device() == device);

  const auto empty = REQUIRE(device->makeBuffer(0));
  EXPECT_EQ(empty->length(), uint64_t(0));
  EXPECT(empty->contents() != nullptr);
  EXPECT_ERROR(device->makeBuffer(~uint64_t(0)), {.code = ErrorCode::outOfMemory, .got = "18446744073709551615"});
}

TEST(HostDevice, WrapsUnalignedMemoryAndReleasesItOnce) {
  const auto device = hostDevice({});
  std::vector<uint8_t> memory(17);
  int released = 0;
  {
    const auto buffer = REQUIRE(device->wrapMemory(memory.data() + 1, 16, [&] { ++released; }));
    EXPECT(buffer->contents() == reinterpret_cast<std::byte*>(memory.data() + 1));
    const auto other = REQUIRE(device->wrapMemory(memory.data(), 2, {}));
    EXPECT(buffer->range().overlaps(other->range()));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_ERROR(device->wrapMemory(nullptr, 16, [&] { ++released; }), {.what = "cannot be wrapped"});
  EXPECT_EQ(released, 2);
}

TEST(HostDevice, RunsSubmissionsInOrderAndReportsTime) {
  const auto device = hostDevice({.workers = 2});
  constexpr uint32_t kUnits = 1 << 16;
  std::vector<std::vector<uint32_t>> stages(6, std::vector<uint32_t>(kUnits * 4));
  for (uint32_t i = 0; i < kUnits * 4; ++i) stages[0][i] = i;
  std::vector<std::promise<SubmissionReport>> reports(5);
  for (int stage = 0; stage < 5; ++stage) {
    auto submission = REQUIRE(device->makeSubmission("stage"));
    REQUIRE(submission->dispatch(
        REQUIRE(makeReady(device, {.function = "copy16",
                                   .grid = threads(kUnits, 256),
                                   .buffers = {bytesOf(stages[stage]), bytesOf(stages[stage + 1])}}))));
    commit(*submission, [&reports, stage](SubmissionReport report) { reports[stage].set_value(std::move(report)); });
  }
  for (auto& promised : reports) {
    const SubmissionReport report = promised.get_future().get();
    REQUIRE(Result<void>(report.outcome));
    EXPECT(report.deviceSeconds > 0);
  }
  EXPECT(stages[5] == stages[0]);
}

namespace {

// Whether all consecutive numbers differ by the same step, modulo the count.
bool isStride(const std::vector<uint32_t>& order) {
  const uint32_t count = uint32_t(order.size());
  const uint32_t step = (order[1] + count - order[0]) % count;
  for (uint32_t i = 2; i < count; ++i) {
    if ((order[i - 1] + step) % count != order[i]) return false;
  }
  return true;
}

// The orders in which threadgroups run, over 16 seeds.
std::set<std::vector<uint32_t>> ordersOf(uint32_t groups) {
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    std::vector<uint32_t> next(1), tickets(groups);
    REQUIRE(runOn(hostDevice({.workers = 1, .orderSeed = seed}),
                  {.function = "takeTickets",
                   .grid = {Grid::Unit::threadgroups, {groups, 1, 1}, {1, 1, 1}},
                   .buffers = {bytesOf(next), bytesOf(tickets)}}));
    EXPECT_EQ(next[0], groups);
    orders.insert(tickets);
  }
  return orders;
}

}  // namespace

TEST(HostDevice, SeedsPermuteThreadgroups) {
  EXPECT(ordersOf(1) == std::set<std::vector<uint32_t>>({{0}}));
  EXPECT(ordersOf(2) == std::set<std::vector<uint32_t>>({{0, 1}, {1, 0}}));
  const auto ordersOfFive = ordersOf(5);
  EXPECT(ordersOfFive.size() > 3);
  EXPECT(!std::all_of(ordersOfFive.begin(), ordersOfFive.end(), isStride));
  constexpr uint32_t kMany = 65537;  // too many for a list
  for (const std::vector<uint32_t>& tickets : ordersOf(kMany)) {
    EXPECT_EQ(std::set<uint32_t>(tickets.begin(), tickets.end()).size(), size_t(kMany));
  }
}

TEST(HostDevice, RetainsResourcesUntilASubmissionIsDone) {
  std::weak_ptr<Device> device;
  std::vector<uint32_t> from = {1, 2, 3, 4}, to(4);
  std::promise<void> done;
  std::atomic<int> released = 0;
  {
    auto owner = hostDevice({.workers = 2});
    device = owner;
    auto submission = REQUIRE(owner->makeSubmission("last"));
    ReadyDispatch ready =
        REQUIRE(makeReady(owner, {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from), {}}}));
    Binding binding;
    binding.index = 1;
    binding.buffer = REQUIRE(owner->wrapMemory(to.data(), 16, [&] { ++released; }));
    binding.length = 16;
    ready.dispatch.buffers.push_back(std::move(binding));
    REQUIRE(submission->dispatch(std::move(ready)));
    std::promise<void> start;
    // Earlier work keeps the queue busy until every other reference is gone.
    auto blocker = REQUIRE(owner->makeSubmission("blocker"));
    commit(*blocker, [gate = std::make_shared<std::shared_future<void>>(start.get_future().share())](SubmissionReport) {
      gate->wait();
    });
    commit(*submission, [&](SubmissionReport) {
      EXPECT_EQ(released.load(), 1);
      done.set_value();
    });
    submission.reset();
    blocker.reset();
    owner.reset();
    EXPECT(!device.expired());
    start.set_value();
  }
  done.get_future().get();
  EXPECT(from == to);
  EXPECT(device.expired());
}

TEST(HostDevice, CatchesExceptionsOfACallback) {
  const auto device = hostDevice({});
  commit(*REQUIRE(device->makeSubmission("throws")), [](SubmissionReport) { throw std::runtime_error("no"); });
  std::vector<uint32_t> from = {1, 2, 3, 4}, to(4);
  REQUIRE(runOn(device, {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from), bytesOf(to)}}));
  EXPECT(from == to);
}

TEST(HostDevice, RefusesPipelinesOfOtherDevices) {
  const auto device = hostDevice({});
  std::vector<uint32_t> from(4), to(4);
  auto foreign =
      REQUIRE(makeReady(device, {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from), bytesOf(to)}}));
  foreign.pipeline = nullptr;
  EXPECT_ERROR(submit(device, {foreign}), {.what = "not of a Host device"});
}

TEST(HostDevice, SeveralThreadsUseTwoDevices) {
  const auto plain = hostDevice({.workers = 2});
  const auto random = hostDevice({.workers = 1,
                                  .orderSeed = 9,
                                  .checking = HostOptions::Checking::guarded,
                                  .level = HostOptions::Level::baseline});
  const auto library = conformanceLibrary();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const auto& device = caller % 2 ? plain : random;
      for (int round = 0; round < 10; ++round) {
        const uint32_t limit = 1 + (caller * 7 + round) % 32;  // pipelines differ in a constant
        std::vector<float> out(32, -1);
        const auto outcome = runOn(
            device,
            {.function = "returnedLanes", .grid = threads(32), .buffers = {bytesOf(out)}, .constants = {{2, limit}}},
            library);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          wrong += !outcome || out[lane] != (lane < limit ? static_cast<float>(limit) : -1.0f);
        }
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}
