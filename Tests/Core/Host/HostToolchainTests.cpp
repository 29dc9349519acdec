// The Host device with the tools of another system: a Mac's compiler and symbolizer.
#include "Harness/EnvironmentVariable.hpp"
#include "Harness/ScriptFolder.hpp"
#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

// clang++, after it has accepted these flags for a Mac. That call ends with -###, which compiles nothing, so a compiler
// cache ignores it.
constexpr char kMacCompiler[] =
    "said=$(clang++ \"$@\" -target arm64-apple-macos14 -### 2>&1) || { echo \"$said\"; exit 1; }\n"
    "exec clang++ \"$@\"\n";

constexpr char kShifts[] =
    "kernel void shifts(device uint* data [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
    "  data[i] = data[i + 4];\n}\nexport_kernel(shifts)\n";

Result<void> shift(const std::shared_ptr<Device>& device, size_t elements) {
  const auto library = device->registry().library({LibrarySource::Kind::text, kShifts, "two words"});
  if (!library) return library.error();
  std::vector<uint32_t> data(elements);
  return runOn(device, {.function = "shifts", .grid = threads(4, 1), .buffers = {bytesOf(data)}}, *library);
}

}  // namespace

TEST(HostToolchain, UsesNoFlagThatAMacRefuses) {
  const ScriptFolder scripts;
  const std::string compiler = scripts.add("clang++", kMacCompiler);
  const auto plain = shift(hostDevice({.compiler = compiler}), 8);
  if (!plain) fail(__FILE__, __LINE__, plain.error().message());
  const auto perturbed = shift(hostDevice({.perturbsResults = true, .compiler = compiler}), 8);
  if (!perturbed) fail(__FILE__, __LINE__, perturbed.error().message());
  EXPECT_ERROR(shift(hostDevice({.checking = HostOptions::Checking::full, .compiler = compiler}), 4),
               {.code = ErrorCode::deviceFault, .what = "shifts", .got = "two words:2"});
}

#if defined(__linux__)  // a Mac has the real atos and no addr2line
TEST(HostToolchain, ParsesAtosOutput) {
  const ScriptFolder scripts;
  const std::string search = std::getenv("PATH");
  for (const char* name : {"llvm-symbolizer", "addr2line"}) scripts.add(name, "exit 1\n");
  // The output format of the real atos.
  scripts.add("atos", fmt::format("[ \"$1 $3\" = '-o -offset' ] || exit 1\nPATH='{}'\nobject=$2\nshift 3\n"
                                  "addr2line -e \"$object\" \"$@\" | sed 's|.*/||; s|.*|shifts(unsigned int*, unsigned "
                                  "int) (in Module.so) (&)|'\n",
                                  search));
  const EnvironmentVariable path("PATH", fmt::format("{}:{}", scripts.path(), search));
  EXPECT_ERROR(shift(hostDevice({.checking = HostOptions::Checking::full}), 4),
               {.code = ErrorCode::deviceFault, .what = "shifts", .got = "two words:2"});
  // Its output for unknown addresses.
  scripts.add("atos", "shift 3\nfor offset; do echo \"$offset (in Module.so)\"; done\n");
  EXPECT_ERROR(shift(hostDevice({.checking = HostOptions::Checking::full}), 4),
               {.code = ErrorCode::deviceFault, .what = "shifts", .got = "offset 0x"});
}
#endif
