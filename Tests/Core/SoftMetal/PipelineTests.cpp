#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

NS::SharedPtr<MTL::Function> function(const SoftMetalFixture& fixture, const char* name) {
  return NS::TransferPtr(fixture.library()->newFunction(text(name)));
}

}  // namespace

TEST(SoftMetalPipeline, IsWhatMachineAndDescriptorSay) {
  const SoftMetalFixture fixture(
      {.threadExecutionWidth = 16, .maxTotalThreadsPerThreadgroup = 640, .staticThreadgroupMemoryLength = 48});
  NS::Error* error = nullptr;
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  const auto copy = function(fixture, "copy16");
  descriptor->setComputeFunction(copy.get());
  descriptor->setLabel(text("copier"));
  const auto make = [&] {
    return NS::TransferPtr(
        fixture.device()->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  };
  const auto whole = make();
  EXPECT_EQ(whole->maxTotalThreadsPerThreadgroup(), NS::UInteger(640));
  EXPECT_EQ(whole->threadExecutionWidth(), NS::UInteger(16));
  EXPECT_EQ(whole->staticThreadgroupMemoryLength(), NS::UInteger(48));
  EXPECT_EQ(std::string(whole->label()->utf8String()), "copier");
  EXPECT(whole->device() == fixture.device());
  descriptor->setMaxTotalThreadsPerThreadgroup(64);
  EXPECT_EQ(make()->maxTotalThreadsPerThreadgroup(), NS::UInteger(64));
  descriptor->setMaxTotalThreadsPerThreadgroup(641);
  EXPECT(!make());
  EXPECT(error != nullptr);
}

TEST(SoftMetalPipeline, ReflectsArguments) {
  const SoftMetalFixture fixture;
  const auto tree = function(fixture, "threadgroupTree");
  MTL::ComputePipelineReflection* reflection = nullptr;
  NS::Error* error = nullptr;
  const auto pipeline = NS::TransferPtr(
      fixture.device()->newComputePipelineState(tree.get(), MTL::PipelineOptionArgumentInfo, &reflection, &error));
  EXPECT_EQ(reflection->bindings()->count(), NS::UInteger(3));
  for (NS::UInteger i = 0; i < 3; ++i) {
    auto* const binding = reflection->bindings()->object<MTL::BufferBinding>(i);
    EXPECT(binding->used() && binding->argument());
    if (binding->type() == MTL::BindingTypeThreadgroupMemory) {
      EXPECT_EQ(binding->index(), NS::UInteger(0));
      EXPECT_EQ(reinterpret_cast<MTL::ThreadgroupBinding*>(binding)->threadgroupMemoryDataSize(), NS::UInteger(4));
    } else {
      EXPECT_EQ(binding->bufferDataSize(), NS::UInteger(4));
      EXPECT_EQ(binding->bufferAlignment(), NS::UInteger(4));
      EXPECT_EQ(binding->access(), binding->index() == 0 ? MTL::BindingAccessReadOnly : MTL::BindingAccessReadWrite);
    }
  }
}

TEST(SoftMetalPipeline, TellsOfAFunctionOfAnotherDevice) {
  const SoftMetalFixture fixture;
  const auto copy = function(fixture, "copy16");
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  NS::Error* error = nullptr;
  EXPECT(other->newComputePipelineState(copy.get(), &error) == nullptr);
  EXPECT_VIOLATIONS("MTLDevice 'another': a pipeline was asked for with function copy16 of another device");
}

TEST(SoftMetalPipeline, TellsOfNoFunction) {
  const SoftMetalFixture fixture;
  NS::Error* error = nullptr;
  EXPECT(fixture.device()->newComputePipelineState(static_cast<MTL::Function*>(nullptr), &error) == nullptr);
  EXPECT_VIOLATIONS("newComputePipelineStateWithFunction: was given nil, expected MTLFunction");
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  EXPECT(fixture.device()->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error) ==
         nullptr);
  EXPECT_VIOLATIONS("MTLComputePipelineDescriptor without a label has no computeFunction");
}
