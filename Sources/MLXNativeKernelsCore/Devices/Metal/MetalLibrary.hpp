// A library of the Metal device, loaded from a file or compiled from text.
#pragma once
#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

class MetalLibrary final : public Library {
 public:
  MetalLibrary(Owned<MTL::Library> native, std::string label, LibraryOrigin origin);
  ~MetalLibrary() override;

  std::string_view label() const override { return label_; }
  const LibraryOrigin& origin() const override { return origin_; }
  std::vector<std::string> functionNames() const override { return names_; }
  MTL::Library* native() const { return native_.get(); }

 private:
  Owned<MTL::Library> native_;
  std::string label_;
  LibraryOrigin origin_;
  std::vector<std::string> names_;  // sorted
};

Result<std::shared_ptr<MetalLibrary>> loadLibrary(MTL::Device* device, const std::string& path, std::string label,
                                                  LibraryOrigin::Kind origin);
// The text is complete: what it includes beyond Metal's own headers is part of it.
Result<std::shared_ptr<MetalLibrary>> compileText(MTL::Device* device, const std::string& text, std::string label,
                                                  LibraryOrigin origin,
                                                  MTL::LanguageVersion version = MTL::LanguageVersion3_1);
// Kernels of the caller's own, which may use our words without an include.
Result<std::shared_ptr<MetalLibrary>> makeUserLibrary(MTL::Device* device, const LibrarySource& source);

}  // namespace mnk::metal
