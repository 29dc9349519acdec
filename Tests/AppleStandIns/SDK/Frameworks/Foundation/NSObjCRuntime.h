// Stubs of basic types and of the macros for headers. Clang checks the same rules as on a Mac: the arity of Swift
// names, the cases of closed enums, and where an attribute is allowed.
#pragma once
#include <TargetConditionals.h>
#include <objc/runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef double NSTimeInterval;
// BOOL is bool, except on Intel Macs.
#if __OBJC_BOOL_IS_BOOL
typedef bool BOOL;
#else
typedef signed char BOOL;
#endif
#define YES __objc_yes
#define NO __objc_no
#ifdef __cplusplus
#define nil nullptr
#define Nil nullptr
#define FOUNDATION_EXPORT extern "C"
#else
#define nil ((void *)0)
#define Nil ((void *)0)
#define FOUNDATION_EXPORT extern
#endif
#define FOUNDATION_EXTERN FOUNDATION_EXPORT
#define NSIntegerMax __LONG_MAX__
#define NSIntegerMin (-__LONG_MAX__ - 1)
#define NSUIntegerMax (__LONG_MAX__ * 2UL + 1)

#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")

#define NS_SWIFT_NAME(name) __attribute__((swift_name(#name)))
#define NS_SWIFT_ASYNC_NAME(name) __attribute__((swift_async_name(#name)))
#define NS_SWIFT_DISABLE_ASYNC __attribute__((swift_async(none)))
#define NS_SWIFT_NOTHROW __attribute__((swift_error(none)))
#define NS_SWIFT_SENDABLE __attribute__((swift_attr("@Sendable")))
#define NS_SWIFT_NONSENDABLE __attribute__((swift_attr("@_nonSendable")))
#define NS_SWIFT_UNAVAILABLE(text) __attribute__((availability(swift, unavailable, message = text)))
// Apple declares this in API notes, outside the headers.
#define NS_SWIFT_BRIDGE(name) __attribute__((swift_bridge(#name)))
#define NS_REFINED_FOR_SWIFT __attribute__((swift_private))
#define NS_TYPED_ENUM __attribute__((swift_wrapper(enum)))
#define NS_TYPED_EXTENSIBLE_ENUM __attribute__((swift_wrapper(struct)))

#define NS_ENUM(type, name)                                        \
  enum __attribute__((enum_extensibility(open))) name : type name; \
  enum name : type
#define NS_CLOSED_ENUM(type, name)                                   \
  enum __attribute__((enum_extensibility(closed))) name : type name; \
  enum name : type
#define NS_ERROR_ENUM(domain, name)                                    \
  enum __attribute__((ns_error_domain(domain))) name : NSInteger name; \
  enum name : NSInteger
// In C++ the type is an integer, so that flags can be combined.
#ifdef __cplusplus
#define NS_OPTIONS(type, name) \
  type name;                   \
  enum __attribute__((flag_enum, enum_extensibility(open))) : name
#else
#define NS_OPTIONS(type, name)                                                \
  enum __attribute__((flag_enum, enum_extensibility(open))) name : type name; \
  enum name : type
#endif

#define NS_DESIGNATED_INITIALIZER __attribute__((objc_designated_initializer))
#define NS_UNAVAILABLE __attribute__((unavailable))
#define NS_REQUIRES_SUPER __attribute__((objc_requires_super))
#define NS_REQUIRES_NIL_TERMINATION __attribute__((sentinel(0, 1)))
#define NS_FORMAT_FUNCTION(text, first) __attribute__((format(__NSString__, text, first)))
#define NS_NOESCAPE __attribute__((noescape))
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define NS_RETURNS_INNER_POINTER __attribute__((objc_returns_inner_pointer))

@class NSString;

typedef NS_ENUM(NSInteger, NSComparisonResult) { NSOrderedAscending = -1L, NSOrderedSame, NSOrderedDescending };

NS_ASSUME_NONNULL_BEGIN

FOUNDATION_EXPORT NSString *NSStringFromClass(Class type);
FOUNDATION_EXPORT NSString *NSStringFromSelector(SEL selector);
FOUNDATION_EXPORT Class _Nullable NSClassFromString(NSString *name);
FOUNDATION_EXPORT void NSLog(NSString *format, ...) NS_FORMAT_FUNCTION(1, 2);

NS_ASSUME_NONNULL_END
