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
  NS::SharedPtr<MTL::Library> compile(const char* source, MTL::CompileOptions* options = nullptr) {
    error = nullptr;
    return NS::TransferPtr(device()->newLibrary(text(source), options, &error));
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
  EXPECT(fixture.device()->newDefaultLibrary() == nullptr);
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
  EXPECT_EQ(utf8(ghost->name()), "ghost");
  EXPECT(fixture.device()->newComputePipelineState(ghost.get(), &fixture.error) == nullptr);
  fixture.expectError("CompilerError 2: ");
  EXPECT(!fixture.device()->newComputePipelineState(static_cast<MTL::Function*>(nullptr), &fixture.error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  const auto make = [&] {
    fixture.error = nullptr;
    return NS::TransferPtr(
        fixture.device()->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &fixture.error));
  };
  EXPECT(!make());
  const auto copy = fixture.function("copy16");
  descriptor->setComputeFunction(copy.get());
  descriptor->setMaxTotalThreadsPerThreadgroup(64);
  EXPECT_EQ(make()->maxTotalThreadsPerThreadgroup(), NS::UInteger(64));
  descriptor->setMaxTotalThreadsPerThreadgroup(1025);
  EXPECT(!make());
  fixture.expectError("CompilerError 2: ");
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(!other->newComputePipelineState(copy.get(), &fixture.error));
}

TEST(SoftMetalText, TakesCompileOptions) {
  LibraryFixture fixture;
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  const auto setMathMode = [&] {
    Sender::sendMessage<void>(options.get(), sel_registerName("setMathMode:"), NS::Integer(2));
  };
  setMathMode();
  softmetal::machine().hasMathMode = true;  // of newer systems
  setMathMode();
  EXPECT(options->fastMathEnabled());
  options->setPreprocessorMacros(NS::Dictionary::dictionary(NS::Number::number(100), text("ADDED")));
  EXPECT(fixture.compile("kernel void f(device uint* x [[buffer(0)]]) { x[0] = ADDED; }\nexport_kernel(f)",
                         options.get()));
  const auto given = softmetal::lastCompileOptions();
  EXPECT(given && given->fastMathEnabled && given->mathMode == 2 && given->macros.at("ADDED") == "100");
  softmetal::machine().newestLanguage = MTL::LanguageVersion3_1;
  options->setLanguageVersion(static_cast<MTL::LanguageVersion>((3 << 16) | 2));
  EXPECT(!fixture.compile("", options.get()));
  fixture.expectError("MTLLibraryErrorDomain 1: language version 3.2 is not supported");
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
