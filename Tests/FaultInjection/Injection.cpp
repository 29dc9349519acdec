#include "Injection.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "SoftMetal.hpp"

namespace mnk::inject {

namespace {

std::atomic<bool> isOn = false;
std::atomic<uint64_t> first = 0, end = 0, seenCount = 0, failedCount = 0;
std::atomic<Threads> others = Threads::all;
std::atomic<int64_t> mappings = 0;
constexpr size_t kSmall = 1 << 20;
thread_local bool isTestThread = false;
thread_local bool isArmed = false;
thread_local bool isInSanitizer = false;

bool runsLibrary() {
  if (isInSanitizer) return false;
  const softmetal::Place place = softmetal::place();
  if (isTestThread) return isArmed && place != softmetal::Place::inside;
  return others == Threads::all || place == softmetal::Place::handler;
}

bool mustFail() {
  if (!isOn || !runsLibrary()) return false;
  const uint64_t number = seenCount++;
  if (number < first || number >= end) return false;
  ++failedCount;
  return true;
}

// The loader allocates before the sanitizers can check code, so functions that it calls are compiled without them.
#define MNK_UNCHECKED __attribute__((no_sanitize("address", "undefined")))
volatile bool hasBegun = false;

MNK_UNCHECKED bool mustFailWithoutMemory() {
  if (!hasBegun || !mustFail()) return false;
  errno = ENOMEM;
  return true;
}

// The functions below count it.
void* allocate(size_t bytes, size_t alignment) noexcept {
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocateOrThrow(size_t bytes, size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

int withoutFailures(int (*function)(pthread_t, pthread_attr_t*), pthread_t thread, pthread_attr_t* attributes) {
  isInSanitizer = true;
  const int result = function(thread, attributes);
  isInSanitizer = false;
  return result;
}

}  // namespace

void begin(uint64_t from, uint64_t count, Threads threads) {
  isTestThread = true;
  first = from;
  end = from + count;
  seenCount = failedCount = 0;
  others = threads;
  isOn = true;
  hasBegun = true;
}
void stop() {
  isOn = false;
}
uint64_t seen() {
  return seenCount;
}
uint64_t failed() {
  return failedCount;
}

Armed::Armed() {
  isArmed = true;
}
Armed::~Armed() {
  isArmed = false;
}

int64_t smallMappings() {
  return mappings;
}

}  // namespace mnk::inject

using mnk::inject::allocate;
using mnk::inject::allocateOrThrow;
using mnk::inject::mustFailWithoutMemory;
using mnk::inject::withoutFailures;

// Replaces functions of AddressSanitizer, in which they are weak, also for the shared libraries of the process.
#define MNK_ALLOCATOR(name, parameters, ...)                \
  extern "C" void* ___interceptor_##name parameters;        \
  extern "C" MNK_UNCHECKED void* name parameters noexcept { \
    if (mustFailWithoutMemory()) return nullptr;            \
    return ___interceptor_##name(__VA_ARGS__);              \
  }
MNK_ALLOCATOR(malloc, (size_t bytes), bytes)
MNK_ALLOCATOR(calloc, (size_t count, size_t bytes), count, bytes)
MNK_ALLOCATOR(realloc, (void* memory, size_t bytes), memory, bytes)
MNK_ALLOCATOR(reallocarray, (void* memory, size_t count, size_t bytes), memory, count, bytes)
MNK_ALLOCATOR(memalign, (size_t alignment, size_t bytes), alignment, bytes)
MNK_ALLOCATOR(aligned_alloc, (size_t alignment, size_t bytes), alignment, bytes)
extern "C" int ___interceptor_posix_memalign(void** memory, size_t alignment, size_t bytes);
extern "C" MNK_UNCHECKED int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  return mustFailWithoutMemory() ? ENOMEM : ___interceptor_posix_memalign(memory, alignment, bytes);
}
// The sanitizer's would not call malloc.
extern "C" char* strdup(const char* text) noexcept {
  const size_t bytes = std::strlen(text) + 1;
  void* memory = std::malloc(bytes);
  return memory ? static_cast<char*>(std::memcpy(memory, text, bytes)) : nullptr;
}

// Every new thread calls this in the sanitizer, which ends the process if it fails.
extern "C" int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  static const auto function =
      reinterpret_cast<int (*)(pthread_t, pthread_attr_t*)>(dlsym(RTLD_NEXT, "pthread_getattr_np"));
  return withoutFailures(function, thread, attributes);
}

// Each form of an operator is for objects and for arrays.
#define MNK_NEW(memory, ...)                                                                 \
  void* operator new(size_t bytes __VA_OPT__(, ) __VA_ARGS__) noexcept(noexcept(memory)) {   \
    return memory;                                                                           \
  }                                                                                          \
  void* operator new[](size_t bytes __VA_OPT__(, ) __VA_ARGS__) noexcept(noexcept(memory)) { \
    return memory;                                                                           \
  }
MNK_NEW(allocateOrThrow(bytes, 0))
MNK_NEW(allocateOrThrow(bytes, size_t(alignment)), std::align_val_t alignment)
MNK_NEW(allocate(bytes, 0), const std::nothrow_t&)
MNK_NEW(allocate(bytes, size_t(alignment)), std::align_val_t alignment, const std::nothrow_t&)
#define MNK_DELETE(...)                                                      \
  void operator delete(void* memory __VA_OPT__(, ) __VA_ARGS__) noexcept {   \
    std::free(memory);                                                       \
  }                                                                          \
  void operator delete[](void* memory __VA_OPT__(, ) __VA_ARGS__) noexcept { \
    std::free(memory);                                                       \
  }
MNK_DELETE()
MNK_DELETE(size_t)
MNK_DELETE(std::align_val_t)
MNK_DELETE(size_t, std::align_val_t)
MNK_DELETE(const std::nothrow_t&)
MNK_DELETE(std::align_val_t, const std::nothrow_t&)

// The linker redirects the program's calls of mmap and munmap here, because no sanitizer reports a lost mapping.
extern "C" {
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, size_t bytes);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* memory = __real_mmap(address, bytes, protection, flags, file, offset);
  if (memory != MAP_FAILED && bytes < mnk::inject::kSmall) ++mnk::inject::mappings;
  return memory;
}
int __wrap_munmap(void* address, size_t bytes) {
  if (bytes < mnk::inject::kSmall) --mnk::inject::mappings;
  return __real_munmap(address, bytes);
}
}
