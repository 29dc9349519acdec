// What is reported when functions and pipelines are misused. MetalLibrary and MetalPipeline have the rest.
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalLibrary, RefusesFunctionsAndPipelines) {
  const SoftMetalFixture fixture;
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const float real = 1;
  values->setConstantValue(&real, MTL::DataTypeHalf, NS::UInteger(0));
  MTL::Device* const device = fixture.device();
  NS::Error* error = nullptr;
  EXPECT(!device->newComputePipelineState(static_cast<MTL::Function*>(nullptr), &error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  EXPECT(!device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  const auto copy = fixture.function("copy16");
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(!other->newComputePipelineState(copy.get(), &error));
}

TEST(SoftMetalText, RefusesAReferencedConstantWithoutAValue) {
  const SoftMetalFixture fixture;
  const char* const source = R"(
#define TWICE(x) (x + x * factor)
pipeline_constant(bool, isOn, 0);
pipeline_constant(uint, added, 1);
pipeline_constant(uint, factor, 2);
pipeline_constant(uint, asked, 3);
pipeline_constant(uint, unused, 4);
inline uint more(uint x) { return isOn ? x + added : TWICE(x); }
struct Sum {
  uint of(uint x) { return more(x) + (is_function_constant_defined(asked) ? 1u : 0u); }
};
kernel void uses(device uint* out [[buffer(0)]]) { out[0] = Sum().of(1); }
export_kernel(uses)
kernel void does_not(device uint* out [[buffer(0)]]) { out[0] = 1; }
export_kernel(does_not)
)";
  NS::Error* error = nullptr;
  const auto library = NS::TransferPtr(fixture.device()->newLibrary(text(source), nullptr, &error));
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto refusal = [&](const char* function) {
    error = nullptr;
    NS::TransferPtr(library->newFunction(text(function), values.get(), &error));
    return error ? utf8(error->localizedDescription()) : "no error";
  };
  EXPECT_EQ(refusal("does_not"), "no error");
  const bool isOn = true;
  const uint32_t number = 7;
  values->setConstantValue(&isOn, MTL::DataTypeBool, NS::UInteger(0));
  EXPECT(refusal("uses").ends_with("uses cannot be specialized: constant added has no value"));
  values->setConstantValue(&number, MTL::DataTypeUInt, NS::UInteger(1));
  EXPECT(refusal("uses").ends_with("constant factor has no value"));  // although it is not read
  for (const NS::UInteger index : {2, 30}) {                          // there is no 30
    values->setConstantValue(&number, MTL::DataTypeUInt, index);
    EXPECT_EQ(refusal("uses"), "no error");
  }
}
