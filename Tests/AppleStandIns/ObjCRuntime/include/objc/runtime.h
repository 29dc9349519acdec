// The Objective-C runtime's functions for files under ARC. GCC's header cannot be used, because an inline function
// dereferences an `id`. The functions are the same.
#pragma once
#if !__has_feature(objc_arc)
#include_next <objc/runtime.h>
#else
#include <objc/objc.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct objc_method* Method;
typedef struct objc_ivar* Ivar;
typedef struct objc_property* Property;
typedef struct objc_property* objc_property_t;
typedef struct objc_category* Category;
struct objc_method_description {
  SEL name;
  char* types;
};

Class objc_getClass(const char* name);
Class objc_lookUpClass(const char* name);
int objc_getClassList(__unsafe_unretained Class* buffer, int count);
const char* class_getName(Class inspected);
Class class_getSuperclass(Class inspected);
BOOL class_isMetaClass(Class inspected);
size_t class_getInstanceSize(Class inspected);
Method class_getInstanceMethod(Class inspected, SEL selector);
Method class_getClassMethod(Class inspected, SEL selector);
IMP class_getMethodImplementation(Class inspected, SEL selector);
BOOL class_respondsToSelector(Class inspected, SEL selector);
BOOL class_addMethod(Class extended, SEL selector, IMP implementation, const char* types);
Method* class_copyMethodList(Class inspected, unsigned int* count);
SEL method_getName(Method method);
IMP method_getImplementation(Method method);
IMP method_setImplementation(Method method, IMP implementation);
const char* method_getTypeEncoding(Method method);
unsigned int method_getNumberOfArguments(Method method);
const char* sel_getName(SEL selector);
SEL sel_registerName(const char* name);
BOOL sel_isEqual(SEL left, SEL right);

static inline Class object_getClass(id object) {
  return object ? *(__unsafe_unretained Class*)(__bridge void*)object : Nil;
}

#ifdef __cplusplus
}
#endif
#endif
