#pragma once
#include <dispatch/dispatch.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef double CFTimeInterval;
typedef const struct __CFString* CFStringRef;

#ifdef __cplusplus
extern "C" {
#endif
typedef const void* CFTypeRef;
typedef unsigned long CFTypeID;
typedef long CFIndex;
typedef unsigned char Boolean;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef struct __CFDictionary* CFMutableDictionaryRef;
typedef const struct __CFNumber* CFNumberRef;
typedef uint32_t CFStringEncoding;
typedef CFIndex CFNumberType;
// Names of their own in object files: Foundation for Linux contains functions with these names.
#define MNK_STAND_IN(name) __asm__("mnk_stand_in_" #name)
enum { kCFStringEncodingUTF8 = 0x08000100, kCFNumberSInt32Type = 3 };
CFStringRef CFStringCreateWithCString(CFAllocatorRef allocator, const char* text, CFStringEncoding encoding)
    MNK_STAND_IN(CFStringCreateWithCString);
CFTypeID CFGetTypeID(CFTypeRef object) MNK_STAND_IN(CFGetTypeID);
CFTypeID CFNumberGetTypeID(void) MNK_STAND_IN(CFNumberGetTypeID);
Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void* value) MNK_STAND_IN(CFNumberGetValue);
void CFRelease(CFTypeRef object) MNK_STAND_IN(CFRelease);
#ifdef __cplusplus
}
#endif
