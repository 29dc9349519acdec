// Libraries and pipelines of the Host device: reflection, typed errors, kernels compiled at run time.
#include <fmt/ranges.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "Harness/FakeDevice.hpp"
#include "HostLibrary.hpp"
#include "HostTestSupport.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

Result<std::shared_ptr<Pipeline>> pipelineOf(const std::shared_ptr<Device>& device, std::string function,
                                             std::vector<FunctionConstant> constants = {}) {
  return device->registry().pipeline({conformanceLibrary(), std::move(function), std::move(constants)});
}

std::string argumentText(const Pipeline& pipeline) {
  std::string text;
  for (const Pipeline::Argument& argument : pipeline.arguments()) {
    text += fmt::format("{}{} ", argument.kind == Pipeline::Argument::Kind::buffer ? 'b' : 't', argument.index);
  }
  return text;
}

}  // namespace

TEST(HostPipeline, ReportsTheArgumentsOfAKernel) {
  const auto device = hostDevice({.orderSeed = 3});
  EXPECT_EQ(argumentText(*REQUIRE(pipelineOf(device, "exchanges"))), "b0 b1 b2 b3 t0 t2 ");
  EXPECT_EQ(argumentText(*REQUIRE(pipelineOf(device, "optionalArguments", {{0, true}}))), "b0 b2 b5 t1 ");
  EXPECT_EQ(argumentText(*REQUIRE(pipelineOf(device, "optionalArguments", {{0, false}}))), "b0 t1 ");
  EXPECT_EQ(argumentText(*REQUIRE(pipelineOf(device, "positions"))), "b0 ");
  EXPECT_EQ(REQUIRE(pipelineOf(device, "positions"))->maxThreadsPerThreadgroup(), 1024u);
}

TEST(HostPipeline, RefusesUnknownFunctionsAndConstants) {
  const struct {
    const char* function;
    std::vector<FunctionConstant> constants;
    ExpectedError error;
  } kRefused[] = {
      {"noSuchKernel",
       {},
       {.code = ErrorCode::shaderBuild,
        .what = "library conformance has no such function",
        .got = "noSuchKernel",
        .expected = "one of atomics, ",
        .fix = "correct the name"}},
      {"copy16",
       {{9999, true}},
       {.what = "library conformance has no such function constant",
        .got = "index 9999",
        .expected = "pipeline_constant",
        .fix = "Correct the index"}},
      {"copy16", {{77, true}}, {.got = "index 77"}},
      {"functionConstants",
       {{2, 1.5f}},
       {.what = "function constant 2 (testUint) of library conformance has another type",
        .got = "float",
        .expected = "uint",
        .fix = "declared type"}},
      // Whether it has an argument depends on a constant without a value.
      {"faultUnsetOptional",
       {},
       {.what = "the arguments of kernel faultUnsetOptional of library conformance are unknown",
        .got = "faultMissing (index 40",
        .expected = "values for all constants",
        .fix = "Give the constant"}},
  };
  const auto device = hostDevice({});
  for (const auto& [function, constants, error] : kRefused) {
    ExpectedError expected = error;
    expected.op = "Host device";
    expectError(__FILE__, __LINE__, function, errorOf(pipelineOf(device, function, constants)), expected);
  }
  EXPECT_ERROR(host::linkedLibrary("nothing"), {.code = ErrorCode::libraryNotFound,
                                                .what = "no kernels were compiled into this program",
                                                .got = "nothing",
                                                .expected = "MNK_HOST_LIBRARY",
                                                .fix = "Link that file"});
  EXPECT_ERROR(
      device->registry().pipeline(
          {.library = REQUIRE(FakeDevice::make()->registry().shippedLibrary()), .function = "copy16", .constants = {}}),
      {.what = "not of a Host device"});
}

TEST(HostPipeline, RefusesAPlanForAnotherDevice) {
  const auto device = hostDevice({});
  const Dispatch dispatch{.kernel = {.library = nullptr, .function = "kernelOfAGPU", .constants = {}}, .kind = "Mine"};
  CommandEncoder encoder(device);
  EXPECT_ERROR(encoder.encode(Plan{.op = "FlashDecode", .dispatches = {dispatch}}),
               {.code = ErrorCode::unsupported,
                .op = "FlashDecode",
                .what = "the plan was made for another device",
                .got = "kernel kernelOfAGPU, which " + device->name() + " does not have",
                .expected = "a plan for the device of the encoder",
                .fix = "Pass the device to the call that makes the plan"});
  EXPECT_ERROR(encoder.dispatch(dispatch),
               {.code = ErrorCode::shaderBuild, .what = "library MLXNativeKernels has no such function"});
}

TEST(HostPipeline, ReportsUnboundArguments) {
  std::vector<uint32_t> from(4);
  const auto outcome = runOn(hostDevice({}), {.function = "copy16", .grid = threads(1), .buffers = {bytesOf(from)}});
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .what = "kernel copy16", .got = "buffer 1 is not bound"});
}

// ---- Compiled at run time ----

namespace {

constexpr char kPipelineText[] = R"(#include <metal_stdlib>
using namespace metal;

pipeline_constant(uint, factor, 7);

kernel void multiply(device const uint* in [[buffer(0)]],
                     device uint* out [[buffer(1)]],
                     threadgroup uint* shared [[threadgroup_memory(0)]],
                     uint i [[thread_position_in_grid]],
                     uint tid [[thread_index_in_threadgroup]]) {
  shared[tid] = in[i] * factor;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[tid ^ 1] + simd_sum(1u);
}
export_kernel(multiply)

kernel void stops(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i < 7) {
    out[i] = simd_sum(1u);
  } else {
    out[i] = simd_sum(2u);
  }
}
export_kernel(stops)
)";

void expectMultiplies(const std::shared_ptr<Device>& device, const std::shared_ptr<Library>& library) {
  std::vector<uint32_t> in(64), out(64);
  for (uint32_t i = 0; i < 64; ++i) in[i] = i;
  REQUIRE(runOn(device,
                {.function = "multiply",
                 .grid = threads(64, 32),
                 .buffers = {bytesOf(in), bytesOf(out)},
                 .constants = {{7, 3u}},
                 .threadgroupMemory = {{0, 128}}},
                library));
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], (i ^ 1) * 3 + 32);
}

}  // namespace

TEST(HostRuntimeLibrary, RunsKernelsFromText) {
  for (const uint64_t seed : {0, 5}) {
    const auto device = hostDevice({.workers = 2, .orderSeed = seed});
    const auto library = REQUIRE(device->registry().library({LibrarySource::Kind::text, kPipelineText, "mine"}));
    EXPECT_EQ(library->label(), "mine");
    EXPECT_EQ(fmt::format("{}", fmt::join(library->functionNames(), " ")), "multiply stops");
    expectMultiplies(device, library);
    std::vector<uint32_t> out(32);
    const auto outcome = runOn(device, {.function = "stops", .grid = threads(32), .buffers = {bytesOf(out)}}, library);
    EXPECT_ERROR(
        outcome,
        {.code = ErrorCode::deviceFault, .what = "kernel stops of library mine", .got = "mine:19:14 and mine:21:14"});
    expectMultiplies(device, library);
  }
}

TEST(HostRuntimeLibrary, RunsKernelsFromAFileWithIncludes) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("mnk host test {}", getpid());
  std::filesystem::create_directories(folder / "Lib");
  std::filesystem::create_directories(folder / "Kernels");
  std::ofstream(folder / "Lib" / "Twice.h") << "inline uint twice(uint x) { return x * 2u; }\n";
  std::ofstream(folder / "Kernels" / "Twice.metal")
      << "#include \"../Lib/Twice.h\"\n"
         "kernel void doubled(device uint* data [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
         "  data[i] = twice(data[i]);\n}\nexport_kernel(doubled)\n";
  const auto device = hostDevice({});
  const auto path = (folder / "Kernels" / "Twice.metal").string();
  const auto library = REQUIRE(device->registry().library({LibrarySource::Kind::path, path, ""}));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(library->label(), "Twice.metal");
  std::vector<uint32_t> data = {1, 2, 3};
  REQUIRE(runOn(device, {.function = "doubled", .grid = threads(3), .buffers = {bytesOf(data)}}, library));
  EXPECT(data == std::vector<uint32_t>({2, 4, 6}));
}

namespace {

// Text that the compiler refuses, where, and the fix that the error suggests.
struct RefusedText {
  const char* text;
  std::string_view got, fix;
};
constexpr RefusedText kRefusedTexts[] = {
    {"kernel void f(device uint* data [[buffer(0)]]) {\n  data[0] = missing;\n}\n",
     "refused:2:13: error: use of undeclared identifier 'missing'", "Correct the text"},
    {"kernel void f(device float* d [[buffer(0)]]) {\n  threadgroup float s[32];\n  d[0] = s[0];\n}\n",
     "refused:2:3: error", "threadgroup_array(type, name, count)"},
    {"kernel void f(device float* d [[buffer(0)]]) {\n  if constexpr (true) d[0] = 1.0f;\n}\n", "refused:2:6: error",
     ""},
    {"kernel void f(device float* d [[buffer(0)]]) {\n  d[0] = d[1] * 0.5;\n}\n", "refused:2:10: error", ""},
    {"kernel void f(device uint* d [[buffer(0)]]) {\n  static uint n = 0;\n  d[0] = ++n;\n}\n", "refused:3:10: error",
     ""},
    {R"(kernel void f(device float* d [[buffer(0)]], device const uint* n [[buffer(1)]]) {
  float big[400000];
  for (uint i = 0; i < n[0]; ++i) big[n[i]] = d[i];
  d[0] = big[n[1]];
}
export_kernel(f))",
     "refused:6:1: error: stack frame size", "about 32 KiB"},
    {"constant bool flag [[function_constant(0)]];\n", "refused:1:", "pipeline_constant(type, name, index)"},
    {"kernel void f(threadgroup float* s [[threadgroup(0)]]) { s[0] = 1.0f; }\n",
     "refused:1:", "[[threadgroup_memory(index)]]"},
};

}  // namespace

TEST(HostRuntimeLibrary, RefusesTextWithItsLinesAndAFix) {
  const auto device = hostDevice({});
  for (const RefusedText& each : kRefusedTexts) {
    const Context context(each.text);
    EXPECT_ERROR(device->registry().library({LibrarySource::Kind::text, each.text, "refused"}),
                 {.code = ErrorCode::shaderBuild,
                  .op = "Host device",
                  .what = "library refused does not compile",
                  .got = each.got,
                  .expected = "Metal Shading Language",
                  .fix = each.fix});
  }
  const char* hidden = "kernel void f(device float* d [[buffer(0)]]) { d[0] = 1.0f; }\n";
  const auto library = REQUIRE(device->registry().library({LibrarySource::Kind::text, hidden, "hidden"}));
  EXPECT_ERROR(device->registry().pipeline({library, "f", {}}),
               {.code = ErrorCode::shaderBuild, .got = "f", .expected = "with kernels", .fix = "export_kernel"});
}

TEST(HostRuntimeLibrary, TakesStaticConstantsAndFunctions) {
  const auto device = hostDevice({});
  const char* fine = R"(static constant uint table[] = {5, 6};
struct Pick { static uint second() { return table[1]; } };
static inline void put(device uint& place) { place = Pick::second(); }
kernel void f(device uint* d [[buffer(0)]]) { put(d[0]); }
export_kernel(f))";
  const auto library = REQUIRE(device->registry().library({LibrarySource::Kind::text, fine, "fine"}));
  std::vector<uint32_t> data(1);
  REQUIRE(runOn(device, {.function = "f", .grid = threads(1), .buffers = {bytesOf(data)}}, library));
  EXPECT_EQ(data[0], 6u);
}

TEST(HostRuntimeLibrary, CompilesIfSIGCHLDIsIgnored) {
  const auto device = hostDevice({});
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto wrong = device->registry().library({LibrarySource::Kind::text, "missing;\n", "wrong"});
  const auto right = device->registry().library({LibrarySource::Kind::text, kPipelineText, "right"});
  std::signal(SIGCHLD, before);
  EXPECT_ERROR(wrong, {.code = ErrorCode::shaderBuild, .what = "does not compile", .got = "wrong:1:1: error"});
  expectMultiplies(device, REQUIRE(right));
}

TEST(HostRuntimeLibrary, ReportsMissingFileAndCompiler) {
  EXPECT_ERROR(hostDevice({})->registry().library({LibrarySource::Kind::path, "/no/such.metal", ""}),
               {.code = ErrorCode::libraryNotFound, .got = "/no/such.metal", .fix = "Correct the path"});
  const auto device = hostDevice({.compiler = "no-such-compiler"});
  EXPECT_ERROR(device->registry().library({LibrarySource::Kind::text, kPipelineText, "mine"}),
               {.code = ErrorCode::unsupported,
                .what = "library mine needs a compiler",
                .got = "no-such-compiler: No such file",
                .expected = "clang++",
                .fix = "HostOptions::compiler"});
}
