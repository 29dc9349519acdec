#include "MLXNativeKernels/Device.hpp"

#include <latch>
#include <thread>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/Golden.hpp"

namespace mnk::test {

namespace {

using Call = FakeDevice::Call;

LibrarySource text(std::string value, std::string label = "mine") {
  return {.kind = LibrarySource::Kind::text, .value = std::move(value), .label = std::move(label)};
}

KernelKey key(std::string function, std::vector<FunctionConstant> constants = {}) {
  return {.library = nullptr, .function = std::move(function), .constants = std::move(constants)};
}

constexpr size_t kThreads = 8;

// Runs a body on threads that start simultaneously.
template <typename Body>
void onThreads(Body body) {
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace

TEST(KernelRegistry, EqualKeysShareAPipeline) {
  const auto device = FakeDevice::make();
  KernelKey named = key("f", {{2, 0.5f}, {0, true}, {1, 4u}});  // constants in another order
  named.library = REQUIRE(device->registry().shippedLibrary());
  const auto first = REQUIRE(device->registry().pipeline(key("f", {{0, true}, {1, 4u}, {2, 0.5f}})));
  for (const KernelKey& equal : {key("f", {{0, true}, {1, 4u}, {2, 0.5f}}), named}) {
    EXPECT(first == REQUIRE(device->registry().pipeline(equal)));
  }
  EXPECT_EQ(device->tried(Call::makePipeline), 1u);
  EXPECT_EQ(device->tried(Call::makeShippedLibrary), 1u);
  EXPECT_EQ(device->registry().pipelineCount(), 1u);
}

TEST(KernelRegistry, RefusesDuplicateConstants) {
  const auto device = FakeDevice::make();
  RefusedCalls no;
  no(device->registry().pipeline(key("f", {{1, 2u}, {0, true}, {1, 3u}})));
  EXPECT_EQ(device->tried(Call::makePipeline), 0u);
}

TEST(KernelRegistry, EveryPartOfAKeyDistinguishesPipelines) {
  const auto device = FakeDevice::make();
  KernelRegistry& registry = device->registry();
  KernelKey other = key("f", {{0, 1u}});
  other.library = REQUIRE(registry.library(text("another library")));
  const KernelKey keys[] = {key("f", {{0, 1u}}),
                            key("g", {{0, 1u}}),
                            key("f", {{0, 2u}}),
                            key("f", {{1, 1u}}),
                            key("f", {{0, 1}}),
                            key("f", {{0, true}}),
                            key("f", {{0, 1.f}}),
                            key("f", {{0, 1u}, {1, 1u}}),
                            key("f"),
                            other};
  for (const KernelKey& one : keys) REQUIRE(registry.pipeline(one));
  EXPECT_EQ(device->tried(Call::makePipeline), std::size(keys));
  EXPECT_EQ(registry.pipelineCount(), std::size(keys));
  for (const KernelKey& one : keys) REQUIRE(registry.pipeline(one));
  EXPECT_EQ(device->tried(Call::makePipeline), std::size(keys));
}

TEST(KernelRegistry, EightThreadsMakeEachOfManyPipelinesOnce) {
  const auto device = FakeDevice::make();
  onThreads([&](size_t i) {
    for (uint32_t n = 0; n < 64; ++n) {
      const uint32_t value = static_cast<uint32_t>((n + 8 * i) % 64);
      (void)device->registry().pipeline(key("f", {{0, value}}));
      (void)device->registry().library(text(fmt::format("library {}", value % 16)));
      (void)device->registry().pipelineCount();
    }
  });
  EXPECT_EQ(device->tried(Call::makePipeline), 64u);
  EXPECT_EQ(device->tried(Call::makeShippedLibrary), 1u);
  EXPECT_EQ(device->tried(Call::makeLibrary), 16u);
  EXPECT_EQ(device->registry().pipelineCount(), 64u);
}

TEST(KernelRegistry, IdentifiesLibrariesByTheirSource) {
  const auto device = FakeDevice::make();
  KernelRegistry& registry = device->registry();
  const auto first = REQUIRE(registry.library(text("a")));
  EXPECT(first == REQUIRE(registry.library(text("a", "another label"))));
  EXPECT(first != REQUIRE(registry.library(text("b"))));
  EXPECT(first != REQUIRE(registry.library({.kind = LibrarySource::Kind::path, .value = "a", .label = "mine"})));
  EXPECT_EQ(device->tried(Call::makeLibrary), 3u);
  EXPECT(first != REQUIRE(registry.shippedLibrary()));
}

TEST(KernelRegistry, ReportsAndRetriesFailures) {
  const auto device = FakeDevice::make();
  KernelRegistry& registry = device->registry();
  const ExpectedError failure{.code = ErrorCode::deviceFault, .op = "FakeDevice", .what = "told to fail"};
  device->failAt(Call::makeShippedLibrary);
  EXPECT_ERROR(registry.shippedLibrary(), (failure));
  device->failAt(Call::makeShippedLibrary);
  EXPECT_ERROR(registry.pipeline(key("f")), (failure));
  device->failAt(Call::makePipeline, 0, 2);
  EXPECT_ERROR(registry.pipeline(key("f")), (failure));
  EXPECT_ERROR(registry.pipeline(key("f")), (failure));
  EXPECT_EQ(registry.pipelineCount(), 0u);
  REQUIRE(registry.pipeline(key("f")));
  EXPECT_EQ(registry.pipelineCount(), 1u);
  device->failAt(Call::makeLibrary);
  EXPECT_ERROR(registry.library(text("a")), (failure));
  REQUIRE(registry.library(text("a")));
}

TEST(KernelRegistry, ClearKeepsPipelinesInUse) {
  const auto device = FakeDevice::make();
  KernelRegistry& registry = device->registry();
  const auto pipeline = REQUIRE(registry.pipeline(key("f")));
  const auto library = REQUIRE(registry.library(text("a", "kept")));
  registry.clear();
  EXPECT_EQ(registry.pipelineCount(), 0u);
  EXPECT_EQ(pipeline->maxThreadsPerThreadgroup(), 1024u);
  EXPECT_EQ(library->label(), "kept");
  EXPECT(pipeline != REQUIRE(registry.pipeline(key("f"))));
  EXPECT(library != REQUIRE(registry.library(text("a"))));
  EXPECT_EQ(device->tried(Call::makeShippedLibrary), 2u);
}

TEST(KernelRegistry, ClearingIsSafeDuringBuilds) {
  const auto device = FakeDevice::make();
  std::atomic<uint32_t> missing = 0;
  onThreads([&](size_t i) {
    for (uint32_t n = 0; n < 50; ++n) {
      if (i == 0) {
        device->registry().clear();
      } else if (!device->registry().pipeline(key("f", {{0, n % 4}}))) {
        ++missing;
      }
    }
  });
  EXPECT_EQ(missing.load(), 0u);
}

}  // namespace mnk::test
