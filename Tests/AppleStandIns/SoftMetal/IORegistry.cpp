// The part of IOKit and CoreFoundation that reads how many cores a GPU has. Each object is one heap number.
#include <IOKit/IOKitLib.h>

#include <cstring>
#include <string>

#include "SoftMetal.hpp"

namespace {

constexpr io_service_t kService = 7;

}  // namespace

CFMutableDictionaryRef IORegistryEntryIDMatching(uint64_t entryID) {
  return reinterpret_cast<CFMutableDictionaryRef>(new uint64_t(entryID));
}
io_service_t IOServiceGetMatchingService(mach_port_t, CFDictionaryRef matching) {  // takes over the dictionary
  CFRelease(matching);
  return softmetal::machine().gpuCoreCount == 0 ? 0 : kService;
}
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key, CFAllocatorRef, IOOptionBits) {
  const bool isKnown = entry == kService && *reinterpret_cast<const uint64_t*>(key) == 'g';
  return isKnown ? new uint64_t(softmetal::machine().gpuCoreCount) : nullptr;
}
int IOObjectRelease(io_object_t) {
  return 0;
}

CFStringRef CFStringCreateWithCString(CFAllocatorRef, const char* text, CFStringEncoding) {
  return reinterpret_cast<CFStringRef>(new uint64_t(std::string(text) == "gpu-core-count" ? 'g' : '?'));
}
CFTypeID CFGetTypeID(CFTypeRef) {
  return CFNumberGetTypeID();
}
CFTypeID CFNumberGetTypeID() {
  return 22;
}
Boolean CFNumberGetValue(CFNumberRef number, CFNumberType, void* value) {
  const auto small = static_cast<int32_t>(*reinterpret_cast<const uint64_t*>(number));
  std::memcpy(value, &small, sizeof small);
  return 1;
}
void CFRelease(CFTypeRef object) {
  delete static_cast<const uint64_t*>(object);
}
