// Dispatches that nothing orders, found from what they declare.
#include "DeclaredAccesses.hpp"
#include "Hazards.hpp"
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

constexpr const char* kSound = "Copy copy16 binds 0:64 1:64 reads 0:0+64 writes 1:0+64";

// Four buffers, and encoders that copy 64 bytes between them and declare it.
struct CopyWork {
  explicit CopyWork(const SoftMetalFixture& fixture, MTL::ResourceOptions options = MTL::ResourceStorageModeShared)
      : fixture(fixture), commands(fixture.commandBuffer()), pipeline(fixture.pipeline("copy16")) {
    for (size_t i = 0; i < 4; ++i) {
      buffers[i] = NS::TransferPtr(fixture.device()->newBuffer(256, options));
      buffers[i]->setLabel(text(fmt::format("b{}", i).c_str()));
    }
    begin();
  }
  void begin(MTL::DispatchType type = MTL::DispatchTypeConcurrent) {
    if (encoder) encoder->endEncoding();
    encoder = fixture.encoder(commands, type);
    encoder->setComputePipelineState(pipeline.get());
  }
  void copy(size_t from, size_t to, size_t fromOffset = 0, size_t toOffset = 0) const {
    encoder->pushDebugGroup(text(kSound));
    encoder->setBuffer(buffers[from].get(), fromOffset, 0);
    encoder->setBuffer(buffers[to].get(), toOffset, 1);
    encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
    encoder->popDebugGroup();
  }
  void expectRun(bool isFine) const {
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->status(), isFine ? MTL::CommandBufferStatusCompleted : MTL::CommandBufferStatusError);
  }

  const SoftMetalFixture& fixture;
  MTL::CommandBuffer* commands;
  MTL::ComputeCommandEncoder* encoder = nullptr;
  NS::SharedPtr<MTL::ComputePipelineState> pipeline;
  NS::SharedPtr<MTL::Buffer> buffers[4];
};

}  // namespace

TEST(SoftMetalHazards, AreFoundWithoutABarrierAndNotWithOne) {
  const SoftMetalFixture fixture;
  enum Barrier { none, ofBuffers, ofTextures };
  for (const auto& [from, to] : {std::pair(1, 2), {2, 0}, {2, 1}}) {  // after a copy from b0 to b1
    for (const Barrier barrier : {none, ofBuffers, ofTextures}) {
      const Context context(fmt::format("from {} to {}, barrier {}", from, to, static_cast<int>(barrier)));
      CopyWork work(fixture);
      work.copy(0, 1);
      if (barrier == ofBuffers) work.encoder->memoryBarrier(MTL::BarrierScopeBuffers);
      if (barrier == ofTextures) work.encoder->memoryBarrier(MTL::BarrierScopeTextures);
      work.copy(from, to);
      work.expectRun(barrier == ofBuffers);
    }
  }
}

TEST(SoftMetalHazards, AreNotWhereNothingMeets) {
  const SoftMetalFixture fixture;
  CopyWork work(fixture);
  work.copy(0, 1, 0, 0);
  work.copy(0, 1, 0, 64);   // the same source, the next bytes
  work.copy(1, 2, 128, 0);  // uninitialized bytes
  work.expectRun(true);
}

TEST(SoftMetalHazards, AreOrderedByEncodersUnlessBuffersAreUntracked) {
  const SoftMetalFixture fixture;
  for (const bool isTracked : {true, false}) {
    CopyWork work(fixture, isTracked ? MTL::ResourceStorageModeShared : MTL::ResourceHazardTrackingModeUntracked);
    work.begin(MTL::DispatchTypeSerial);
    work.copy(0, 1);
    work.copy(1, 2);
    work.begin();
    work.copy(2, 3);
    if (isTracked) {
      work.begin();
      work.copy(3, 0);
    }
    work.expectRun(isTracked);
  }
}

TEST(SoftMetalHazards, OfStridedRowsAreExact) {
  using mnk::Region;
  using softmetal::overlap;
  const Region rows{.offset = 0, .rowBytes = 8, .rowStride = 32, .rows = 4};
  EXPECT(overlap(0, rows, 0, {.offset = 39, .rowBytes = 100}));
  EXPECT(!overlap(0, rows, 0, {.offset = 40, .rowBytes = 24}));
  EXPECT(overlap(0, rows, 0, {.offset = 40, .rowBytes = 25}));
  EXPECT(!overlap(0, rows, 8, rows));
  EXPECT(overlap(0, rows, 7, rows));
  EXPECT(!overlap(0, rows, 104, {.offset = 0, .rowBytes = 50}));
  EXPECT(!overlap(0, rows, 0, {.offset = 0, .rowBytes = 0}));
  EXPECT(!overlap(0, rows, 0, {.offset = 0, .rowBytes = 8, .rowStride = 8, .rows = 0}));
  EXPECT(overlap(100, {.offset = 0, .rowBytes = 1}, 0, {.offset = 100, .rowBytes = 1}));
}

TEST(SoftMetalDeclarations, AreReadFromGroups) {
  const auto read = [](const char* text) -> std::string {
    const auto group = softmetal::readGroup(text);
    if (!group.accesses) return group.declares ? "unreadable" : "nothing";
    std::string line = fmt::format("{} {}", group.accesses->op("k"), group.accesses->names("k"));
    for (const auto& [index, length] : group.accesses->lengths) line += fmt::format(" {}:{}", index, length);
    for (const auto* accesses : {&group.accesses->reads, &group.accesses->writes}) {
      line += accesses == &group.accesses->reads ? " r" : group.accesses->writesSome ? " w some" : " w";
      for (const auto& [index, regions] : *accesses) {
        for (const auto& r : regions) {
          line += fmt::format(" {}:{}+{}*{}@{}", index, r.offset, r.rowBytes, r.rows, r.rowStride);
        }
      }
    }
    return line;
  };
  EXPECT_EQ(read("Op k binds 1:512 3:4096 reads 1:0+512 writes 3:1024+64*8@256 3:0+4"),
            "Op true 1:512 3:4096 r 1:0+512*1@0 w 3:1024+64*8@256 3:0+4*1@0");
  EXPECT_EQ(read("Op k binds 0:8 reads some 0:0+4 writes some 0:0+8"), "Op true 0:8 r 0:0+4*1@0 w some 0:0+8*1@0");
  EXPECT_EQ(read("just a name"), "nothing");
  for (const char* bad : {"binds 0:4", "Op k binds 0", "Op k binds 0:4 writes 0:0+4*2", "Op k binds 0:4 0:8"}) {
    EXPECT_EQ(read(bad), "unreadable");
  }
}

TEST(SoftMetalDeclarations, MustFitTheDispatch) {
  const SoftMetalFixture fixture;
  for (const char* group : {kSound, "Copy copy16 binds 0:64 1:65 reads 0:0+64",
                            "Copy copy16 binds 0:64 1:64 writes 1:1+64", "Copy copy16 binds 0:64 1:64 writes 0:0+4",
                            "Copy copy16 binds 0:64", "Copy fill binds 0:64 1:64", "Copy copy16 binds nonsense"}) {
    const auto made = fixture.copy();
    made->pushDebugGroup(text(group));
    made.dispatch();
    made->popDebugGroup();
    made.finish();
    EXPECT_EQ(made.commands->status() == MTL::CommandBufferStatusCompleted, group == std::string_view(kSound));
  }
}
