// Makes each library and each pipeline of a device once and hands it out to any thread. A failed build is not kept, so
// a later call tries again. A library is identified by its source or by its path: a file that changed is read again
// only after clear().
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"

namespace mnk {

class KernelRegistry {
 public:
  explicit KernelRegistry(Device& device);
  ~KernelRegistry();

  Result<std::shared_ptr<Library>> shippedLibrary();
  Result<std::shared_ptr<Library>> library(const LibrarySource& source);
  Result<std::shared_ptr<Pipeline>> pipeline(const KernelKey& key);

  size_t pipelineCount() const;
  // Releases pipelines and libraries; those in use stay valid until their last user is gone.
  void clear() noexcept;

 private:
  template <typename T>
  struct Slot;
  using PipelineKey = std::pair<std::shared_ptr<Library>, std::pair<std::string, std::vector<FunctionConstant>>>;

  Device& device_;
  mutable std::mutex mutex_;
  std::shared_ptr<Slot<Library>> shipped_;  // made by the first use
  std::map<std::pair<LibrarySource::Kind, std::string>, std::shared_ptr<Slot<Library>>> libraries_;
  std::map<PipelineKey, std::shared_ptr<Slot<Pipeline>>> pipelines_;
};

}  // namespace mnk
