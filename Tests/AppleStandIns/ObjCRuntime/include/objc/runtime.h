// The Objective-C runtime's functions that XCTest calls, for files under ARC. GCC's header cannot be used, because an
// inline function dereferences an `id`. The functions are the same.
#pragma once
#if !__has_feature(objc_arc)
#include_next <objc/runtime.h>
#else
#include <objc/objc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct objc_method* Method;
typedef struct objc_ivar* Ivar;  // in headers of GNUstep

int objc_getClassList(__unsafe_unretained Class* buffer, int count);
const char* class_getName(Class inspected);
Class class_getSuperclass(Class inspected);
Method* class_copyMethodList(Class inspected, unsigned int* count);
SEL method_getName(Method method);
unsigned int method_getNumberOfArguments(Method method);
const char* sel_getName(SEL selector);

#ifdef __cplusplus
}
#endif
#endif
