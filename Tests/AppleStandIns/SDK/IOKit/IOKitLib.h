#pragma once
#include <CoreFoundation/CoreFoundation.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef unsigned int mach_port_t, io_object_t, io_service_t, io_registry_entry_t, IOOptionBits;
CFMutableDictionaryRef IORegistryEntryIDMatching(uint64_t entryID);
io_service_t IOServiceGetMatchingService(mach_port_t mainPort, CFDictionaryRef matching);
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key, CFAllocatorRef allocator,
                                          IOOptionBits options);
int IOObjectRelease(io_object_t object);
#ifdef __cplusplus
}
#endif
