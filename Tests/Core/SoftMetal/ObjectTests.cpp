// Reference counts, pools, and what happens to those who miscount.
#include <pthread.h>

#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

// Calls a function on a thread of its own.
template <typename Body>
void onThread(const Body& body) {
  std::thread(body).join();
}

}  // namespace

TEST(SoftMetalObjects, AreCountedAndListed) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  const size_t count = softmetal::liveCount();
  auto buffer = fixture.buffer("keys", 16);
  const auto alive = softmetal::liveObjectsSince(before);
  EXPECT_EQ(alive.size(), size_t(2));  // the string of the label is in the pool
  EXPECT_EQ(alive[0], "MTLBuffer 'keys' made by -[MTLDevice newBufferWithLength:options:], 1 reference");
  EXPECT_EQ(softmetal::liveCount(), count + 2);
  EXPECT_EQ(buffer->retainCount(), NS::UInteger(1));
  auto second = NS::RetainPtr(buffer.get());
  EXPECT_EQ(buffer->retainCount(), NS::UInteger(2));
  buffer.reset();
  EXPECT_EQ(second->length(), NS::UInteger(16));
  second.reset();
  EXPECT_EQ(softmetal::liveCount(), count + 1);
}

TEST(SoftMetalObjects, ReportLeaksAndUseAfterFree) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  MTL::CommandQueue* const leaked = fixture.device()->newCommandQueue();
  leaked->setLabel(MTLSTR("forgotten"));
  EXPECT_EQ(softmetal::reportLeaks(before), size_t(1));
  leaked->release();
  MTL::Buffer* const buffer = fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared);
  buffer->setLabel(MTLSTR("keys"));
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

TEST(SoftMetalObjects, GoWithTheirPools) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  const auto expectAlive = [&](size_t count) { EXPECT_EQ(softmetal::liveObjectsSince(before).size(), count); };
  {
    const Pool outer;
    fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared)->autorelease();
    {
      const Pool inner;
      text("inner");
      expectAlive(4);
    }
    expectAlive(2);
  }
  expectAlive(0);
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
  outer->drain();
  inner->drain();
  NS::AutoreleasePool* const ours = NS::AutoreleasePool::alloc()->init();
  ours->retain();
  ours->drain();
  onThread([] {
    NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
    onThread([&] { pool->drain(); });
  });
}

// Foundation's threads release their blocks in the destructor of a key, which runs after those of thread-local
// variables.
TEST(SoftMetalObjects, PoolsWorkAtTheEndOfAThread) {
  const SoftMetalFixture fixture;
  const size_t count = softmetal::liveCount();
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
  EXPECT_EQ(softmetal::liveCount(), count);
}
