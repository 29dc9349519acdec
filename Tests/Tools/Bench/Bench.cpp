#include "Bench.h"

#include "Decode/Decode.hpp"
#include "Harness/Arguments.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Timing.hpp"

using namespace mnk;
using namespace mnk::bench;

namespace {

constexpr std::string_view kAbout =
    "bench               measures all of the following\n"
    "bench ops           measures ops on the Host device against memcpy, and the cost of encoding\n"
    "bench steps         measures the cost of encoding decode steps from Swift\n"
    "bench decode        measures FlashDecode on the devices here against reads of the same bytes and plain C++, with";

void measureOps() {
  fmt::print("{}; the least of {} interleaved runs; a ratio is kernel time over the other's\n",
             need(host::makeDevice({}))->name(), kRepetitions);
  benchOps();
  benchLayer();
  fmt::print("\n");
}

}  // namespace

int bench_run(int argc, char* const* argv) {
  const std::string_view part = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
  const std::span given(argv + (part.empty() ? 1 : 2), argv + argc);
  DecodeOptions decode;
  if (const auto status = arguments::readArguments(kAbout, decode.table(), given)) return *status;
  const bool hasOptions = part == "decode", isPart = hasOptions || part == "ops" || part.empty();
  if (!isPart || (!hasOptions && !given.empty())) {
    fmt::print(stderr, "bench takes ops, steps or decode, and options only after decode. See --help.\n");
    return 2;
  }
  try {
    if (part != "decode") measureOps();
    return part == "ops" || measureDecode(decode) ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    return 1;
  }
}
