#include "HostTestSupport.hpp"

#include <condition_variable>
#include <future>

#include "HostLibrary.hpp"
#include "HostOptions.hpp"

namespace mnk::test {

std::shared_ptr<Device> hostDevice(const HostOptions& options) {
  return REQUIRE(host::makeDevice(options));
}

std::shared_ptr<Library> conformanceLibrary() {
  return REQUIRE(host::linkedLibrary("conformance"));
}

Result<ReadyDispatch> makeReady(const std::shared_ptr<Device>& device, const HostRun& run,
                                std::shared_ptr<Library> library) {
  ReadyDispatch ready;
  ready.dispatch.kernel = {std::move(library), run.function, run.constants};
  auto pipeline = device->registry().pipeline(ready.dispatch.kernel);
  if (!pipeline) return std::move(pipeline).error();
  ready.pipeline = *pipeline;
  ready.dispatch.grid = run.grid;
  ready.threadgroup = run.grid.threadgroup;
  ready.dispatch.threadgroupMemory = run.threadgroupMemory;
  for (uint32_t i = 0; i < run.buffers.size(); ++i) {
    if (run.buffers[i].empty()) continue;
    auto buffer = device->wrapMemory(run.buffers[i].data(), run.buffers[i].size(), {});
    if (!buffer) return std::move(buffer).error();
    Binding binding;
    binding.index = i;
    binding.buffer = *buffer;
    binding.length = run.buffers[i].size();
    binding.reads = binding.writes = {{.offset = 0, .rowBytes = binding.length}};
    ready.dispatch.buffers.push_back(std::move(binding));
  }
  return ready;
}

void commit(Submission& submission, std::function<void(SubmissionReport)> finished) {
  REQUIRE(submission.prepare(std::move(finished)));
  REQUIRE(submission.commit());
}

Result<void> submit(const std::shared_ptr<Device>& device, std::vector<ReadyDispatch> dispatches, bool withBarriers,
                    const char* label) {
  auto submission = device->makeSubmission(label);
  if (!submission) return std::move(submission).error();
  for (ReadyDispatch& ready : dispatches) {
    if (auto accepted = (*submission)->dispatch(std::move(ready)); !accepted) return accepted;
    if (withBarriers) (*submission)->barrier();
  }
  std::promise<Result<void>> outcome;
  commit(**submission, [&](SubmissionReport report) { outcome.set_value(std::move(report.outcome)); });
  return outcome.get_future().get();
}

Result<void> runOn(const std::shared_ptr<Device>& device, const HostRun& run, std::shared_ptr<Library> library) {
  auto ready = makeReady(device, run, std::move(library));
  if (!ready) return std::move(ready).error();
  return submit(device, {std::move(*ready)});
}

void onEveryHost(const std::function<void(const std::shared_ptr<Device>&)>& body) {
  for (int level = 1; level <= static_cast<int>(host::bestLevel()); ++level) {
    for (const uint64_t seed : {0, 1, 2, 3, 4}) {
      const auto device =
          hostDevice({.workers = seed % 2 ? 1u : 3u,
                      .orderSeed = seed,
                      .checking = seed % 2 == 0 ? HostOptions::Checking::guarded : HostOptions::Checking::off,
                      .level = static_cast<HostOptions::Level>(level),
                      .compiler = {}});
      const Context context(fmt::format("{}, order {}", device->name(), seed));
      body(device);
    }
  }
}

}  // namespace mnk::test
