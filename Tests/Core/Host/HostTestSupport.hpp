// Runs kernels of the test library on Host devices with chosen options.
#pragma once
#include <bit>
#include <cstring>
#include <vector>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::test {

// A dispatch in short form.
struct HostRun {
  std::string function;
  Grid grid;                                       // including the threadgroup
  std::vector<std::span<std::byte>> buffers = {};  // at indices 0, 1, …; empty spans are not bound
  std::vector<FunctionConstant> constants = {};
  std::vector<ThreadgroupMemory> threadgroupMemory = {};
};

template <typename T>
std::span<std::byte> bytesOf(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

inline Grid threads(Size3 extent, Size3 threadgroup) {
  return {Grid::Unit::threads, extent, threadgroup};
}
inline Grid threads(uint32_t count, uint32_t threadgroup) {
  return threads({count, 1, 1}, {threadgroup, 1, 1});
}
inline Grid threads(uint32_t count) {  // of one threadgroup
  return threads(count, count);
}

std::shared_ptr<Device> hostDevice(const HostOptions& options);
std::shared_ptr<Library> conformanceLibrary();

// Prepares and commits.
void commit(Submission& submission, std::function<void(SubmissionReport)> finished);
// Wraps the buffers, so that a sanitizer checks the vectors' bounds.
Result<ReadyDispatch> makeReady(const std::shared_ptr<Device>& device, const HostRun& run,
                                std::shared_ptr<Library> library = conformanceLibrary());
// Submits and waits.
Result<void> submit(const std::shared_ptr<Device>& device, std::vector<ReadyDispatch> dispatches,
                    bool withBarriers = true, const char* label = "test");
Result<void> runOn(const std::shared_ptr<Device>& device, const HostRun& run,
                   std::shared_ptr<Library> library = conformanceLibrary());

// Runs the body with a device for every available instruction set and several orders of lanes; failures name both.
void onEveryHost(const std::function<void(const std::shared_ptr<Device>&)>& body);

// Compares the first expected.size() elements.
template <typename T>
void expectAll(const std::vector<T>& got, const std::vector<T>& expected, std::string_view what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got[i] != expected[i]) {
      fail(__FILE__, __LINE__, fmt::format("{} {}: got {}, expected {}", what, i, got[i], expected[i]));
    }
  }
}

}  // namespace mnk::test
