#include <algorithm>
#include <array>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "Runtime/ProbeTypes.h"
#include "Runtime/RepeatedOp.hpp"
#include "Runtime/ScratchPool.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr uint32_t kLanes = 32;
using Findings = std::array<uint32_t, kLanes * kMatrixLayoutFindingsPerLane>;

Result<Findings> probe(const std::shared_ptr<Device>& device) {
  MNK_TRY(auto shape, Shape::make({kLanes, kMatrixLayoutFindingsPerLane}));
  MNK_TRY(auto found, Tensor::zeros(device, DType::u32, shape));
  Dispatch dispatch;
  dispatch.kind = "MatrixLayout";
  dispatch.kernel.function = "matrixLayoutProbe";
  dispatch.buffers.push_back(Binding::whole(kMatrixLayoutFound, found, Access::write));
  dispatch.grid = {.unit = Grid::Unit::threadgroups, .extent = {1, 1, 1}, .threadgroup = {kLanes, 1, 1}};
  CommandEncoder encoder(device, "matrix layout");
  MNK_TRY(encoder.dispatch(dispatch));
  MNK_TRY(auto committed, encoder.commit());
  MNK_TRY(committed.wait());
  Findings findings{};
  MNK_TRY(found.read(std::as_writable_bytes(std::span(findings))));
  return findings;
}

bool isLayout(const Findings& findings, uint32_t (*firstOf)(uint32_t lane)) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t* ofLane = &findings[lane * kMatrixLayoutFindingsPerLane];
    if (ofLane[kMatrixLayoutSecondIsNext] != 1 || ofLane[kMatrixLayoutFirst] != firstOf(lane)) return false;
  }
  return true;
}

// Probes which elements of a simdgroup matrix each lane holds, and waits for the result.
Result<MatrixLayout> probeMatrixLayout(const std::shared_ptr<Device>& device) {
  MNK_TRY(auto findings, guarded("Device", [&] { return probe(device); }));
  const auto rowMajor = [](uint32_t lane) { return 2 * lane; };
  const auto interleaved = [](uint32_t lane) {
    const uint32_t row = ((lane >> 1) & 3) | ((lane >> 2) & 4);
    return row * 8 + ((lane & 1) * 2 + ((lane >> 1) & 4));
  };
  if (isLayout(findings, rowMajor)) return MatrixLayout::rowMajor;
  return isLayout(findings, interleaved) ? MatrixLayout::interleaved : MatrixLayout::unknown;
}

DeviceProfile copyOf(const DeviceProfile& profile) noexcept {
  try {
    return profile;
  } catch (...) {
    return {};
  }
}

// Sizes are rounded up, so that a buffer still fits when the context grows.
constexpr uint64_t kUnit = 64 * 1024;
constexpr uint64_t kLargestKept = 64 * 1024 * 1024;  // larger buffers are freed
constexpr size_t kMaxKept = 4;                       // steps in flight, plus one

}  // namespace

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

std::shared_ptr<Buffer> ScratchPool::takeResting(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const auto fits = std::find_if(resting_.begin(), resting_.end(),
                                 [&](const std::shared_ptr<Buffer>& buffer) { return buffer->length() >= bytes; });
  if (fits == resting_.end()) return nullptr;
  std::shared_ptr<Buffer> taken = std::move(*fits);
  resting_.erase(fits);
  return taken;
}

Result<std::shared_ptr<Buffer>> ScratchPool::acquire(const std::shared_ptr<Device>& device, uint64_t bytes) {
  std::shared_ptr<Buffer> buffer = takeResting(bytes);
  if (buffer) {
    buffer->attach(device);
  } else {
    const uint64_t rounded = bytes <= kLargestKept ? (bytes + kUnit - 1) / kUnit * kUnit : bytes;
    MNK_TRY(auto created, device->makeBuffer(rounded));
    buffer = std::move(created);
  }
  Buffer* acquired = buffer.get();
  return std::shared_ptr<Buffer>(acquired, [pool = weak_from_this(), owned = std::move(buffer)](Buffer*) mutable {
    // The buffer may hold the last reference to the device, which owns the pool.
    const std::shared_ptr<Device> device = owned->device();
    if (const auto open = pool.lock()) open->giveBack(std::move(owned));
    owned.reset();
  });
}

void ScratchPool::giveBack(std::shared_ptr<Buffer> buffer) {
  if (buffer->length() > kLargestKept || !buffer->detach()) return;
  std::shared_ptr<Buffer> dropped;  // freed after the lock is released
  std::lock_guard lock(mutex_);
  // Drops the smallest buffers first, because they fit the fewest plans.
  const auto place = std::lower_bound(resting_.begin(), resting_.end(), buffer->length(),
                                      [](const auto& a, uint64_t length) { return a->length() < length; });
  try {
    resting_.insert(place, std::move(buffer));
  } catch (const std::bad_alloc&) {
    return;  // it goes back to the system
  }
  if (resting_.size() <= kMaxKept) return;
  dropped = std::move(resting_.front());
  resting_.erase(resting_.begin());
}

size_t ScratchPool::idleCount() const {
  std::lock_guard lock(mutex_);
  return resting_.size();
}

// Each slot has its own lock: threads that build the same object wait for each other, others do not.
template <typename T>
struct KernelRegistry::Slot {
  std::mutex mutex;
  std::shared_ptr<T> value;

  template <typename Make>
  Result<std::shared_ptr<T>> get(Make make) {
    std::lock_guard lock(mutex);
    if (value) return value;
    Result<std::shared_ptr<T>> result = make();
    if (result) value = *result;
    return result;
  }
};

template <typename T, typename Place>
std::shared_ptr<KernelRegistry::Slot<T>> KernelRegistry::slotAt(Place place) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Slot<T>>& slot = place();
  if (!slot) slot = std::make_shared<Slot<T>>();
  return slot;
}

KernelRegistry::KernelRegistry(Device& device) : device_(device) {}
KernelRegistry::~KernelRegistry() = default;

Result<std::shared_ptr<Library>> KernelRegistry::shippedLibrary() {
  return guarded("KernelRegistry", [&] {
    const auto slot = slotAt<Library>([&]() -> auto& { return shipped_; });
    return slot->get([&] { return device_.makeShippedLibrary(); });
  });
}

Result<std::shared_ptr<Library>> KernelRegistry::library(const LibrarySource& source) {
  return guarded("KernelRegistry", [&] {
    const auto slot = slotAt<Library>([&]() -> auto& { return libraries_[{source.kind, source.value}]; });
    return slot->get([&] { return device_.makeLibrary(source); });
  });
}

Result<std::shared_ptr<Pipeline>> KernelRegistry::pipeline(const KernelKey& key) {
  return guarded("KernelRegistry", [&]() -> Result<std::shared_ptr<Pipeline>> {
    // Sorts the constants, so that their order does not create a second pipeline.
    KernelKey sorted = key;
    std::sort(sorted.constants.begin(), sorted.constants.end());
    const auto twice = std::adjacent_find(sorted.constants.begin(), sorted.constants.end(),
                                          [](const auto& a, const auto& b) { return a.index == b.index; });
    if (twice != sorted.constants.end()) {
      return invalidArgument("KernelRegistry", "a function constant is given twice", sorted.text(),
                             fmt::format("one value for index {}", twice->index), "Give each function constant once.");
    }
    if (!sorted.library) {
      MNK_TRY(auto shipped, shippedLibrary());
      sorted.library = shipped;
    }
    const auto slot = slotAt<Pipeline>([&]() -> auto& {
      return pipelines_[{sorted.library, {sorted.function, sorted.constants}}];
    });
    return slot->get([&] { return device_.makePipeline(sorted.library, sorted); });
  });
}

size_t KernelRegistry::pipelineCount() const {
  // A slot stays locked while its pipeline is built, so slots are queried only after the registry's lock is released.
  std::vector<std::shared_ptr<Slot<Pipeline>>> slots;
  {
    std::lock_guard lock(mutex_);
    for (const auto& entry : pipelines_) {
      if (entry.second) slots.push_back(entry.second);  // null if its allocation failed
    }
  }
  return static_cast<size_t>(std::count_if(slots.begin(), slots.end(), [](const auto& slot) {
    std::lock_guard lock(slot->mutex);
    return slot->value != nullptr;
  }));
}

void KernelRegistry::clear() noexcept {
  {
    std::lock_guard lock(mutex_);
    shipped_.reset();
    libraries_.clear();
    pipelines_.clear();
  }
  device_.forgetLibrary();
}

}  // namespace mnk
