#include "CAPI/Generated/Read.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

namespace {

Result<mnk_library*> handleFor(Result<std::shared_ptr<Library>> result) {
  if (!result) return std::move(result).error();
  return new mnk_library{*result, (*result)->functionNames()};
}

}  // namespace

mnk_device* mnk_device_make_default(mnk_error_out error) {
  return c::make<mnk_device>(error, {}, [] { return c::handleFor(Device::makeDefault()); });
}

size_t mnk_device_count(void) {
  size_t count = 0;
  c::run(nullptr, {}, [&]() -> Result<void> {
    count = Device::all().size();
    return {};
  });
  return count;
}

mnk_device* mnk_device_make_at(size_t index, mnk_error_out error) {
  return c::make<mnk_device>(error, {}, [&]() -> Result<mnk_device*> {
    const auto devices = Device::all();
    if (index < devices.size()) return c::handleFor(devices[index]);
    return Error{.op = "C API",
                 .what = "there is no such device",
                 .got = fmt::format("index {}", index),
                 .expected = fmt::format("less than {}", devices.size()),
                 .fix = "Ask mnk_device_count first."};
  });
}

mnk_device* mnk_device_make_host(const mnk_host_options* options, mnk_error_out error) {
  return c::make<mnk_device>(error, {}, [&]() -> Result<mnk_device*> {
    if (!options) return c::nullArgument("options");
    HostOptions input;
    MNK_TRY(c::read(input, *options, {nullptr, "options"}));
    return c::handleFor(host::makeDevice(input));
  });
}

void mnk_device_release(mnk_device* device) {
  delete device;
}
const char* mnk_device_kind(const mnk_device* device) {
  return device ? device->kind.c_str() : "";
}
const char* mnk_device_name(const mnk_device* device) {
  return device ? device->name.c_str() : "";
}
mnk_error* mnk_device_copy_last_failure(const mnk_device* device) {
  mnk_error* last = nullptr;
  c::run(&last, {}, [&]() -> Result<void> {
    auto failure = device ? device->device->lastFailure() : std::nullopt;
    return failure ? Result<void>(std::move(*failure)) : Result<void>();
  });
  return last;
}

mnk_library* mnk_library_make_from_text(mnk_device* device, const char* text, const char* label, mnk_error_out error) {
  return c::make<mnk_library>(error, {{device, "device"}}, [&]() -> Result<mnk_library*> {
    if (!text || !label) return c::nullArgument(text ? "label" : "text");
    return handleFor(
        device->device->registry().library({.kind = LibrarySource::Kind::text, .value = text, .label = label}));
  });
}

mnk_library* mnk_library_make_from_path(mnk_device* device, const char* path, mnk_error_out error) {
  return c::make<mnk_library>(error, {{device, "device"}}, [&]() -> Result<mnk_library*> {
    if (!path) return c::nullArgument("path");
    return handleFor(
        device->device->registry().library({.kind = LibrarySource::Kind::path, .value = path, .label = path}));
  });
}

mnk_library* mnk_library_make_shipped(mnk_device* device, mnk_error_out error) {
  return c::make<mnk_library>(error, {{device, "device"}},
                              [&] { return handleFor(device->device->registry().shippedLibrary()); });
}

void mnk_device_clear_kernels(mnk_device* device) {
  if (device) device->device->registry().clear();
}

void mnk_library_release(mnk_library* library) {
  delete library;
}
size_t mnk_library_function_count(const mnk_library* library) {
  return library ? library->functions.size() : 0;
}
mnk_library_origin mnk_library_get_origin(const mnk_library* library) {
  return library ? static_cast<mnk_library_origin>(library->library->origin().kind) : MNK_ORIGIN_PROGRAM;
}
const char* mnk_library_origin_path(const mnk_library* library) {
  return library ? library->library->origin().path.c_str() : "";
}
const char* mnk_library_function_name(const mnk_library* library, size_t index) {
  return library && index < library->functions.size() ? library->functions[index].c_str() : "";
}
