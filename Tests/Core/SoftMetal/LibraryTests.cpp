#include <cstring>
#include <fstream>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

// The tests of SoftMetalText compile kernels at run time.

namespace {

constexpr const char* kFill = R"(
kernel void fill(device uint* out [[buffer(0)]], constant uint& value [[buffer(1)]],
                 uint i [[thread_position_in_grid]]) {
#ifdef ADDED
  out[i] = value + ADDED;
#else
  out[i] = value;
#endif
}
export_kernel(fill)
)";

struct Sender : NS::Object {
  using NS::Object::sendMessage;
};

std::string describe(NS::Error* error) {
  if (!error) return "no error";
  return fmt::format("{} {}: {}", error->domain()->utf8String(), error->code(),
                     error->localizedDescription()->utf8String());
}

bool starts(const std::string& whole, std::string_view part) {
  return whole.starts_with(part);
}

NS::SharedPtr<MTL::Library> open(const SoftMetalFixture& fixture, const std::string& path, NS::Error** error) {
  return NS::TransferPtr(fixture.device()->newLibrary(NS::URL::fileURLWithPath(text(path.c_str())), error));
}

uint32_t runFill(const SoftMetalFixture& fixture, MTL::Library* library) {
  const auto function = NS::TransferPtr(library->newFunction(text("fill")));
  NS::Error* error = nullptr;
  const auto pipeline = NS::TransferPtr(fixture.device()->newComputePipelineState(function.get(), &error));
  const auto out = fixture.buffer("out", 16);
  MTL::CommandBuffer* const commands = fixture.commandBuffer();
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  const uint32_t value = 5;
  encoder->setComputePipelineState(pipeline.get());
  encoder->setBuffer(out.get(), 0, 0);
  encoder->setBytes(&value, sizeof value, 1);
  encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  return static_cast<uint32_t*>(out->contents())[3];
}

}  // namespace

TEST(SoftMetalLibrary, OpensALinkedLibrary) {
  const SoftMetalFixture fixture;
  const Folder folder;
  softmetal::writeMetallib(folder.path("a"),
                           {.linked = "conformance", .text = {}, .added = {"ghost"}, .hidden = {"copy16"}});
  NS::Error* error = nullptr;
  const auto library = open(fixture, folder.path("a"), &error);
  EXPECT_EQ(describe(error), "no error");
  EXPECT(library->device() == fixture.device());
  const size_t all = fixture.library()->functionNames()->count();
  EXPECT_EQ(size_t(library->functionNames()->count()), all);  // one more, one less
  EXPECT(library->newFunction(text("copy16")) == nullptr);
  const auto ghost = NS::TransferPtr(library->newFunction(text("ghost")));
  EXPECT_EQ(std::string(ghost->name()->utf8String()), "ghost");
  EXPECT(fixture.device()->newComputePipelineState(ghost.get(), &error) == nullptr);
  EXPECT(starts(describe(error), "CompilerError 2: "));
}

TEST(SoftMetalText, OpensTextInAFile) {
  const SoftMetalFixture fixture;
  const Folder folder;
  softmetal::writeMetallib(folder.path("a"), {.linked = {}, .text = kFill, .added = {}, .hidden = {}});
  NS::Error* error = nullptr;
  const auto library = NS::TransferPtr(fixture.device()->newLibrary(text(folder.path("a").c_str()), &error));
  EXPECT_EQ(describe(error), "no error");
  EXPECT_EQ(runFill(fixture, library.get()), 5u);
}

TEST(SoftMetalLibrary, RefusesOtherFiles) {
  const SoftMetalFixture fixture;
  const Folder folder;
  NS::Error* error = nullptr;
  EXPECT(!open(fixture, folder.path("missing"), &error));
  EXPECT(starts(describe(error), "MTLLibraryErrorDomain 6: library not found"));
  for (const char* contents :
       {"", "MTLB", "soft metallib 1\n", "soft metallib 1\nwhat is this\n", "soft metallib 1\nadd"}) {
    const Context context(contents);
    std::ofstream(folder.path("bad")) << contents;
    error = nullptr;
    EXPECT(!open(fixture, folder.path("bad"), &error));
    EXPECT(starts(describe(error), "MTLLibraryErrorDomain 2: Invalid library file"));
  }
  softmetal::writeMetallib(folder.path("other"), {.linked = "nobody", .text = {}, .added = {}, .hidden = {}});
  EXPECT(!open(fixture, folder.path("other"), &error));
  EXPECT(starts(describe(error), "MTLLibraryErrorDomain 2: "));
  EXPECT(fixture.device()->newDefaultLibrary() == nullptr);
}

TEST(SoftMetalText, CompilesText) {
  const SoftMetalFixture fixture;
  NS::Error* error = nullptr;
  const auto plain = NS::TransferPtr(fixture.device()->newLibrary(text(kFill), nullptr, &error));
  EXPECT_EQ(describe(error), "no error");
  EXPECT(!softmetal::lastCompileOptions());
  EXPECT_EQ(runFill(fixture, plain.get()), 5u);
  const auto broken = NS::TransferPtr(fixture.device()->newLibrary(text("kernel void f( {"), nullptr, &error));
  EXPECT(!broken);
  EXPECT(starts(describe(error), "MTLLibraryErrorDomain 3: "));
  EXPECT_EQ(softmetal::counters().compiles, uint64_t(2));
}

TEST(SoftMetalText, TakesCompileOptions) {
  const SoftMetalFixture fixture;
  softmetal::machine().hasMathMode = true;
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  EXPECT(options->fastMathEnabled());
  options->setFastMathEnabled(false);
  options->setLanguageVersion(MTL::LanguageVersion3_0);
  options->setPreprocessorMacros(NS::Dictionary::dictionary(NS::Number::number(100), text("ADDED")));
  Sender::sendMessage<void>(options.get(), sel_registerName("setMathMode:"), NS::Integer(2));
  NS::Error* error = nullptr;
  const auto library = NS::TransferPtr(fixture.device()->newLibrary(text(kFill), options.get(), &error));
  EXPECT_EQ(describe(error), "no error");
  EXPECT_EQ(runFill(fixture, library.get()), 105u);
  const auto given = softmetal::lastCompileOptions();
  EXPECT(given && !given->fastMathEnabled && given->mathMode == 2);
  EXPECT_EQ(given->languageVersion, uint64_t(MTL::LanguageVersion3_0));
  EXPECT_EQ(given->macros.at("ADDED"), "100");
}

TEST(SoftMetalLibrary, KeepsOptionsOfNewerSystemsBack) {
  const SoftMetalFixture fixture;
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  Sender::sendMessage<void>(options.get(), sel_registerName("setMathMode:"), NS::Integer(2));
  EXPECT_VIOLATIONS("unrecognized selector -[MTLCompileOptions setMathMode:]");
}

TEST(SoftMetalLibrary, AppliesConstants) {
  const SoftMetalFixture fixture;
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const bool flag = true;
  const int32_t number = -4;
  const uint32_t count = 9;
  const float real = 2.5f;
  values->setConstantValue(&real, MTL::DataTypeFloat, NS::UInteger(3));
  values->setConstantValue(&flag, MTL::DataTypeBool, NS::UInteger(0));
  values->setConstantValue(&number, MTL::DataTypeInt, NS::UInteger(1));
  values->setConstantValue(&count, MTL::DataTypeUInt, NS::UInteger(2));
  NS::Error* error = nullptr;
  const auto function =
      NS::TransferPtr(fixture.library()->newFunction(text("functionConstants"), values.get(), &error));
  EXPECT_EQ(describe(error), "no error");
  EXPECT_EQ(function->functionType(), MTL::FunctionTypeKernel);
  const auto pipeline = NS::TransferPtr(fixture.device()->newComputePipelineState(function.get(), &error));
  const auto out = fixture.buffer("out", 16);
  MTL::CommandBuffer* const commands = fixture.commandBuffer();
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  encoder->setComputePipelineState(pipeline.get());
  encoder->setBuffer(out.get(), 0, 0);
  encoder->dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  const float expected[] = {1, -4, 9, 2.5f};
  EXPECT_EQ(std::memcmp(out->contents(), expected, sizeof expected), 0);
}

TEST(SoftMetalText, RefusesAReferencedConstantWithoutAValue) {
  const SoftMetalFixture fixture;
  constexpr const char* kConstants = R"(
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
  const auto library = NS::TransferPtr(fixture.device()->newLibrary(text(kConstants), nullptr, &error));
  EXPECT_EQ(describe(error), "no error");
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto refusal = [&](const char* function) {
    error = nullptr;
    NS::TransferPtr(library->newFunction(text(function), values.get(), &error));
    return describe(error);
  };
  EXPECT_EQ(refusal("does_not"), "no error");
  const bool isOn = true;
  const uint32_t number = 7;
  values->setConstantValue(&isOn, MTL::DataTypeBool, NS::UInteger(0));
  EXPECT(refusal("uses").ends_with("uses cannot be specialized: constant added has no value"));
  values->setConstantValue(&number, MTL::DataTypeUInt, NS::UInteger(1));
  EXPECT(refusal("uses").ends_with("constant factor has no value"));  // although it is not read
  values->setConstantValue(&number, MTL::DataTypeUInt, NS::UInteger(2));
  EXPECT_EQ(refusal("uses"), "no error");
  values->setConstantValue(&number, MTL::DataTypeUInt, NS::UInteger(30));  // there is none
  EXPECT_EQ(refusal("uses"), "no error");
}

TEST(SoftMetalLibrary, RefusesNewerLanguagesThanTheMachineHas) {
  const SoftMetalFixture fixture;
  softmetal::machine().newestLanguage = MTL::LanguageVersion3_1;
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  options->setLanguageVersion(static_cast<MTL::LanguageVersion>((3 << 16) | 2));
  NS::Error* error = nullptr;
  EXPECT(!fixture.device()->newLibrary(text(kFill), options.get(), &error));
  EXPECT_EQ(describe(error), "MTLLibraryErrorDomain 1: language version 3.2 is not supported");
}

TEST(SoftMetalLibrary, RefusesConstantsThatDoNotFit) {
  const SoftMetalFixture fixture;
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const float real = 1;
  values->setConstantValue(&real, MTL::DataTypeFloat, NS::UInteger(0));
  NS::Error* error = nullptr;
  EXPECT(fixture.library()->newFunction(text("functionConstants"), values.get(), &error) == nullptr);
  EXPECT(starts(describe(error), "MTLLibraryErrorDomain 3: "));
  EXPECT(fixture.library()->newFunction(text("nowhere"), values.get(), &error) == nullptr);
  EXPECT(starts(describe(error), "MTLLibraryErrorDomain 5: "));
  values->setConstantValue(&real, MTL::DataTypeHalf, NS::UInteger(0));
  EXPECT_VIOLATIONS("a function constant has MTLDataType");
}
