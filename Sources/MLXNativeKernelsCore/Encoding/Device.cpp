#include "MLXNativeKernels/Device.hpp"

#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Support/Format.hpp"

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

Device::Device() : registry_(std::make_unique<KernelRegistry>(*this)) {}
Device::~Device() = default;

}  // namespace mnk
