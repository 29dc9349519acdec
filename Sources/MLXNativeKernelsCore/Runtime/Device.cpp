#include "MLXNativeKernels/Device.hpp"

#include <algorithm>

#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Runtime/Completion.hpp"
#include "Runtime/FailureLog.hpp"
#include "Runtime/MatrixProbe.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Runtime/ScratchPool.hpp"
#include "Support/Errors.hpp"

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

template <typename Change>
void Device::learn(const Change& change) {
  {
    std::lock_guard lock(asking_);
    change();
    known_.reset();
  }
  knownPlans_->clear();
}

namespace {

DeviceProfile copyOf(const DeviceProfile& profile) noexcept {
  try {
    return profile;
  } catch (...) {
    return {};
  }
}

}  // namespace

DeviceProfile Device::profile() noexcept {
  return copyOf(*sharedProfile());
}
DeviceProfile Device::probe() noexcept {
  return copyOf(*sharedProbe());
}

std::shared_ptr<const DeviceProfile> Device::sharedProfile() noexcept {
  try {
    {
      std::lock_guard lock(asking_);
      if (known_) return known_;
    }
    DeviceProfile profile = basicProfile();
    const auto orders = ordersThreadgroups();
    profile.ordersThreadgroups = orders.value_or(false);
    std::lock_guard lock(asking_);
    profile.matrixLayout = matrixLayout_.value_or(MatrixLayout::unknown);
    profile.measuredTuning = measuredTuning_;
    auto shared = std::make_shared<const DeviceProfile>(std::move(profile));
    if (orders && orders == ordersThreadgroups_) known_ = shared;
    return shared;
  } catch (...) {
    static const DeviceProfile unknown;
    return {std::shared_ptr<const void>(), &unknown};
  }
}

std::shared_ptr<const DeviceProfile> Device::sharedProbe() noexcept {
  const auto isProbed = [&] {
    std::lock_guard lock(asking_);
    return matrixLayout_.has_value();
  };
  // The probe waits for the device, which may itself be waiting for this thread's handler to return.
  if (!isProbed() && !isInFinishedHandler()) {
    try {
      std::lock_guard lock(probing_);
      if (isProbed()) return sharedProfile();
      const auto probed = probeMatrixLayout(shared_from_this());
      if (probed) learn([&] { matrixLayout_ = *probed; });
    } catch (...) {  // a later call may succeed
    }
  }
  return sharedProfile();
}

// The shipped library exports this function only if it was compiled with device-scope fences.
std::optional<bool> Device::ordersThreadgroups() {
  {
    std::lock_guard lock(asking_);
    if (ordersThreadgroups_) return ordersThreadgroups_;
  }
  // Does not hold the lock: a library may have to be compiled first.
  const auto found = guarded("Device", [&]() -> Result<bool> {
    MNK_TRY(auto library, registry().shippedLibrary());
    const std::vector<std::string> names = library->functionNames();
    return std::find(names.begin(), names.end(), "ordersThreadgroups") != names.end();
  });
  if (!found) return std::nullopt;  // a later call may find out
  learn([&] { ordersThreadgroups_ = *found; });
  return *found;
}

void Device::useMeasuredTuning(std::shared_ptr<const MeasuredTuning> tuning) {
  learn([&] { measuredTuning_ = std::move(tuning); });
}

void Device::forgetLibrary() noexcept {
  learn([&] { ordersThreadgroups_.reset(); });
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
