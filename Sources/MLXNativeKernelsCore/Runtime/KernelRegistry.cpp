#include "MLXNativeKernels/KernelRegistry.hpp"

#include <algorithm>

#include "Runtime/RepeatedOp.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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

KernelRegistry::KernelRegistry(Device& device) : device_(device) {}
KernelRegistry::~KernelRegistry() = default;

Result<std::shared_ptr<Library>> KernelRegistry::shippedLibrary() {
  return guarded("KernelRegistry", [&] {
    std::shared_ptr<Slot<Library>> slot;
    {
      std::lock_guard lock(mutex_);
      if (!shipped_) shipped_ = std::make_shared<Slot<Library>>();
      slot = shipped_;
    }
    return slot->get([&] { return device_.makeShippedLibrary(); });
  });
}

Result<std::shared_ptr<Library>> KernelRegistry::library(const LibrarySource& source) {
  return guarded("KernelRegistry", [&] {
    std::shared_ptr<Slot<Library>> slot;
    {
      std::lock_guard lock(mutex_);
      auto& entry = libraries_[{source.kind, source.value}];
      if (!entry) entry = std::make_shared<Slot<Library>>();
      slot = entry;
    }
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
      return Error{.op = "KernelRegistry",
                   .what = "a function constant is given twice",
                   .got = sorted.text(),
                   .expected = fmt::format("one value for index {}", twice->index),
                   .fix = "Give each function constant once."};
    }
    if (!sorted.library) {
      MNK_TRY(auto shipped, shippedLibrary());
      sorted.library = shipped;
    }
    std::shared_ptr<Slot<Pipeline>> slot;
    {
      std::lock_guard lock(mutex_);
      auto& entry = pipelines_[{sorted.library, {sorted.function, sorted.constants}}];
      if (!entry) entry = std::make_shared<Slot<Pipeline>>();
      slot = entry;
    }
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
