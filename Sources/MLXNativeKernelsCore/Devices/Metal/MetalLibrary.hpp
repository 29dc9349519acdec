// A library of the Metal device, loaded from a file or compiled from text.
#pragma once
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

Result<std::shared_ptr<NativeLibrary>> loadLibrary(MTL::Device* device, const std::string& path, std::string label,
                                                   LibraryOrigin::Kind origin);
// The text must be complete, except for Metal's own headers.
Result<std::shared_ptr<NativeLibrary>> compileText(MTL::Device* device, const std::string& text, std::string label,
                                                   LibraryOrigin origin,
                                                   MTL::LanguageVersion version = MTL::LanguageVersion3_1);
// The caller's kernels, which can use MetalCompat.h without including it.
Result<std::shared_ptr<NativeLibrary>> makeUserLibrary(MTL::Device* device, const LibrarySource& source);

}  // namespace mnk::metal
