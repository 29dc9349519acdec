// Without a compiled library the kernels are compiled from the program's own text, a file at a time.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Devices/Metal/MetalLibrary.hpp"
#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

struct EmbeddedFixture : MetalFixture {
  // A device that finds no file.
  std::shared_ptr<Device> makeDevice() const { return REQUIRE(metal::makeDevice({})); }
};

// What was compiled, by the names of files of kernels.
std::string compiledFiles() {
  std::string names;
  for (const std::string& text : softmetal::compiledTexts()) {
    for (const auto& file : metal::embeddedFiles()) {
      if (file.text() == text) names += std::string(file.path.substr(file.path.rfind('/') + 1)) + " ";
    }
  }
  return names;
}

// What the calling process writes to stderr meanwhile.
template <typename Body>
std::string errorOutput(const std::string& path, Body body) {
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  FILE* file = std::fopen(path.c_str(), "w+");
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string said(4096, '\0');
  std::rewind(file);
  said.resize(std::fread(said.data(), 1, said.size(), file));
  std::fclose(file);
  return said;
}

}  // namespace

TEST(EmbeddedLibrary, OneOpCompilesTheTextOfOneOp) {
  EmbeddedFixture fixture;
  const auto device = fixture.makeDevice();
  EXPECT_EQ(compiledFiles(), "");
  const CopyFixture copy(device);
  REQUIRE(submit(device, copy.write).wait());
  copy.expectCopied();
  EXPECT_EQ(compiledFiles(), "Stamp.metal KVCacheWrite.metal ");
  const auto options = softmetal::lastCompileOptions();
  EXPECT(options && options->languageVersion == ((3 << 16) | 2) && !options->fastMathEnabled);
  REQUIRE(submit(device, copy.write).wait());
  const Tensor row = makeTensor(device, std::vector<float>(32, 1));
  REQUIRE(submit(device, Hadamard{.from = row}).wait());
  EXPECT_EQ(compiledFiles(), "Stamp.metal KVCacheWrite.metal Hadamard.metal ");
  EXPECT_EQ(softmetal::counters().compiles, 3u);
}

TEST(EmbeddedLibrary, ListsAllFunctionsAndCompilesTheSmallestFileForIt) {
  EmbeddedFixture fixture;
  const auto device = fixture.makeDevice();
  const auto library = REQUIRE(device->registry().shippedLibrary());
  EXPECT_EQ(library->origin().text(), "embedded text");
  EXPECT_EQ(library->label(), "MLXNativeKernels");
  auto shipped = REQUIRE(REQUIRE(host::makeDevice({}))->registry().shippedLibrary())->functionNames();
  std::erase_if(shipped, [](const std::string& name) { return name.ends_with("_fewLanes"); });  // the Host's own
  EXPECT(library->functionNames() == shipped);
  EXPECT(device->profile().ordersThreadgroups);
  EXPECT_EQ(compiledFiles(), "Stamp.metal ");
  EXPECT_ERROR(device->registry().pipeline({.library = nullptr, .function = "nosuch", .constants = {}}),
               {.code = ErrorCode::shaderBuild, .what = "has no such function", .got = "nosuch"});
  EXPECT_EQ(compiledFiles(), "Stamp.metal ");
}

TEST(EmbeddedLibrary, WithoutMetal3_2NothingIsCompiledForIt) {
  EmbeddedFixture fixture;
  softmetal::machine().newestLanguage = (3 << 16) | 1;
  const auto device = fixture.makeDevice();
  EXPECT(!device->profile().ordersThreadgroups);
  EXPECT_EQ(compiledFiles(), "Stamp.metal Stamp.metal ");  // the first was refused
  const CopyFixture copy(device);
  REQUIRE(submit(device, copy.write).wait());
  EXPECT_EQ(compiledFiles(), "Stamp.metal Stamp.metal KVCacheWrite.metal ");
  const auto options = softmetal::lastCompileOptions();
  EXPECT(options && options->languageVersion == ((3 << 16) | 1));
}

TEST(EmbeddedLibrary, ATextThatFailsIsAnErrorAndTriedAgain) {
  EmbeddedFixture fixture;
  const auto device = fixture.makeDevice();
  REQUIRE(device->registry().shippedLibrary());
  const CopyFixture copy(device);
  softmetal::faults().failAt(softmetal::Call::library);
  CommandEncoder encoder(device);
  EXPECT_ERROR(encoder.encode(copy.write), {.code = ErrorCode::libraryNotFound,
                                            .what = "their embedded text does not compile",
                                            .got = "the library was made to fail; tried:",
                                            .fix = "Build with Xcode"});
  REQUIRE(submit(device, copy.write).wait());
  copy.expectCopied();
}

TEST(EmbeddedLibrary, SaysWhatTakesLongUnlessItIsTurnedOff) {
  EmbeddedFixture fixture;
  const auto compile = [&](double seconds) {
    softmetal::machine().compileSeconds = seconds;
    return errorOutput(fixture.path("said"), [&] { REQUIRE(fixture.makeDevice()->registry().shippedLibrary()); });
  };
  EXPECT_EQ(compile(0), "");
  const std::string said = compile(1.2);
  EXPECT(said.starts_with("MLXNativeKernels: Shaders/Runtime/Stamp.metal is being compiled"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  setenv("MNK_METAL_MESSAGES", "0", 1);
  EXPECT_EQ(compile(1.2), "");
  unsetenv("MNK_METAL_MESSAGES");
}

}  // namespace mnk::test
