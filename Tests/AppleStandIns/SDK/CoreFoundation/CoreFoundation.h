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
enum { kCFStringEncodingUTF8 = 0x08000100, kCFNumberSInt32Type = 3 };
CFStringRef CFStringCreateWithCString(CFAllocatorRef allocator, const char* text, CFStringEncoding encoding);
CFTypeID CFGetTypeID(CFTypeRef object);
CFTypeID CFNumberGetTypeID(void);
Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void* value);
void CFRelease(CFTypeRef object);
#ifdef __cplusplus
}
#endif
