// A library of the Host device: the kernels of a module that carry one label.
#pragma once
#include <mutex>
#include <optional>

#include "Devices/Host/Runtime/Module.h"
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

inline constexpr std::string_view kShippedLabel = "MLXNativeKernels";

class HostLibrary final : public Library {
 public:
  // `sharedObject` is what dlopen gave for a module compiled at run time, else null.
  HostLibrary(std::string label, std::string registeredLabel, const Module& module, void* sharedObject);
  ~HostLibrary() override;

  std::string_view label() const override { return label_; }
  std::vector<std::string> functionNames() const override;

  // Compiled for the best instruction set up to `limit`; null where there is none.
  const RegisteredKernel* find(std::string_view function, Level limit) const;
  // The constants declared with this index.
  std::vector<const RegisteredConstant*> constants(uint32_t index) const;
  const Module& module() const { return module_; }

  // Workers are kept for later dispatches. Null: out of memory.
  Worker* takeWorker();
  void giveBack(Worker* worker);

 private:
  bool isOurs(const char* registeredLabel) const { return registeredLabel_ == registeredLabel; }

  std::string label_;
  std::string registeredLabel_;
  const Module& module_;
  void* sharedObject_;
  std::mutex mutex_;
  std::vector<Worker*> workers_;
};

}  // namespace mnk::host
