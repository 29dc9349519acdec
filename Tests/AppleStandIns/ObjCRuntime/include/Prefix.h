// What Apple's Foundation has and GNUstep's lacks, mostly macros. Every Objective-C file on Linux includes it first
// (-include), so that the sources need no changes.
#pragma once
#include <stddef.h>

// Swift's view of a declaration. The compiler checks a name's arity and where an attribute is allowed.
#define NS_SWIFT_NAME(name) __attribute__((swift_name(#name)))
#define NS_SWIFT_ASYNC(completionIndex) __attribute__((swift_async(swift_private, completionIndex)))
#define NS_SWIFT_ASYNC_NAME(name) __attribute__((swift_async_name(#name)))
#define NS_SWIFT_ASYNC_THROWS_ON_FALSE(index) __attribute__((swift_async_error(zero_argument, index)))
#define NS_SWIFT_BRIDGED_TYPEDEF __attribute__((swift_bridged_typedef))
#define NS_SWIFT_DISABLE_ASYNC __attribute__((swift_async(none)))
#define NS_SWIFT_MAIN_ACTOR __attribute__((swift_attr("@MainActor")))
#define NS_SWIFT_SENDABLE __attribute__((swift_attr("@Sendable")))
#define NS_SWIFT_NONSENDABLE __attribute__((swift_attr("@_nonSendable")))
#define NS_SWIFT_SENDING __attribute__((swift_attr("sending")))
#define NS_SWIFT_NONISOLATED __attribute__((swift_attr("nonisolated")))
#define NS_SWIFT_NOTHROW __attribute__((swift_error(none)))
#define NS_SWIFT_UI_ACTOR NS_SWIFT_MAIN_ACTOR
// Clang implements this per platform, and Swift is not one here.
#define NS_SWIFT_UNAVAILABLE(message)
#define NS_SWIFT_UNAVAILABLE_FROM_ASYNC(message) __attribute__((swift_attr("@_unavailableFromAsync")))
#define NS_REFINED_FOR_SWIFT __attribute__((swift_private))
#define NS_REFINED_FOR_SWIFT_ASYNC(completionIndex) NS_SWIFT_ASYNC(completionIndex)
#define NS_HEADER_AUDIT_BEGIN(...) _Pragma("clang assume_nonnull begin")
#define NS_HEADER_AUDIT_END(...) _Pragma("clang assume_nonnull end")

// Rules that the compiler enforces.
#define NS_NOESCAPE __attribute__((noescape))
#define NS_REQUIRES_SUPER __attribute__((objc_requires_super))
#define NS_RETURNS_INNER_POINTER __attribute__((objc_returns_inner_pointer))
#define NS_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define NS_DIRECT
#define NS_DIRECT_MEMBERS
#define OBJC_SUBCLASSING_RESTRICTED __attribute__((objc_subclassing_restricted))

// Kinds of enumerations. GNUstep defines NS_ENUM and NS_OPTIONS.
#define NS_CLOSED_ENUM(type, name) \
  enum name : type name;           \
  enum __attribute__((enum_extensibility(closed))) name : type
#define NS_ERROR_ENUM(domain, name) \
  enum name : NSInteger name;       \
  enum __attribute__((ns_error_domain(domain))) name : NSInteger
#define NS_STRING_ENUM __attribute__((swift_wrapper(enum)))
#define NS_EXTENSIBLE_STRING_ENUM __attribute__((swift_wrapper(struct)))
#define NS_TYPED_ENUM __attribute__((swift_wrapper(enum)))
#define NS_TYPED_EXTENSIBLE_ENUM __attribute__((swift_wrapper(struct)))

// Availability on Apple's systems does not matter here.
#define API_AVAILABLE(...)
#define API_DEPRECATED(...)
#define API_DEPRECATED_WITH_REPLACEMENT(...)
#define API_UNAVAILABLE(...)

#ifdef __OBJC__
#import <Foundation/Foundation.h>

#ifndef FOUNDATION_EXTERN
#define FOUNDATION_EXTERN FOUNDATION_EXPORT
#endif
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
