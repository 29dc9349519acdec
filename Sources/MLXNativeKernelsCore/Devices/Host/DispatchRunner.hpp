// Runs one dispatch, whose pipeline is of a Host device, to its end. An error names the submission's label.
#pragma once
#include "Devices/Host/HostPipeline.hpp"

namespace mnk::host {

struct DispatchJob {
  const ReadyDispatch& ready;
  const Options& options;
  std::string_view label;  // of the submission

  HostPipeline& pipeline() const { return static_cast<HostPipeline&>(*ready.pipeline); }
  // "kernel copy of library tests", and the submission's label if it has one.
  std::string name() const;
};

Result<void> runDispatch(const DispatchJob& job);

// The steps of runDispatch, for those who look between them.
Arguments bindArguments(const DispatchJob& job);
// `watcher` may be null; with one the threadgroups run on the calling thread.
Result<void> runThreadgroups(const DispatchJob& job, const Arguments& arguments, const Watcher* watcher);

}  // namespace mnk::host
