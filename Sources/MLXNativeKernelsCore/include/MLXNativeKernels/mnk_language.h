// What the headers of the C API need of a compiler: nullability, closed enums and the linkage of C.
#ifndef MNK_LANGUAGE_H
#define MNK_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Closed: Swift can switch over the cases without a default. The size is fixed so that an invalid number is detectable,
// not undefined.
#ifdef __clang__
#define MNK_NULLABLE _Nullable
#define MNK_CLOSED(name) __attribute__((enum_extensibility(closed))) name : uint32_t
#define MNK_NONNULL_BEGIN                                                                          \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wnullability-extension\"") \
      _Pragma("clang assume_nonnull begin")
#define MNK_NONNULL_END _Pragma("clang assume_nonnull end") _Pragma("clang diagnostic pop")
#else
#define MNK_NULLABLE
#define MNK_CLOSED(name) name
#define MNK_NONNULL_BEGIN
#define MNK_NONNULL_END
#endif
#ifdef __cplusplus
#define MNK_HEADER_BEGIN MNK_NONNULL_BEGIN extern "C" {
#define MNK_HEADER_END \
  }                    \
  MNK_NONNULL_END
#else
#define MNK_HEADER_BEGIN MNK_NONNULL_BEGIN
#define MNK_HEADER_END MNK_NONNULL_END
#endif

#endif
