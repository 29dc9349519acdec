#include "MLXNativeKernels/Device.hpp"
#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

std::string argumentsText(const Pipeline& pipeline) {
  std::string text;
  for (const auto& argument : pipeline.arguments()) {
    text += fmt::format("{}{}:{}{} ", argument.kind == Pipeline::Argument::Kind::buffer ? 'b' : 't', argument.index,
                        argument.minimumBytes, argument.isReadOnly ? "r" : "");
  }
  return text;
}

KernelKey move16(bool hasValues, bool hasRows) {
  return {.function = "kvCacheMove_16", .constants = {{0, hasValues}, {1, hasRows}, {2, false}, {3, false}}};
}

}  // namespace

TEST(MetalPipeline, ReadsItsArgumentsFromMetal) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  EXPECT_EQ(argumentsText(*REQUIRE(device->registry().pipeline(move16(false, false)))), "b0:120r b1:16r b3:16 ");
  EXPECT_EQ(argumentsText(*REQUIRE(device->registry().pipeline(move16(true, false)))),
            "b0:120r b1:16r b2:16r b3:16 b4:16 ");
  EXPECT_EQ(argumentsText(*REQUIRE(device->registry().pipeline(move16(false, true)))),
            "b0:120r b1:16r b3:16 b5:4r b6:4r ");
  // What the function does not take needs no binding.
  softmetal::machine().reflectsOthers = true;
  EXPECT_EQ(argumentsText(*REQUIRE(fixture.makeDevice()->registry().pipeline(move16(false, false)))),
            "b0:120r b1:16r b3:16 ");
}

TEST(MetalText, ArgumentsHaveTheSizesOfTheirTypes) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const auto library = REQUIRE(device->registry().library({.value = R"(
struct Large { float values[1025]; };
struct Small { float values[1024]; };
kernel void sizes(device Large* large [[buffer(0)]], device Small* small [[buffer(1)]],
                  threadgroup ulong* memory [[threadgroup_memory(3)]]) {
  memory[0] = 1;
  large->values[0] = small->values[0] + float(memory[0]);
}
export_kernel(sizes)
)",
                                                           .label = "sizes"}));
  const auto pipeline = REQUIRE(device->registry().pipeline({.library = library, .function = "sizes"}));
  EXPECT_EQ(argumentsText(*pipeline), "b0:4100 b1:4096 t3:8 ");
  // Only small ones may be bound to nothing.
  EXPECT(!pipeline->arguments()[0].mayBeEmpty && pipeline->arguments()[1].mayBeEmpty);
}

TEST(MetalPipeline, ItsOwnLimitDecidesAboutThreadgroups) {
  MetalFixture fixture;
  softmetal::machine().devices.at(0).maxTotalThreadsPerThreadgroup = 96;
  const auto device = fixture.makeDevice();
  EXPECT_EQ(REQUIRE(device->registry().pipeline(move16(false, false)))->maxThreadsPerThreadgroup(), 96u);
  const CopyFixture copy(device, 1000);
  REQUIRE(submit(device, copy.write).wait());
  copy.expectCopied();
  Plan plan = REQUIRE(mnk::plan(copy.write));
  plan.dispatches.at(0).grid.threadgroup = {1, 1, 97};
  CommandEncoder tooLarge(device);
  EXPECT_ERROR(tooLarge.encode(plan), {.what = "larger than the pipeline allows", .expected = "at most 96"});
}

TEST(MetalPipeline, ItsOwnThreadgroupMemoryCounts) {
  MetalFixture fixture;
  softmetal::machine().devices.at(0).staticThreadgroupMemoryLength = 32 * 1024 - 16;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  Plan plan = REQUIRE(mnk::plan(copy.write));
  plan.dispatches.at(0).threadgroupMemory = {{.index = 0, .bytes = 16}};
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(plan));
  plan.dispatches.at(0).threadgroupMemory = {{.index = 0, .bytes = 32}};
  EXPECT_ERROR(encoder.encode(plan), {.what = "too much threadgroup memory", .got = "32784 bytes"});
}

TEST(MetalPipeline, MistakesInAKeyAreTypedErrors) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  EXPECT_ERROR(device->registry().pipeline({.function = "kvCacheMove_3"}),
               {.code = ErrorCode::shaderBuild,
                .op = "Metal device",
                .what = "library MLXNativeKernels has no such function",
                .got = "kvCacheMove_3",
                .expected = "one of flashDecodeMatrix_128_16_16, ",
                .fix = "correct the name"});
  EXPECT_ERROR(device->registry().pipeline({.function = "kvCacheMove_16", .constants = {{0, 1.5f}}}),
               {.code = ErrorCode::shaderBuild, .what = "kvCacheMove_16 cannot be specialized"});
}

TEST(MetalPipeline, WhatMetalRefusesIsATypedErrorAndTriedAgain) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  softmetal::faults().failAt(softmetal::Call::function);
  EXPECT_ERROR(device->registry().pipeline(move16(false, false)),
               {.code = ErrorCode::shaderBuild, .what = "cannot be specialized"});
  softmetal::faults().failAt(softmetal::Call::pipeline);
  EXPECT_ERROR(device->registry().pipeline(move16(false, false)),
               {.code = ErrorCode::shaderBuild, .what = "no pipeline can be made of kvCacheMove_16"});
  REQUIRE(device->registry().pipeline(move16(false, false)));
}

TEST(MetalPipeline, SimdgroupsOfAnotherWidthAreRefused) {
  MetalFixture fixture;
  softmetal::machine().devices.at(0).threadExecutionWidth = 16;
  EXPECT_ERROR(fixture.makeDevice()->registry().pipeline(move16(false, false)),
               {.code = ErrorCode::unsupported,
                .what = "simdgroups have another width",
                .got = "16 threads",
                .expected = "32 threads"});
}

}  // namespace mnk::test
