// A kernel with the values of its function constants.
#pragma once
#include "HostLibrary.hpp"

namespace mnk::host {

class HostPipeline final : public Pipeline {
 public:
  // `whole` has all functions and constants that a key may name; `library` has the function that runs.
  static Result<std::shared_ptr<Pipeline>> make(const HostLibrary& whole, std::shared_ptr<HostLibrary> library,
                                                const KernelKey& key, HostOptions::Level limit);

  HostPipeline(std::shared_ptr<HostLibrary> library, const RegisteredKernel* kernel, const Arguments& constants,
               std::vector<Argument> arguments)
      : library_(std::move(library)), kernel_(kernel), constants_(constants), arguments_(std::move(arguments)) {}

  uint32_t maxThreadsPerThreadgroup() const override { return kMaxLanes; }
  std::span<const Argument> arguments() const override { return arguments_; }

  HostLibrary& library() const { return *library_; }
  const RegisteredKernel& kernel() const { return *kernel_; }
  // Only the constants are filled in.
  const Arguments& constants() const { return constants_; }

 private:
  std::shared_ptr<HostLibrary> library_;
  const RegisteredKernel* kernel_;
  Arguments constants_;
  std::vector<Argument> arguments_;
};

}  // namespace mnk::host
