// Functions that the compiler calls in a module compiled for checked execution: before every load and store
// (-fsanitize=address without its runtime library), and on undefined arithmetic, indices and pointers
// (-fsanitize=undefined and related checks, of which only the callbacks are used). The compiler defines their names and
// arguments.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "Executor/Worker.h"

#if MNK_HOST_CHECKED

namespace mnk::host::check {

namespace {

MNK_HOST_RUNTIME void access(AccessKind kind, const void* address, size_t bytes, const void* place) {
  const Watcher* watch = watcher();
  if (!watch) return;
  const Lane* lane = running.lane;
  const sanitizer::StackRange own = stackOf(lane);
  if (address >= own.low && address < lane->stack) return;
  if (watch->access(watch->state, kind, address, bytes, lane->linear, place)) return;
  endHere();
}

}  // namespace

MNK_HOST_RUNTIME void endHere() {
  if (watcher()) stopDispatch(running.group->worker, FaultKind::stopped, "the dispatch ended there");
}

MNK_HOST_RUNTIME void mistakeAt(const void* place, const char* text) {
  if (const Watcher* watch = watcher()) watch->mistake(watch->state, nullptr, 0, place, running.lane->linear, text);
}

MNK_HOST_RUNTIME void atomicAccess(AccessKind kind, const volatile void* address, size_t bytes, const void* place) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) mistakeAt(place, "an atomic object is misaligned");
  access(kind, const_cast<const void*>(address), bytes, place);
}

MNK_HOST_RUNTIME void mistake(const char* file, uint32_t line, const char* format, ...) {
  const Watcher* watch = watcher();
  if (!watch) return;
  char text[200];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  watch->mistake(watch->state, file, line, nullptr, running.lane->linear, text);
}

}  // namespace mnk::host::check

using mnk::host::AccessKind;
using mnk::host::check::access;
using mnk::host::check::endHere;
using mnk::host::check::mistake;

extern "C" {

#define MNK_HOST_CALLBACKS(n)                                            \
  MNK_HOST_RUNTIME void __asan_load##n##_noabort(const void* address) {  \
    access(AccessKind::read, address, n, __builtin_return_address(0));   \
  }                                                                      \
  MNK_HOST_RUNTIME void __asan_store##n##_noabort(const void* address) { \
    access(AccessKind::write, address, n, __builtin_return_address(0));  \
  }
MNK_HOST_CALLBACKS(1)
MNK_HOST_CALLBACKS(2)
MNK_HOST_CALLBACKS(4)
MNK_HOST_CALLBACKS(8)
MNK_HOST_CALLBACKS(16)
#undef MNK_HOST_CALLBACKS

MNK_HOST_RUNTIME void __asan_loadN_noabort(const void* address, size_t bytes) {
  access(AccessKind::read, address, bytes, __builtin_return_address(0));
}
MNK_HOST_RUNTIME void __asan_storeN_noabort(const void* address, size_t bytes) {
  access(AccessKind::write, address, bytes, __builtin_return_address(0));
}
MNK_HOST_RUNTIME void __asan_handle_no_return() {}
MNK_HOST_RUNTIME void* __asan_memset(void* to, int value, size_t bytes) {
  access(AccessKind::write, to, bytes, __builtin_return_address(0));
  return memset(to, value, bytes);
}
MNK_HOST_RUNTIME void* __asan_memcpy(void* to, const void* from, size_t bytes) {
  access(AccessKind::read, from, bytes, __builtin_return_address(0));
  access(AccessKind::write, to, bytes, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
MNK_HOST_RUNTIME void* __asan_memmove(void* to, const void* from, size_t bytes) {
  access(AccessKind::read, from, bytes, __builtin_return_address(0));
  access(AccessKind::write, to, bytes, __builtin_return_address(0));
  return memmove(to, from, bytes);
}

struct UndefinedLocation {
  const char* file;
  uint32_t line, column;
};
struct UndefinedType {
  uint16_t kind;  // 0: integer
  uint16_t info;  // for an integer: bit 0 is set if it is signed
  char name[1];
};
struct UndefinedValue {
  UndefinedLocation where;
  const UndefinedType* type;  // of an arithmetic operation, an array, or a value to convert
  const UndefinedType* to;    // of a conversion
};
struct UndefinedPointer {
  UndefinedLocation where;
  const UndefinedType* type;
  unsigned char logAlignment;
  unsigned char use;
};

MNK_HOST_RUNTIME void __ubsan_handle_add_overflow(const UndefinedValue* data, const void*, const void*) {
  mistake(data->where.file, data->where.line, "an addition overflows %s", data->type->name);
}
MNK_HOST_RUNTIME void __ubsan_handle_mul_overflow(const UndefinedValue* data, const void*, const void*) {
  mistake(data->where.file, data->where.line, "a multiplication overflows %s", data->type->name);
}

// 0u - 1u is a common way to write the largest value; used as an index, it is reported as out of bounds.
MNK_HOST_RUNTIME void __ubsan_handle_sub_overflow(const UndefinedValue* data, const void*, const void*) {
  if (!(data->type->info & 1)) return;
  mistake(data->where.file, data->where.line, "a subtraction overflows %s", data->type->name);
}
MNK_HOST_RUNTIME void __ubsan_handle_negate_overflow(const UndefinedValue* data, const void*) {
  if (!(data->type->info & 1)) return;
  mistake(data->where.file, data->where.line, "a negation overflows %s", data->type->name);
}
MNK_HOST_RUNTIME void __ubsan_handle_divrem_overflow(const UndefinedValue* data, const void*, const void*) {
  mistake(data->where.file, data->where.line, "a division of %s by zero, or one that overflows", data->type->name);
  endHere();
}
MNK_HOST_RUNTIME void __ubsan_handle_shift_out_of_bounds(const UndefinedValue* data, const void*, const void*) {
  mistake(data->where.file, data->where.line, "a shift of %s by more bits than it has", data->type->name);
}
MNK_HOST_RUNTIME void __ubsan_handle_out_of_bounds(const UndefinedValue* data, const void* index) {
  mistake(data->where.file, data->where.line, "index %zd is outside of %s", reinterpret_cast<ptrdiff_t>(index),
          data->type->name);
  endHere();
}
// An index through a pointer to one of the lane's arrays or to a table.
MNK_HOST_RUNTIME void __ubsan_handle_local_out_of_bounds() {
  mnk::host::check::mistakeAt(__builtin_return_address(0), "an index is outside of its array");
  endHere();
}
MNK_HOST_RUNTIME void __ubsan_handle_implicit_conversion(const UndefinedValue* data, const void*, const void*) {
  mistake(data->where.file, data->where.line, "a value of type %s does not fit into %s", data->type->name,
          data->to->name);
}
MNK_HOST_RUNTIME void __ubsan_handle_type_mismatch_v1(const UndefinedPointer* data, const void* address) {
  const size_t alignment = size_t(1) << data->logAlignment;
  if (!address) {
    mistake(data->where.file, data->where.line, "a null pointer to %s is used", data->type->name);
  } else {
    mistake(data->where.file, data->where.line, "%s needs an alignment of %zu bytes; the address is %zu bytes past one",
            data->type->name, alignment, reinterpret_cast<uintptr_t>(address) % alignment);
  }
  endHere();
}

}  // extern "C"

#endif
