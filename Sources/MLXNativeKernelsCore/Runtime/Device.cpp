#include "MLXNativeKernels/Device.hpp"

#include <algorithm>

#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Runtime/Completion.hpp"
#include "Runtime/FailureLog.hpp"
#include "Runtime/MatrixProbe.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Runtime/ScratchPool.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

std::string_view name(LibraryOrigin::Kind kind) {
  switch (kind) {
    case LibraryOrigin::Kind::program:
      return "the program";
    case LibraryOrigin::Kind::givenText:
      return "given text";
    case LibraryOrigin::Kind::givenFile:
      return "given file";
    case LibraryOrigin::Kind::moduleBundle:
      return "module bundle";
    case LibraryOrigin::Kind::frameworkBundle:
      return "framework bundle";
    case LibraryOrigin::Kind::besideCode:
      return "beside the code";
    case LibraryOrigin::Kind::mainBundle:
      return "main bundle";
    case LibraryOrigin::Kind::embeddedText:
      return "embedded text";
  }
  return "unknown origin";
}

std::string LibraryOrigin::text() const {
  const std::string from(name(kind));
  if (kind == Kind::embeddedText && !path.empty()) {
    return fmt::format("{}, because {} was compiled with fast math", from, path);
  }
  return path.empty() ? from : fmt::format("{} ({})", from, path);
}

Device::Device()
    : registry_(std::make_unique<KernelRegistry>(*this)),
      scratch_(std::make_shared<ScratchPool>()),
      knownPlans_(std::make_unique<PlanCache>()),
      failures_(std::make_shared<FailureLog>()) {}
Device::~Device() = default;

std::optional<Error> Device::lastFailure() const {
  return failures_->last();
}

DeviceProfile Device::profile() noexcept {
  try {
    DeviceProfile profile = basicProfile();
    profile.ordersThreadgroups = ordersThreadgroups();
    std::lock_guard lock(asking_);
    profile.matrixLayout = matrixLayout_.value_or(MatrixLayout::unknown);
    profile.measuredTuning = measuredTuning_;
    return profile;
  } catch (...) {
    return {};
  }
}

DeviceProfile Device::probe() noexcept {
  // The probe waits for the device, which may itself be waiting for this thread's handler to return.
  if (!isInFinishedHandler()) {
    try {
      std::lock_guard lock(probing_);
      const auto isKnown = [&] {
        std::lock_guard lock(asking_);
        return matrixLayout_.has_value();
      };
      if (!isKnown()) {
        const auto probed = probeMatrixLayout(shared_from_this());
        if (probed) {
          {
            std::lock_guard lock(asking_);
            matrixLayout_ = *probed;
          }
          knownPlans_->clear();
        }
      }
    } catch (...) {  // a later call may succeed
    }
  }
  return profile();
}

// The shipped library exports this function only if it was compiled with device-scope fences.
bool Device::ordersThreadgroups() {
  {
    std::lock_guard lock(asking_);
    if (ordersThreadgroups_) return *ordersThreadgroups_;
  }
  // Does not hold the lock: a library may have to be compiled first.
  const auto found = guarded("Device", [&]() -> Result<bool> {
    MNK_TRY(auto library, registry().shippedLibrary());
    const std::vector<std::string> names = library->functionNames();
    return std::find(names.begin(), names.end(), "ordersThreadgroups") != names.end();
  });
  if (!found) return false;  // a later call may find out
  {
    std::lock_guard lock(asking_);
    ordersThreadgroups_ = *found;
  }
  knownPlans_->clear();
  return *found;
}

void Device::useMeasuredTuning(std::shared_ptr<const MeasuredTuning> tuning) {
  {
    std::lock_guard lock(asking_);
    measuredTuning_ = std::move(tuning);
  }
  knownPlans_->clear();
}

void Device::forgetLibrary() noexcept {
  {
    std::lock_guard lock(asking_);
    ordersThreadgroups_.reset();
  }
  knownPlans_->clear();
}

ReadyDispatch withMemory(const ReadyDispatch& shared, std::span<const BoundMemory> memory) {
  ReadyDispatch whole = shared;
  for (size_t i = 0; i < memory.size(); ++i) {
    whole.dispatch.buffers[i].buffer = memory[i].buffer;
    whole.dispatch.buffers[i].offset = memory[i].offset;
  }
  return whole;
}

std::vector<BoundMemory> takeMemory(Dispatch& dispatch) {
  std::vector<BoundMemory> memory;
  for (Binding& binding : dispatch.buffers) memory.push_back({std::move(binding.buffer), binding.offset});
  return memory;
}

Result<void> Submission::dispatch(ReadyDispatch ready) {
  std::vector<BoundMemory> memory = takeMemory(ready.dispatch);
  return dispatch(std::make_shared<const ReadyDispatch>(std::move(ready)), memory);
}

}  // namespace mnk
