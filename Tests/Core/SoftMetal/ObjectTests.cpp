// Messages, reference counts and pools, and what is reported when they are misused; strings, arrays and buffers.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"
#include "SoftObject.hpp"

using namespace mnk::test;

namespace {

SEL selector(const char* name) {
  return sel_registerName(name);
}

// Has arguments in every register that can hold one, and on the stack.
struct Probe : softmetal::Object {
  double sum(int a, int b, int c, int d, double x0, double x1, double x2, double x3, double x4, double x5, double x6,
             double x7, int e, int f, int g, double x8) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + x0 + 10 * x1 + 100 * x2 + 1000 * x3 + 10000 * x4 +
           100000 * x5 + 1000000 * x6 + 10000000 * x7 + 100000000 * x8;
  }
  MTL::Size size(NS::UInteger width, double height, NS::UInteger depth) {
    return MTL::Size(width, static_cast<NS::UInteger>(height), depth);
  }
};

// Called during the lookup; leaves none of those registers as it was.
void spoilRegisters() {
#if defined(__x86_64__)
  asm volatile(
      "mov $-1, %%rax; mov %%rax, %%rdi; mov %%rax, %%rsi; mov %%rax, %%rdx; mov %%rax, %%rcx; mov %%rax, %%r8;"
      "mov %%rax, %%r9; movq %%rax, %%xmm0; movq %%rax, %%xmm1; movq %%rax, %%xmm2; movq %%rax, %%xmm3;"
      "movq %%rax, %%xmm4; movq %%rax, %%xmm5; movq %%rax, %%xmm6; movq %%rax, %%xmm7" ::
          : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
            "xmm7");
#elif defined(__aarch64__)
  asm volatile(
      "mov x0, #-1; mov x1, x0; mov x2, x0; mov x3, x0; mov x4, x0; mov x5, x0; mov x6, x0; mov x7, x0; mov x8, x0;"
      "fmov d0, x0; fmov d1, x0; fmov d2, x0; fmov d3, x0; fmov d4, x0; fmov d5, x0; fmov d6, x0; fmov d7, x0" ::
          : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7");
#endif
}

bool contains(const std::vector<std::string>& list, const char* text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Calls a function on a thread of its own.
template <typename Body>
void onThread(const Body& body) {
  std::thread(body).join();
}

}  // namespace

TEST(SoftMetalObjects, ReportLeaksAndUseAfterFree) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  MTL::CommandQueue* const leaked = fixture.device()->newCommandQueue();
  {
    const Pool pool;
    leaked->setLabel(text("forgotten"));
  }
  EXPECT_EQ(softmetal::reportLeaks(before), size_t(1));
  leaked->release();
  MTL::Buffer* const buffer = fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared);
  buffer->setLabel(text("keys"));
  buffer->release();
  EXPECT_EQ(buffer->length(), NS::UInteger(0));
  buffer->release();
}

// Deallocated objects are kept while a pool has them.
TEST(SoftMetalObjects, ReportAnOverReleaseInAPool) {
  const SoftMetalFixture fixture;
  for (const bool isReset : {true, false}) {  // a reset forgets violations
    {
      const Pool pool;
      fixture.commandBuffer("twice")->release();
      if (isReset) softmetal::reset();
    }
  }
}

// What Metal does inside may autorelease, so each of its calls counts, and so does the release that deallocates.
TEST(SoftMetalObjects, ReportAMissingPool) {
  const SoftMetalFixture fixture;
  NS::String* leaked = nullptr;
  onThread([&] { leaked = text("lonely"); });
  leaked->release();
  auto buffer = fixture.buffer("lonely", 16);
  onThread([&] { buffer->length(); });
  onThread([&] {
    buffer->retain();
    buffer->release();
    const Pool pool;
    text("at home");
  });
  onThread([&] { buffer.reset(); });
}

TEST(SoftMetalObjects, ReportPoolsOutOfOrder) {
  const SoftMetalFixture fixture;
  NS::AutoreleasePool* const outer = NS::AutoreleasePool::alloc()->init();
  NS::AutoreleasePool* const inner = NS::AutoreleasePool::alloc()->init();
  outer->release();
  inner->release();
  NS::AutoreleasePool* const ours = NS::AutoreleasePool::alloc()->init();
  ours->retain();
  ours->release();
  onThread([] {
    NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
    onThread([&] { pool->release(); });
  });
}

// Foundation's threads release their blocks in the destructor of a key, which runs after those of thread-local
// variables.
TEST(SoftMetalObjects, PoolsWorkAtTheEndOfAThread) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  const auto usePool = [](void* calls) {
    const Pool pool;
    text("a string");
    *static_cast<int*>(calls) += 1;
  };
  pthread_key_t key{};
  EXPECT_EQ(pthread_key_create(&key, usePool), 0);
  int calls = 0;
  onThread([&] {
    usePool(&calls);
    EXPECT_EQ(pthread_setspecific(key, &calls), 0);
  });
  EXPECT_EQ(pthread_key_delete(key), 0);
  EXPECT_EQ(calls, 2);
  EXPECT(softmetal::liveObjectsSince(before).empty());
}

// ---- Messages ----

TEST(SoftMetalRuntime, KeepsArgumentsAndReturnsStructs) {
  const SoftMetalFixture fixture;
  softmetal::define<Probe>("SoftMetalProbe").withAlloc().on<&Probe::sum>("sum:").on<&Probe::size>("size:");
  for (const char* name : {"sum:", "size:"}) {
    objc_lookUpClass("SoftMetalProbe")->methods[selector(name)].beforeCall = spoilRegisters;
  }
  void* const probe = Sender::sendMessage<void*>(objc_lookUpClass("SoftMetalProbe"), selector("alloc"));
  EXPECT_EQ(Sender::sendMessage<double>(probe, selector("sum:"), 1, 2, 3, 4, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 5,
                                        6, 7, 9.0),
            987654321.0 + 1 + 4 + 9 + 16 + 25 + 36 + 49);
  const auto size = Sender::sendMessage<MTL::Size>(probe, selector("size:"), NS::UInteger(3), 4.0, NS::UInteger(5));
  EXPECT(size.width == 3 && size.height == 4 && size.depth == 5);
  Sender::sendMessage<void>(probe, selector("release"));
}

TEST(SoftMetalRuntime, AnswersNilWithZeroAndReportsStructsOfIt) {
  const SoftMetalFixture fixture;
  EXPECT_EQ(Sender::sendMessage<double>(nullptr, selector("GPUStartTime")), 0.0);
  EXPECT_EQ(Sender::sendMessage<NS::UInteger>(nullptr, selector("length")), NS::UInteger(0));
  Sender::sendMessage<MTL::Size>(nullptr, selector("maxThreadsPerThreadgroup"));
}

TEST(SoftMetalRuntime, ReportsUnknownSelectorsAndListsThem) {
  const SoftMetalFixture fixture;
  EXPECT(Sender::sendMessage<void*>(fixture.device(), selector("foo:"), 3) == nullptr);
  EXPECT_EQ(Sender::sendMessage<double>(fixture.device(), selector("bar")), 0.0);
  EXPECT(Sender::sendMessage<void*>(objc_lookUpClass("MTLHeapDescriptor"), selector("alloc")) == nullptr);
  const auto sent = softmetal::selectorsSent(), implemented = softmetal::selectorsImplemented();
  EXPECT(contains(sent, "-[MTLDevice newCommandQueue]") && !contains(sent, "-[NSArray retainCount]"));
  EXPECT(contains(implemented, "-[NSArray retainCount]") && !contains(implemented, "-[MTLDevice foo:]"));
  EXPECT(contains(implemented, "+[NSString stringWithCString:encoding:]"));
}

// ---- Strings, arrays and buffers ----

TEST(SoftMetalFoundation, ReportsMisuseOfStringsAndArrays) {
  const SoftMetalFixture fixture;
  EXPECT_EQ(utf8(text("Größe 𝄞")), "Größe 𝄞");
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80"}) EXPECT(text(bad) == nullptr);  // the last: half a pair
  EXPECT(text(nullptr) == nullptr);
  EXPECT(NS::String::string("x", NS::UTF16StringEncoding) == nullptr);
  EXPECT(fixture.device()->counterSets()->object(1) == nullptr);
}

TEST(SoftMetalBuffers, HaveRules) {
  const SoftMetalFixture fixture;
  MTL::Device* const device = fixture.device();
  auto buffer = fixture.buffer("new", 100);
  auto* bytes = static_cast<unsigned char*>(buffer->contents());
  for (size_t i = 0; i < 100; ++i) EXPECT(bytes[i] != 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, uintptr_t(0));
  bytes[100] = 1;
  buffer.reset();
  const auto hidden = NS::TransferPtr(device->newBuffer(64, MTL::ResourceStorageModePrivate));
  EXPECT(hidden->contents() == nullptr);
  constexpr auto kShared = MTL::ResourceStorageModeShared;
  EXPECT(device->newBuffer(static_cast<const void*>(nullptr), 16, kShared) == nullptr);
  EXPECT(device->newBuffer(NS::UInteger(0), kShared) == nullptr);
  EXPECT(device->newBuffer(device->maxBufferLength() + 1, kShared) == nullptr);
}

TEST(SoftMetalBuffers, WrapPagesAlone) {
  const SoftMetalFixture fixture;
  const auto page = static_cast<size_t>(getpagesize());
  const std::unique_ptr<void, decltype(&free)> memory(aligned_alloc(page, 2 * page), free);
  const auto wrap = [&](size_t offset, size_t length, MTL::ResourceOptions options) {
    return fixture.device()->newBuffer(static_cast<char*>(memory.get()) + offset, length, options, nullptr);
  };
  EXPECT(!wrap(64, page, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected the start of a page");
  EXPECT(!wrap(0, page + 1, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected whole pages");
  EXPECT(!wrap(0, page, MTL::ResourceStorageModePrivate));
}
