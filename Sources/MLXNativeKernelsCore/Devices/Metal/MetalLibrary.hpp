// Libraries and pipelines of the Metal device, loaded from a file or compiled from text, and where the package's
// kernels come from.
#pragma once
#include <span>

#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

class MetalLibrary : public Library {
 public:
  std::string_view label() const override { return label_; }
  const LibraryOrigin& origin() const override { return origin_; }
  // Borrowed.
  virtual MTL::Device* device() const = 0;
  // The native library that contains this function, one of functionNames(). Borrowed.
  virtual Result<MTL::Library*> nativeWith(std::string_view function) = 0;

 protected:
  MetalLibrary(std::string label, LibraryOrigin origin) : label_(std::move(label)), origin_(std::move(origin)) {}

 private:
  std::string label_;
  LibraryOrigin origin_;
};

// One native library.
class NativeLibrary final : public MetalLibrary {
 public:
  NativeLibrary(Owned<MTL::Library> native, std::string label, LibraryOrigin origin);
  ~NativeLibrary() override;

  std::vector<std::string> functionNames() const override { return names_; }
  MTL::Device* device() const override { return native_->device(); }
  Result<MTL::Library*> nativeWith(std::string_view) override { return native_.get(); }
  MTL::Library* native() const { return native_.get(); }

 private:
  Owned<MTL::Library> native_;
  std::vector<std::string> names_;  // sorted
};

// The caller's kernels, which can use MetalCompat.h without including it.
Result<std::shared_ptr<NativeLibrary>> makeUserLibrary(MTL::Device* device, const LibrarySource& source);

struct Candidate {
  LibraryOrigin::Kind kind;
  std::string path;
};

// Folders where the search starts.
struct SearchRoots {
  std::string image;          // the folder of the image that contains this code
  std::string mainResources;  // of the main bundle
  std::string mainBundle;
  std::string previews;  // where Xcode's previews put bundles
};
SearchRoots searchRoots();
// Every path that is searched, in order and without duplicates.
std::vector<Candidate> candidates(const SearchRoots& roots);

// Finds the package's kernels, in this order: the file that the caller names; the module's bundle; the framework's
// bundle; beside the image that contains this code; the main bundle; the embedded text. A library without a stamp
// belongs to another package and is skipped. A library with another stamp is stale, which is an error. A library with
// fast math is skipped, or refused if the caller names it. `usesText` takes the embedded text without a search.
Result<std::shared_ptr<MetalLibrary>> findShippedLibrary(MTL::Device* device, const std::string& givenPath,
                                                         std::span<const Candidate> places, bool usesText = false);

// The width that kernels are written for.
inline constexpr uint32_t kSimdgroupWidth = 32;
// The size of the buffer that replaces a binding without bytes.
inline constexpr uint32_t kNothingBytes = 4096;

// A function of a Metal library with its constants. Its requirements and limits are read from Metal once.
class MetalPipeline final : public Pipeline {
 public:
  static Result<std::shared_ptr<Pipeline>> make(MTL::Device* device, std::shared_ptr<MetalLibrary> library,
                                                const KernelKey& key);

  MetalPipeline(Owned<MTL::ComputePipelineState> native, std::vector<Argument> arguments);
  ~MetalPipeline() override;

  uint32_t maxThreadsPerThreadgroup() const override { return maxThreads_; }
  uint32_t staticThreadgroupBytes() const override { return staticThreadgroupBytes_; }
  std::span<const Argument> arguments() const override { return arguments_; }
  MTL::ComputePipelineState* native() const { return native_.get(); }

 private:
  Owned<MTL::ComputePipelineState> native_;
  std::vector<Argument> arguments_;
  uint32_t maxThreads_;
  uint32_t staticThreadgroupBytes_;
};

}  // namespace mnk::metal
