// The embedded shader source, which devices compile if there is no compiled library, is complete and compiles.
#include <fmt/ranges.h>

#include <iterator>
#include <set>
#include <sstream>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/ScriptFolder.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Runtime/Stamp.h"

namespace mnk::test {

namespace {

using metal::EmbeddedFile;
#include "Devices/Metal/EmbeddedShaders.inc"

std::string wholeText() {
  std::string whole;
  for (const char* text : kTexts) whole += text;
  return whole;
}

Result<std::shared_ptr<Library>> compiled(std::string text,
                                          const std::shared_ptr<Device>& device = devicesUnderTest().front().device) {
  return device->registry().library({.kind = LibrarySource::Kind::text, .value = std::move(text), .label = "embedded"});
}

// A compiler that does not optimize, because optimizing all shipped kernels takes a minute. Unoptimized frames exceed a
// lane's stack, but no kernel runs here; alignment checks call functions that the executor lacks. The output path stays
// the last argument, where a compiler cache expects it.
constexpr char kQuickCompiler[] =
    "for product; do :; done\n"
    "exec clang++ \"$@\" -O0 -fno-sanitize=alignment -Wno-frame-larger-than -o \"$product\"\n";

// Sorted, without the function that exists only if the device supports fences between threadgroups.
std::string sorted(const std::vector<std::string>& list) {
  std::set<std::string> names(list.begin(), list.end());
  names.erase("ordersThreadgroups");
  return fmt::format("{}", fmt::join(names, " "));
}
std::string namesOf(const Library& library) {
  return sorted(library.functionNames());
}
std::string namesOf(const EmbeddedFile& file) {
  std::istringstream names{std::string(file.functions)};
  return sorted({std::istream_iterator<std::string>(names), {}});
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST(EmbeddedShaders, CompileToTheShippedFunctions) {
  const ScriptFolder scripts;
  const auto device = REQUIRE(host::makeDevice({.compiler = scripts.add("clang++", kQuickCompiler)}));
  const auto shipped = REQUIRE(device->registry().shippedLibrary());
  const auto embedded = REQUIRE(compiled(wholeText(), device));
  EXPECT_EQ(namesOf(*embedded), namesOf(*shipped));
  EXPECT(namesOf(*embedded).find(MNK_SHADER_STAMP) != std::string::npos);
}

// Devices compile single files if there is no compiled library.
TEST(EmbeddedShaders, EachFileCompilesToTheFunctionsItLists) {
  for (const auto& [name, device, hasOwnKernels] : devicesUnderTest()) {
    if (device->kind() == "host" || !hasOwnKernels) continue;
    for (const EmbeddedFile& file : kKernelFiles) {
      const Context context(fmt::format("{}: {}", name, file.path));
      std::string text;
      for (const unsigned char number : file.needs) text += kTexts[number];
      EXPECT_EQ(namesOf(*REQUIRE(compiled(std::move(text), device))), namesOf(file));
    }
  }
}

TEST(EmbeddedShaders, NameOurFilesInErrors) {
  constexpr std::string_view kPlace = "#line 1 \"Shaders/Common/Elements.h\"\n";
  std::string text = wholeText();
  const size_t at = text.find(kPlace);
  EXPECT(at != std::string::npos);
  if (at == std::string::npos) return;
  text.insert(at + kPlace.size(), "#error seeded\n");
  EXPECT_ERROR(compiled(std::move(text)), {.code = ErrorCode::shaderBuild, .got = "Shaders/Common/Elements.h:1"});
}

TEST(EmbeddedShaders, AreSelfContained) {
  for (const std::string& text : {std::string(kWords), wholeText()}) {
    EXPECT_EQ(count(text, "#include \""), 0u);
    EXPECT_EQ(count(text, "#pragma once"), 0u);
    EXPECT_EQ(count(text, "#define instantiate_kernel("), 1u);
    // Text that only Apple's compiler reads.
    EXPECT(count(text, "#ifdef __METAL_VERSION__") > 0);
    EXPECT(count(text, "#include <metal_stdlib>") > 0);
    EXPECT_EQ(count(text, "math_mode(safe)"), 1u);
  }
  EXPECT_EQ(count(wholeText(), MNK_SHADER_STAMP), 1u);
}

}  // namespace mnk::test
