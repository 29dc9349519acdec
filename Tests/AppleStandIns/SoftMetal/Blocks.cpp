// The functions that clang calls to copy and release blocks, with the layout that clang documents. Hidden, so that
// shared libraries with another blocks runtime keep using that one.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

enum BlockFlags : uint32_t {
  kReferenceStep = 2,
  kReferences = 0xfffe,
  kIsOnHeap = 1u << 24,
  kHasHelpers = 1u << 25,
  kIsGlobal = 1u << 28,
};
constexpr int kFieldIsBlock = 7, kFieldIsByref = 8, kFieldIsWeakByref = 24;

struct Descriptor {
  unsigned long reserved, size;
  void (*copy)(void*, const void*);  // these two only with kHasHelpers
  void (*dispose)(const void*);
};

struct Block {
  void* isa;
  uint32_t flags;
  int reserved;
  void (*invoke)();
  const Descriptor* descriptor;
};

// A __block variable. The first copy of a block moves it to the heap.
struct Byref {
  void* isa;
  Byref* forwarding;
  uint32_t flags;
  uint32_t size;
  void (*keep)(Byref*, Byref*);  // these only with kHasHelpers
  void (*dispose)(Byref*);
};

bool dropReference(uint32_t& flags) {
  return (__atomic_sub_fetch(&flags, kReferenceStep, __ATOMIC_ACQ_REL) & kReferences) == 0;
}

Byref* copyByref(Byref* variable) {
  Byref* const current = variable->forwarding;
  if (current->flags & kIsOnHeap) {
    __atomic_fetch_add(&current->flags, kReferenceStep, __ATOMIC_RELAXED);
    return current;
  }
  auto* copy = static_cast<Byref*>(std::malloc(current->size));
  std::memcpy(static_cast<void*>(copy), current, current->size);
  copy->isa = nullptr;
  copy->forwarding = copy;
  // One reference for the block being copied, one for the scope that declared the variable.
  copy->flags = (current->flags & ~uint32_t(kReferences)) | kIsOnHeap | 2 * kReferenceStep;
  current->forwarding = copy;
  if (current->flags & kHasHelpers) current->keep(copy, current);
  return copy;
}

void releaseByref(Byref* variable) {
  variable = variable->forwarding;
  if (!(variable->flags & kIsOnHeap) || !dropReference(variable->flags)) return;
  if (variable->flags & kHasHelpers) variable->dispose(variable);
  std::free(variable);
}

}  // namespace

#define HIDDEN_WEAK __attribute__((weak, visibility("hidden")))

extern "C" {

HIDDEN_WEAK void* _NSConcreteStackBlock[32] = {};
HIDDEN_WEAK void* _NSConcreteGlobalBlock[32] = {};
HIDDEN_WEAK void* _NSConcreteMallocBlock[32] = {};

HIDDEN_WEAK void* _Block_copy(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (!block || block->flags & kIsGlobal) return block;
  if (block->flags & kIsOnHeap) {
    __atomic_fetch_add(&block->flags, kReferenceStep, __ATOMIC_RELAXED);
    return block;
  }
  auto* copy = static_cast<Block*>(std::malloc(block->descriptor->size));
  std::memcpy(copy, block, block->descriptor->size);
  copy->isa = _NSConcreteMallocBlock;
  copy->flags = (block->flags & ~uint32_t(kReferences | 1)) | kIsOnHeap | kReferenceStep;
  if (copy->flags & kHasHelpers) copy->descriptor->copy(copy, block);
  return copy;
}

HIDDEN_WEAK void _Block_release(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (!block || !(block->flags & kIsOnHeap) || !dropReference(block->flags)) return;
  if (block->flags & kHasHelpers) block->descriptor->dispose(block);
  std::free(block);
}

HIDDEN_WEAK void _Block_object_assign(void* target, const void* object, const int kind) {
  const void* kept = object;
  if (kind == kFieldIsBlock) kept = _Block_copy(object);
  if (kind == kFieldIsByref || kind == kFieldIsWeakByref) {
    kept = copyByref(static_cast<Byref*>(const_cast<void*>(object)));
  }
  *static_cast<const void**>(target) = kept;
}

HIDDEN_WEAK void _Block_object_dispose(const void* object, const int kind) {
  if (kind == kFieldIsBlock) _Block_release(object);
  if (kind == kFieldIsByref || kind == kFieldIsWeakByref) releaseByref(static_cast<Byref*>(const_cast<void*>(object)));
}
}
