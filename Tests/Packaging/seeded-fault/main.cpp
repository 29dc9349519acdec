// Runs one kernel of Tests/Shaders/Faults.metal on a buffer of a guarded device:
//   seeded FUNCTION THREADGROUPS THREADS ELEMENTS
// A sanitizer must end it; otherwise it reports that nothing did.
#include <cstdio>
#include <cstdlib>

#include "Host/HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

Binding bindingOf(const std::shared_ptr<Device>& device, uint32_t index, uint64_t bytes) {
  Binding binding{.index = index, .buffer = REQUIRE(device->makeBuffer(bytes)), .length = bytes};
  binding.reads = binding.writes = {{.offset = 0, .rowBytes = bytes}};
  return binding;
}

Result<void> run(const char* function, uint32_t threadgroups, uint32_t count, uint64_t elements) {
  const auto device = hostDevice({.workers = 2, .checking = HostOptions::Checking::guarded});
  const Grid grid{Grid::Unit::threadgroups, {threadgroups, 1, 1}, {count, 1, 1}};
  auto ready = REQUIRE(makeReady(device, {.function = function, .grid = grid, .threadgroupMemory = {{0, 128}}}));
  ready.dispatch.buffers = {bindingOf(device, 0, elements * sizeof(float)), bindingOf(device, 1, sizeof(int32_t))};
  const int32_t start = 0x7fffffff;
  std::memcpy(ready.dispatch.buffers[1].buffer->contents(), &start, sizeof start);
  return submit(device, {std::move(ready)});
}

}  // namespace

int main(int argumentCount, char** arguments) {
  if (argumentCount != 5) return 2;
  const auto number = [&](int i) { return static_cast<uint32_t>(std::atoi(arguments[i])); };
  try {
    const auto outcome = run(arguments[1], number(2), number(3), number(4));
    std::printf("%s\n", outcome ? "survived" : outcome.error().message().c_str());
  } catch (const Stop&) {
    std::printf("could not be run\n");
  }
  return 0;
}
