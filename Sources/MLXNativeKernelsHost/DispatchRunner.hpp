// Runs one dispatch of a Host device's pipeline to completion. An error names the submission's label.
#pragma once
#include "HostPipeline.hpp"

namespace mnk::host {

struct DispatchJob {
  const ReadyDispatch& ready;
  std::span<const BoundMemory> memory;  // of its bindings
  const HostOptions& options;
  std::string_view label;  // of the submission

  HostPipeline& pipeline() const { return static_cast<HostPipeline&>(*ready.pipeline); }
  std::string name() const;          // "kernel copy of library tests"
  std::string inSubmission() const;  // " in 'step'", or empty without a label
  std::string op() const;            // the op that errors name
};

Result<void> runDispatch(const DispatchJob& job);

// The steps of runDispatch, for checked and guarded runs.
Arguments bindArguments(const DispatchJob& job);
// `watcher` may be null; with one, the threadgroups run on the calling thread.
Result<void> runThreadgroups(const DispatchJob& job, const Arguments& arguments, const Watcher* watcher);

}  // namespace mnk::host
