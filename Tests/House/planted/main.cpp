// Runs one kernel with a deliberate mistake, over 64 floats of the heap: planted FUNCTION [THREADS]. A sanitizer must
// end it; it says so when nothing did.
#include <cstdio>
#include <cstdlib>

#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

int main(int argumentCount, char** arguments) {
  if (argumentCount < 2) return 2;
  const uint32_t count = argumentCount > 2 ? static_cast<uint32_t>(std::atoi(arguments[2])) : 64;
  try {
    const auto device = hostDevice({.workers = 2});
    std::vector<float> data(64);
    const auto outcome = runOn(
        device, {.function = arguments[1], .grid = threads({count, 1, 1}, {64, 1, 1}), .buffers = {bytesOf(data)}},
        REQUIRE(host::linkedLibrary("planted")));
    std::printf("%s\n", outcome ? "survived" : outcome.error().message().c_str());
  } catch (const Stop&) {
    std::printf("could not be run\n");
  }
  return 0;
}
