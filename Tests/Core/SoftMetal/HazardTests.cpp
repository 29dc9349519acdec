// Dispatches that nothing orders, found from what they declare.
#include <cstring>

#include "DeclaredAccesses.hpp"
#include "Hazards.hpp"
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

struct Binding {
  MTL::Buffer* from;
  MTL::Buffer* to;
  size_t fromOffset = 0, toOffset = 0;
};

// Copies 64 bytes and declares it.
void copy(MTL::ComputeCommandEncoder* encoder, const Binding& binding) {
  encoder->pushDebugGroup(text("Copy copy16 binds 0:64 1:64 reads 0:0+64 writes 1:0+64"));
  encoder->setBuffer(binding.from, binding.fromOffset, 0);
  encoder->setBuffer(binding.to, binding.toOffset, 1);
  encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
  encoder->popDebugGroup();
}

struct CopyWork {
  explicit CopyWork(const SoftMetalFixture& fixture, MTL::ResourceOptions options = MTL::ResourceStorageModeShared)
      : commands(fixture.commandBuffer()), pipeline(fixture.pipeline("copy16")) {
    for (size_t i = 0; i < 4; ++i) {
      buffers[i] = NS::TransferPtr(fixture.device()->newBuffer(256, options));
      buffers[i]->setLabel(text(fmt::format("b{}", i).c_str()));
    }
  }
  MTL::ComputeCommandEncoder* encoder(const SoftMetalFixture& fixture,
                                      MTL::DispatchType type = MTL::DispatchTypeConcurrent) {
    MTL::ComputeCommandEncoder* const made = fixture.encoder(commands, type);
    made->setComputePipelineState(pipeline.get());
    return made;
  }
  MTL::Buffer* operator[](size_t i) const { return buffers[i].get(); }
  MTL::CommandBufferStatus run() const {
    commands->commit();
    commands->waitUntilCompleted();
    return commands->status();
  }

  MTL::CommandBuffer* commands;
  NS::SharedPtr<MTL::ComputePipelineState> pipeline;
  NS::SharedPtr<MTL::Buffer> buffers[4];
};

}  // namespace

TEST(SoftMetalHazards, AreFoundWithoutABarrierAndNotWithOne) {
  const SoftMetalFixture fixture;
  struct Case {
    const char* sentence;
    size_t from, to;
  };
  // After a copy from b0 to b1.
  for (const Case& each :
       {Case{"kernel copy16 reads bytes of MTLBuffer 'b1' that kernel copy16 writes, with no barrier "
             "between them (read after write)",
             1, 2},
        Case{"writes bytes of MTLBuffer 'b0' that kernel copy16 reads, with no barrier between them "
             "(write after read)",
             2, 0},
        Case{"(write after write)", 2, 1}}) {
    const Context context(each.sentence);
    for (const int barrier : {0, 1, 2}) {
      CopyWork work(fixture);
      MTL::ComputeCommandEncoder* const encoder = work.encoder(fixture);
      copy(encoder, {work[0], work[1]});
      if (barrier == 1) encoder->memoryBarrier(MTL::BarrierScopeBuffers);
      if (barrier == 2) {
        const MTL::Resource* resources[] = {work[0], work[1]};
        encoder->memoryBarrier(resources, 2);
      }
      copy(encoder, {work[each.from], work[each.to]});
      encoder->endEncoding();
      const auto status = work.run();
      if (barrier == 0) {
        EXPECT_VIOLATIONS(each.sentence);
        EXPECT_EQ(status, MTL::CommandBufferStatusError);
      } else {
        EXPECT_NO_VIOLATION();
        EXPECT_EQ(status, MTL::CommandBufferStatusCompleted);
      }
    }
  }
}

TEST(SoftMetalHazards, AreNotWhereNothingMeets) {
  const SoftMetalFixture fixture;
  CopyWork work(fixture);
  MTL::ComputeCommandEncoder* const encoder = work.encoder(fixture);
  copy(encoder, {work[0], work[1], 0, 0});
  copy(encoder, {work[0], work[1], 0, 64});   // the same source, the next bytes
  copy(encoder, {work[1], work[2], 128, 0});  // uninitialized bytes
  encoder->endEncoding();
  EXPECT_EQ(work.run(), MTL::CommandBufferStatusCompleted);
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalHazards, AreOrderedBySerialEncodersAndByEncoders) {
  const SoftMetalFixture fixture;
  CopyWork work(fixture);
  MTL::ComputeCommandEncoder* const serial = work.encoder(fixture, MTL::DispatchTypeSerial);
  EXPECT_EQ(serial->dispatchType(), MTL::DispatchTypeSerial);
  copy(serial, {work[0], work[1]});
  copy(serial, {work[1], work[2]});
  serial->endEncoding();
  MTL::ComputeCommandEncoder* const next = work.encoder(fixture);
  copy(next, {work[2], work[3]});
  next->endEncoding();
  MTL::ComputeCommandEncoder* const last = work.encoder(fixture);
  copy(last, {work[3], work[0]});
  last->endEncoding();
  EXPECT_EQ(work.run(), MTL::CommandBufferStatusCompleted);
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalHazards, StayWithUntrackedBuffersBetweenEncoders) {
  const SoftMetalFixture fixture;
  CopyWork work(fixture, MTL::ResourceHazardTrackingModeUntracked);
  MTL::ComputeCommandEncoder* const first = work.encoder(fixture, MTL::DispatchTypeSerial);
  copy(first, {work[0], work[1]});
  first->endEncoding();
  MTL::ComputeCommandEncoder* const second = work.encoder(fixture, MTL::DispatchTypeSerial);
  copy(second, {work[1], work[2]});
  second->endEncoding();
  EXPECT_EQ(work.run(), MTL::CommandBufferStatusError);
  EXPECT_VIOLATIONS("(read after write)");
}

TEST(SoftMetalHazards, StayWhereABarrierNamesOthers) {
  const SoftMetalFixture fixture;
  CopyWork work(fixture);
  MTL::ComputeCommandEncoder* const encoder = work.encoder(fixture);
  copy(encoder, {work[0], work[1]});
  const MTL::Resource* resources[] = {work[0]};
  encoder->memoryBarrier(resources, 1);
  encoder->memoryBarrier(MTL::BarrierScopeTextures);
  copy(encoder, {work[1], work[2]});
  EXPECT_VIOLATIONS("(read after write)");
  encoder->endEncoding();
}

TEST(SoftMetalHazards, OfStridedRowsAreExact) {
  using mnk::Region;
  const Region rows{.offset = 0, .rowBytes = 8, .rowStride = 32, .rows = 4};
  EXPECT(softmetal::overlap(0, rows, 0, {.offset = 39, .rowBytes = 100}));
  EXPECT(!softmetal::overlap(0, rows, 0, {.offset = 40, .rowBytes = 24}));
  EXPECT(softmetal::overlap(0, rows, 0, {.offset = 40, .rowBytes = 25}));
  EXPECT(!softmetal::overlap(0, rows, 8, rows));
  EXPECT(softmetal::overlap(0, rows, 7, rows));
  EXPECT(!softmetal::overlap(0, rows, 104, {.offset = 0, .rowBytes = 50}));
  EXPECT(!softmetal::overlap(0, rows, 0, {.offset = 0, .rowBytes = 0}));
  EXPECT(!softmetal::overlap(0, rows, 0, {.offset = 0, .rowBytes = 8, .rowStride = 8, .rows = 0}));
  EXPECT(softmetal::overlap(100, {.offset = 0, .rowBytes = 1}, 0, {.offset = 100, .rowBytes = 1}));
}

TEST(SoftMetalDeclarations, AreReadFromGroups) {
  const auto group =
      softmetal::readGroup("KVCacheWrite kvCacheMove_16 binds 1:512 3:4096 reads 1:0+512 writes 3:1024+64*8@256 3:0+4");
  EXPECT(group.declares && group.accesses);
  const auto& accesses = *group.accesses;
  EXPECT(accesses.names("kvCacheMove_16") && !accesses.names("kvCacheMove"));
  EXPECT_EQ(accesses.op("kvCacheMove_16"), "KVCacheWrite");
  EXPECT_EQ(accesses.lengths.at(3), uint64_t(4096));
  EXPECT_EQ(accesses.reads.at(1)[0].rowBytes, uint64_t(512));
  EXPECT_EQ(accesses.reads.at(1)[0].rows, uint64_t(1));
  const mnk::Region& rows = accesses.writes.at(3)[0];
  EXPECT(rows.offset == 1024 && rows.rowBytes == 64 && rows.rows == 8 && rows.rowStride == 256);
  EXPECT_EQ(accesses.writes.at(3).size(), size_t(2));
  EXPECT(softmetal::readGroup("Op kernel {0: true} binds 0:4 writes 0:0+4").accesses.has_value());
  EXPECT(!accesses.writesSome);
  const auto some = softmetal::readGroup("Op k binds 0:8 reads some 0:0+4 writes some 0:0+8").accesses;
  EXPECT(some && some->writesSome && some->reads.at(0).size() == 1 && some->writes.at(0)[0].rowBytes == 8);
  EXPECT(!softmetal::readGroup("just a name").declares);
  for (const char* bad : {"binds 0:4", "Op k binds 0", "Op k binds 0:4 reads 0:1", "Op k binds 0:4 writes 0:0+4*2",
                          "Op k binds 0:4 0:8", "Op k binds 0:4 writes 0:0+4 reads 0:0+4", "Op k binds x"}) {
    const Context context(bad);
    EXPECT(softmetal::readGroup(bad).declares && !softmetal::readGroup(bad).accesses);
  }
}

TEST(SoftMetalDeclarations, MustFitTheDispatch) {
  const SoftMetalFixture fixture;
  struct Case {
    const char* group;
    const char* sentence;
  };
  for (const Case& each :
       {Case{"Copy copy16 binds 0:64 1:64 reads 0:0+64 writes 1:0+64", nullptr},
        Case{"Copy copy16 binds 0:64 1:65 reads 0:0+64",
             "65 bytes are declared at buffer 1, and MTLBuffer 'to' has 64"},
        Case{"Copy copy16 binds 0:64 1:64 writes 1:1+64", "an access is declared outside of the 64 bytes bound at"},
        Case{"Copy copy16 binds 0:64 1:64 writes 0:0+4",
             "writes are declared at buffer 0, which the kernel only reads"},
        Case{"Copy copy16 binds 0:64", "the debug group declares no length for buffer 1"},
        Case{"Copy fill binds 0:64 1:64", "debug group 'Copy fill binds 0:64 1:64' names another kernel"},
        Case{"Copy copy16 binds nonsense", "declares accesses that cannot be read"}}) {
    const Context context(each.group);
    const auto made = fixture.copy();
    made.encoder->pushDebugGroup(text(each.group));
    made.dispatch();
    made.encoder->popDebugGroup();
    made.finish();
    if (each.sentence) {
      EXPECT_VIOLATIONS(each.sentence);
    } else {
      EXPECT_NO_VIOLATION();
      EXPECT_EQ(softmetal::debugGroups()[0], std::string(each.group));
    }
  }
}
