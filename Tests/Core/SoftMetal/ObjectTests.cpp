// Reference counts, pools, and what happens to those who miscount.
#include <pthread.h>

#include <atomic>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalObjects, ListsWhatIsAlive) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  const size_t count = softmetal::liveCount();
  auto buffer = fixture.buffer("keys", 16);
  const auto alive = softmetal::liveObjectsSince(before);
  EXPECT_EQ(alive.size(), size_t(2));  // the string of the label is in the pool
  EXPECT_EQ(alive[0], "MTLBuffer 'keys' made by -[MTLDevice newBufferWithLength:options:], 1 reference");
  EXPECT_EQ(softmetal::liveCount(), count + 2);
  buffer.reset();
  EXPECT_EQ(softmetal::liveCount(), count + 1);
}

TEST(SoftMetalObjects, CountsReferences) {
  const SoftMetalFixture fixture;
  auto buffer = fixture.buffer("keys", 16);
  EXPECT_EQ(buffer->retainCount(), NS::UInteger(1));
  const auto second = NS::RetainPtr(buffer.get());
  EXPECT_EQ(buffer->retainCount(), NS::UInteger(2));
  buffer.reset();
  EXPECT_EQ(second->length(), NS::UInteger(16));
}

TEST(SoftMetalObjects, TellsOfLeaks) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  MTL::CommandQueue* const leaked = fixture.device()->newCommandQueue();
  leaked->setLabel(MTLSTR("forgotten"));
  EXPECT_EQ(softmetal::reportLeaks(before), size_t(1));
  EXPECT_VIOLATIONS("leaked: MTLCommandQueue 'forgotten' made by -[MTLDevice newCommandQueue], 1 reference");
  leaked->release();
}

TEST(SoftMetalObjects, TellsOfMessagesToTheDead) {
  const SoftMetalFixture fixture;
  MTL::Buffer* const buffer = fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared);
  buffer->setLabel(MTLSTR("keys"));
  buffer->release();
  EXPECT_EQ(buffer->length(), NS::UInteger(0));
  EXPECT_VIOLATIONS("-[MTLBuffer length] was sent to MTLBuffer 'keys', which is deallocated");
  buffer->release();
  EXPECT_VIOLATIONS("-[MTLBuffer release] was sent to MTLBuffer 'keys', which is deallocated: it is over-released");
}

TEST(SoftMetalObjects, TellsOfAnOverReleaseInAPool) {
  const SoftMetalFixture fixture;
  {
    const Pool pool;
    fixture.commandBuffer("twice")->release();
    EXPECT_NO_VIOLATION();
  }
  EXPECT_VIOLATIONS("MTLCommandBuffer 'twice' is over-released");
}

TEST(SoftMetalObjects, KeepsTheDeadWhileAPoolHasThem) {
  const SoftMetalFixture fixture;
  {
    const Pool pool;
    fixture.commandBuffer("twice")->release();
    softmetal::reset();
  }
  EXPECT_VIOLATIONS("MTLCommandBuffer 'twice' is over-released");
}

TEST(SoftMetalObjects, NestsPools) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  {
    const Pool outer;
    text("outer");
    {
      const Pool inner;
      text("inner");
      EXPECT_EQ(softmetal::liveObjectsSince(before).size(), size_t(4));
    }
    EXPECT_EQ(softmetal::liveObjectsSince(before).size(), size_t(2));
  }
  EXPECT_EQ(softmetal::liveObjectsSince(before).size(), size_t(0));
}

TEST(SoftMetalObjects, AutoreleasesOnRequest) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  {
    const Pool pool;
    fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared)->autorelease();
    EXPECT_EQ(softmetal::liveObjectsSince(before).size(), size_t(2));
  }
  EXPECT_EQ(softmetal::liveObjectsSince(before).size(), size_t(0));
}

TEST(SoftMetalObjects, TellsOfAMissingPool) {
  const SoftMetalFixture fixture;
  NS::String* leaked = nullptr;
  std::thread([&] { leaked = text("lonely"); }).join();
  EXPECT_VIOLATIONS(
      "NSString 'lonely' was autoreleased by +[NSString stringWithCString:encoding:] on a thread without");
  leaked->release();
  std::thread([] {
    const Pool pool;
    text("at home");
  }).join();
  EXPECT_NO_VIOLATION();
}

// What Metal does inside may autorelease, so each of its calls counts, and so does the release that deallocates.
TEST(SoftMetalObjects, TellsOfCallsOfMetalWithoutAPool) {
  const SoftMetalFixture fixture;
  auto buffer = fixture.buffer("lonely", 16);
  std::thread([&] { buffer->length(); }).join();
  EXPECT_VIOLATIONS("-[MTLBuffer length] was sent on a thread without an autorelease pool");
  std::thread([&] {
    buffer->retain();
    buffer->release();
  }).join();
  EXPECT_NO_VIOLATION();
  std::thread([&] { buffer.reset(); }).join();
  EXPECT_VIOLATIONS("MTLBuffer 'lonely' was deallocated on a thread without an autorelease pool");
}

TEST(SoftMetalObjects, TellsOfPoolsOutOfOrder) {
  const SoftMetalFixture fixture;
  NS::AutoreleasePool* const outer = NS::AutoreleasePool::alloc()->init();
  NS::AutoreleasePool* const inner = NS::AutoreleasePool::alloc()->init();
  outer->drain();
  EXPECT_VIOLATIONS("drained before the pools inside of it");
  inner->drain();
  NS::AutoreleasePool* const ours = NS::AutoreleasePool::alloc()->init();
  ours->retain();
  EXPECT_VIOLATIONS("an NSAutoreleasePool was retained");
  ours->drain();
}

TEST(SoftMetalObjects, TellsOfAPoolOfAnotherThread) {
  const SoftMetalFixture fixture;
  std::thread([] {
    NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
    std::thread([&] { pool->drain(); }).join();
  }).join();
  EXPECT_VIOLATIONS("drained on a thread that did not make it");
}

// Foundation's threads release their blocks in the destructor of a key, which runs after those of thread-local
// variables.
TEST(SoftMetalObjects, PoolsWorkAtTheEndOfAThread) {
  const SoftMetalFixture fixture;
  const size_t count = softmetal::liveCount();
  pthread_key_t key{};
  EXPECT_EQ(pthread_key_create(&key,
                               [](void* calls) {
                                 const Pool pool;
                                 text("a string");
                                 *static_cast<int*>(calls) += 1;
                               }),
            0);
  int calls = 0;
  std::thread([&] {
    const Pool pool;
    text("another");
    EXPECT_EQ(pthread_setspecific(key, &calls), 0);
  }).join();
  EXPECT_EQ(pthread_key_delete(key), 0);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(softmetal::liveCount(), count);
}

TEST(SoftMetalObjects, CountsOnManyThreads) {
  const SoftMetalFixture fixture;
  const auto buffer = fixture.buffer("shared", 16);
  std::atomic<uint64_t> lengths = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Pool pool;
      for (int k = 0; k < 500; ++k) {
        const auto mine = NS::RetainPtr(buffer.get());
        lengths += mine->length();
        text("a string");
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lengths.load(), uint64_t(8 * 500 * 16));
  EXPECT_EQ(buffer->retainCount(), NS::UInteger(1));
}
