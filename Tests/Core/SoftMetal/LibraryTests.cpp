// Libraries, functions and pipelines that are refused. MetalLibrary and MetalPipeline have what is made.
#include <fstream>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

std::string describe(NS::Error* error) {
  if (!error) return "no error";
  return fmt::format("{} {}: {}", utf8(error->domain()), error->code(), utf8(error->localizedDescription()));
}

struct LibraryFixture : SoftMetalFixture {
  explicit LibraryFixture(std::source_location where = std::source_location::current())
      : SoftMetalFixture({}, "", where) {}
  NS::SharedPtr<MTL::Library> open(const std::string& name) {
    error = nullptr;
    return NS::TransferPtr(device()->newLibrary(NS::URL::fileURLWithPath(text(folder.path(name).c_str())), &error));
  }
  NS::SharedPtr<MTL::Library> compile(const char* source) {
    error = nullptr;
    return NS::TransferPtr(device()->newLibrary(text(source), nullptr, &error));
  }
  void expectError(std::string_view start) const { EXPECT_EQ(describe(error).substr(0, start.size()), start); }

  CacheFolder folder;
  NS::Error* error = nullptr;
};

}  // namespace

TEST(SoftMetalLibrary, RefusesOtherFiles) {
  LibraryFixture fixture;
  EXPECT(!fixture.open("missing"));
  fixture.expectError("MTLLibraryErrorDomain 6: library not found");
  for (const char* contents :
       {"", "MTLB", "soft metallib 1\n", "soft metallib 1\nwhat is this\n", "soft metallib 1\nadd"}) {
    const Context context(contents);
    std::ofstream(fixture.folder.path("bad")) << contents;
    EXPECT(!fixture.open("bad"));
    fixture.expectError("MTLLibraryErrorDomain 2: Invalid library file");
  }
  softmetal::writeMetallib(fixture.folder.path("other"), {.linked = "nobody", .text = {}, .added = {}, .hidden = {}});
  EXPECT(!fixture.open("other"));
  fixture.expectError("MTLLibraryErrorDomain 2: ");
}

TEST(SoftMetalLibrary, RefusesFunctionsAndPipelines) {
  LibraryFixture fixture;
  softmetal::writeMetallib(fixture.folder.path("a"),
                           {.linked = "conformance", .text = {}, .added = {"ghost"}, .hidden = {"copy16"}});
  const auto library = fixture.open("a");
  fixture.expectError("no error");
  EXPECT_EQ(library->functionNames()->count(), fixture.library()->functionNames()->count());  // one more, one less
  EXPECT(library->newFunction(text("copy16")) == nullptr);
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const float real = 1;
  values->setConstantValue(&real, MTL::DataTypeHalf, NS::UInteger(0));
  values->setConstantValue(&real, MTL::DataTypeFloat, NS::UInteger(0));
  EXPECT(!library->newFunction(text("functionConstants"), values.get(), &fixture.error));
  fixture.expectError("MTLLibraryErrorDomain 3: ");
  EXPECT(!library->newFunction(text("nowhere"), values.get(), &fixture.error));
  fixture.expectError("MTLLibraryErrorDomain 5: ");
  const auto ghost = NS::TransferPtr(library->newFunction(text("ghost")));
  EXPECT(fixture.device()->newComputePipelineState(ghost.get(), &fixture.error) == nullptr);
  fixture.expectError("CompilerError 2: ");
  EXPECT(!fixture.device()->newComputePipelineState(static_cast<MTL::Function*>(nullptr), &fixture.error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  EXPECT(
      !fixture.device()->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &fixture.error));
  const auto copy = fixture.function("copy16");
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(!other->newComputePipelineState(copy.get(), &fixture.error));
}

TEST(SoftMetalText, RefusesAReferencedConstantWithoutAValue) {
  LibraryFixture fixture;
  const auto library = fixture.compile(R"(
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
)");
  fixture.expectError("no error");
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto refusal = [&](const char* function) {
    fixture.error = nullptr;
    NS::TransferPtr(library->newFunction(text(function), values.get(), &fixture.error));
    return describe(fixture.error);
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
