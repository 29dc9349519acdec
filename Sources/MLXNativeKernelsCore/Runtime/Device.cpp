#include "MLXNativeKernels/Device.hpp"

#include <algorithm>

#include "Encoding/Completion.hpp"
#include "Encoding/FailureLog.hpp"
#include "Encoding/MatrixProbe.hpp"
#include "Encoding/ScratchPool.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"

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
  return path.empty() ? from : fmt::format("{} ({})", from, path);
}

Device::Device()
    : registry_(std::make_unique<KernelRegistry>(*this)),
      scratch_(std::make_shared<ScratchPool>()),
      failures_(std::make_shared<FailureLog>()) {}
Device::~Device() = default;

std::optional<Error> Device::lastFailure() const {
  return failures_->last();
}

MatrixLayout Device::matrixLayout() {
  // The probe waits for the device, which may wait for a handler of its own to return.
  std::unique_lock lock(probing_, std::defer_lock);
  if (!isInFinishedHandler()) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return MatrixLayout::unknown;
  }
  if (matrixLayout_ || isInFinishedHandler()) return matrixLayout_.value_or(MatrixLayout::unknown);
  const auto probed = probeMatrixLayout(shared_from_this());
  if (!probed) return MatrixLayout::unknown;  // a later call may succeed
  matrixLayout_ = *probed;
  return *probed;
}

bool Device::ordersThreadgroups() {
  std::lock_guard lock(asking_);
  if (ordersThreadgroups_) return *ordersThreadgroups_;
  const auto found = guarded("Device", [&]() -> Result<bool> {
    auto library = registry().shippedLibrary();
    if (!library) return std::move(library).error();
    const std::vector<std::string> names = (*library)->functionNames();
    return std::find(names.begin(), names.end(), "ordersThreadgroups") != names.end();
  });
  if (!found) return false;  // a later call may find out
  ordersThreadgroups_ = *found;
  return *found;
}

std::shared_ptr<const MeasuredTuning> Device::measuredTuning() const {
  std::lock_guard lock(asking_);
  return measuredTuning_;
}

void Device::useMeasuredTuning(std::shared_ptr<const MeasuredTuning> tuning) {
  std::lock_guard lock(asking_);
  measuredTuning_ = std::move(tuning);
}

}  // namespace mnk
