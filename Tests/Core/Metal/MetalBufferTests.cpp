#include <unistd.h>

#include <cstring>

#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

// Memory that starts at a page, and how often it was released.
struct Pages {
  explicit Pages(size_t count = 2) {
    if (posix_memalign(reinterpret_cast<void**>(&memory), page(), count * page()) != 0) throw std::bad_alloc();
    std::memset(memory, 7, count * page());
  }
  ~Pages() { free(memory); }
  static size_t page() { return static_cast<size_t>(getpagesize()); }
  std::function<void()> release() {
    return [this] { ++released; };
  }
  std::byte* memory = nullptr;
  int released = 0;
};

}  // namespace

TEST(MetalBuffer, StartsAsZeros) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  for (const uint64_t bytes : {0, 1, 16, 4096, 100'000}) {
    const auto buffer = REQUIRE(device->makeBuffer(bytes));
    EXPECT(metal::nativeBuffer(buffer) != nullptr);
    EXPECT_EQ(buffer->length(), bytes);
    std::vector<std::byte> contents(bytes, std::byte{1});
    REQUIRE(buffer->read(0, contents));
    EXPECT_EQ(static_cast<uint64_t>(std::count(contents.begin(), contents.end(), std::byte{0})), bytes);
    EXPECT(buffer->device() == device);
  }
}

// Too much is refused before Metal is asked; what fails may be tried again.
TEST(MetalBuffer, AFailedAllocationIsATypedError) {
  MetalFixture fixture;
  softmetal::machine().devices.at(0).maxBufferLength = 10000;
  const auto device = fixture.makeDevice();
  const uint64_t before = softmetal::counters().buffers;
  const auto made = device->makeBuffer(10001);
  EXPECT_ERROR(made, {.code = ErrorCode::outOfMemory,
                      .op = "Metal device",
                      .what = "no memory for a buffer",
                      .got = "10001 bytes",
                      .expected = "at most 10000 bytes",
                      .fix = "Ask for less"});
  EXPECT(!made && !made.error().retryable);
  EXPECT_EQ(softmetal::counters().buffers, before);
  softmetal::faults().failAt(softmetal::Call::buffer, 1);
  REQUIRE(device->makeBuffer(64));
  const auto failed = device->makeBuffer(64);
  EXPECT_ERROR(failed, {.code = ErrorCode::outOfMemory, .what = "no memory for a buffer", .got = "64 bytes"});
  EXPECT(!failed && failed.error().retryable);
  REQUIRE(device->makeBuffer(64));
}

TEST(MetalBuffer, WrapsMemoryWithoutACopy) {
  MetalFixture fixture;
  Pages pages;
  const auto device = fixture.makeDevice();
  {
    const auto buffer = REQUIRE(device->wrapMemory(pages.memory, Pages::page() + 10, pages.release()));
    EXPECT(buffer->contents() == pages.memory);
    EXPECT_EQ(buffer->length(), Pages::page() + 10);
    const auto again = REQUIRE(device->wrapMemory(pages.memory + Pages::page(), Pages::page(), {}));
    EXPECT(buffer->range().overlaps(again->range()));
    EXPECT_EQ(pages.released, 0);
  }
  EXPECT_EQ(pages.released, 1);
}

TEST(MetalBuffer, WrappedMemoryOutlivesTheWorkThatUsesIt) {
  MetalFixture fixture;
  Pages pages;
  const auto device = fixture.makeDevice();
  softmetal::faults().holdWork();
  Completion done;
  int releasedWhenHeard = -1;
  {
    auto buffer = REQUIRE(device->wrapMemory(pages.memory, Pages::page(), pages.release()));
    const Shape shape = REQUIRE(Shape::make({1, 4, 1}));
    const Tensor into = REQUIRE(Tensor::over(std::move(buffer), DType::f32, shape));
    const CopyFixture copy(device);
    KVCacheWrite write = copy.write;
    write.into.keys = into;
    CommandEncoder encoder(device);
    REQUIRE(encoder.encode(write));
    done = REQUIRE(encoder.commit([&](const Result<Summary>&) { releasedWhenHeard = pages.released; }));
  }
  EXPECT_EQ(pages.released, 0);
  softmetal::faults().releaseWork();
  REQUIRE(done.wait());
  EXPECT_EQ(pages.released, 1);
  softmetal::waitUntilIdle();
  EXPECT_EQ(releasedWhenHeard, 1);
  float third;
  std::memcpy(&third, pages.memory + 8, sizeof third);
  EXPECT_EQ(third, 3.f);
}

TEST(MetalBuffer, MemoryThatDoesNotStartAtAPageIsRefusedAndReleased) {
  MetalFixture fixture;
  Pages pages;
  const auto device = fixture.makeDevice();
  EXPECT_ERROR(device->wrapMemory(pages.memory + 16, 64, pages.release()),
               {.op = "Metal device",
                .what = "memory cannot be wrapped",
                .got = "64 bytes at an address 16 bytes past a page",
                .expected = "bytes that start at a page",
                .fix = "mmap or vm_allocate"});
  EXPECT_EQ(pages.released, 1);
  EXPECT_ERROR(device->wrapMemory(nullptr, 64, pages.release()), {.got = "a null pointer"});
  EXPECT_EQ(pages.released, 2);
  EXPECT_ERROR(device->wrapMemory(pages.memory, UINT64_MAX, pages.release()), {.what = "memory cannot be wrapped"});
  EXPECT_EQ(pages.released, 3);
  softmetal::faults().failAt(softmetal::Call::buffer);
  EXPECT_ERROR(device->wrapMemory(pages.memory, 64, pages.release()),
               {.what = "Metal cannot use this memory", .expected = "whole pages of one region", .fix = "mmap"});
  EXPECT_EQ(pages.released, 4);
  EXPECT_EQ(REQUIRE(device->wrapMemory(pages.memory, 0, pages.release()))->length(), 0u);
  EXPECT_EQ(pages.released, 5);
}

TEST(MetalBuffer, AReleaseThatThrowsHarmsNobody) {
  MetalFixture fixture;
  Pages pages;
  REQUIRE(fixture.makeDevice()->wrapMemory(pages.memory, 64, [] { throw std::runtime_error("no"); }));
}

TEST(MetalBuffer, WrapsABufferOfTheApps) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const AutoreleasePool pool;
  const auto native = NS::TransferPtr(metal::nativeDevice(device)->newBuffer(64, MTL::ResourceStorageModeShared));
  const auto count = native->retainCount();
  {
    const auto buffer = REQUIRE(metal::wrapBuffer(device, native.get()));
    EXPECT(metal::nativeBuffer(buffer) == native.get());
    EXPECT(buffer->contents() == static_cast<std::byte*>(native->contents()));
    const Tensor tensor = REQUIRE(Tensor::over(buffer, DType::f32, REQUIRE(Shape::make({1, 4, 1})), 32));
    CopyFixture copy(device);
    copy.write.into.keys = tensor;
    REQUIRE(submit(device, copy.write).wait());
    EXPECT_EQ(static_cast<const float*>(native->contents())[11], 4.f);
  }
  softmetal::waitUntilIdle();
  EXPECT_EQ(native->retainCount(), count);
}

TEST(MetalBuffer, APrivateBufferIsForTheGpuAlone) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const AutoreleasePool pool;
  auto* gpu = metal::nativeDevice(device);
  const auto native = NS::TransferPtr(gpu->newBuffer(64, MTL::ResourceStorageModePrivate));
  const auto buffer = REQUIRE(metal::wrapBuffer(device, native.get()));
  EXPECT(buffer->contents() == nullptr);
  std::byte byte;
  EXPECT_ERROR(buffer->read(0, {&byte, 1}), {.code = ErrorCode::unsupported, .what = "cannot touch this buffer"});
  EXPECT(buffer->range().overlaps(REQUIRE(metal::wrapBuffer(device, native.get()))->range()));
  const auto other = NS::TransferPtr(gpu->newBuffer(64, MTL::ResourceStorageModePrivate));
  EXPECT(!buffer->range().overlaps(REQUIRE(metal::wrapBuffer(device, other.get()))->range()));
}

TEST(MetalBuffer, BuffersThatCannotBeUsedAreRefused) {
  MetalFixture fixture;
  softmetal::machine().devices.push_back({.name = "Second"});
  const AutoreleasePool pool;
  const auto natives = NS::TransferPtr(MTL::CopyAllDevices());
  const auto device = fixture.makeDevice();
  const auto foreign = NS::TransferPtr(natives->object<MTL::Device>(1)->newBuffer(64, MTL::ResourceStorageModeShared));
  EXPECT_ERROR(
      metal::wrapBuffer(device, foreign.get()),
      {.what = "the buffer cannot be wrapped", .got = "a buffer of Second", .expected = "a buffer of Soft M1"});
  EXPECT_ERROR(metal::wrapBuffer(device, nullptr), {.got = "no buffer"});
  const auto managed = NS::TransferPtr(metal::nativeDevice(device)->newBuffer(64, MTL::ResourceStorageModeManaged));
  EXPECT_ERROR(metal::wrapBuffer(device, managed.get()), {.code = ErrorCode::unsupported,
                                                          .what = "storage mode",
                                                          .got = "managed storage",
                                                          .expected = "shared or private",
                                                          .fix = "shared storage"});
}

}  // namespace mnk::test
