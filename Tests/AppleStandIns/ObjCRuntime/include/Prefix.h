// What Apple's Foundation has and GNUstep's lacks, mostly macros. Every Objective-C file on Linux includes it first
// (-include), so that the sources need no changes.
#pragma once
#include <stddef.h>

// Swift's view of a declaration. The compiler checks a name's arity and where an attribute is allowed.
#define NS_SWIFT_NAME(name) __attribute__((swift_name(#name)))
#define NS_SWIFT_ASYNC_NAME(name) __attribute__((swift_async_name(#name)))
#define NS_SWIFT_SENDABLE __attribute__((swift_attr("@Sendable")))
#define NS_TYPED_EXTENSIBLE_ENUM __attribute__((swift_wrapper(struct)))

// A rule that the compiler enforces.
#define NS_NOESCAPE __attribute__((noescape))

// Kinds of enumerations. GNUstep defines NS_ENUM and NS_OPTIONS.
#define NS_CLOSED_ENUM(type, name) \
  enum name : type name;           \
  enum __attribute__((enum_extensibility(closed))) name : type
#define NS_ERROR_ENUM(domain, name) \
  enum name : NSInteger name;       \
  enum __attribute__((ns_error_domain(domain))) name : NSInteger

#ifdef __OBJC__
#import <Foundation/Foundation.h>

typedef NSString *NSErrorUserInfoKey NS_TYPED_EXTENSIBLE_ENUM;
static NSErrorUserInfoKey const NSDebugDescriptionErrorKey __attribute__((unused)) = @"NSDebugDescription";

// GCC's are casts: in C++, (id)0 does not convert to NSError**, and a cast cannot be boxed with @.
#undef nil
#undef Nil
#undef YES
#undef NO
#ifdef __cplusplus
#define nil __null
#define Nil __null
#else
#define nil ((void *)0)
#define Nil ((void *)0)
#endif
#define YES __objc_yes
#define NO __objc_no

// GNUstep's definition is empty.
#undef NS_UNAVAILABLE
#define NS_UNAVAILABLE __attribute__((unavailable))
#endif
