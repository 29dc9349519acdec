// The parts of the Objective-C runtime that metal-cpp needs.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct objc_class* Class;
struct objc_object {
  Class isa;
};
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
#ifdef __OBJC__
@class Protocol;
#else
typedef struct objc_object Protocol;
#endif

Class objc_lookUpClass(const char* name);
Protocol* objc_getProtocol(const char* name);
SEL sel_registerName(const char* name);

#ifdef __cplusplus
}
#endif
