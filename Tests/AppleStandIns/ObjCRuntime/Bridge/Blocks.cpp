#include "Blocks.hpp"

#include <cstring>

namespace objclinux {

namespace {

// The flags of a block. Copies keep the class of a stack block.
enum BlockFlags : int { kIsOnHeap = 1 << 24, kIsGlobal = 1 << 28 };

struct Block {
  void* isa;
  int flags;
};

extern "C" void *_NSConcreteStackBlock[32], *_NSConcreteMallocBlock[32], *_NSConcreteGlobalBlock[32];

bool isOnStack(const Object* block) {
  return !(reinterpret_cast<const Block*>(block)->flags & (kIsOnHeap | kIsGlobal));
}

// An object in the autorelease pool that releases a block when the pool is drained.
constexpr const char* kHolderClass = "ObjCLinuxBlockHolder";
struct Holder {
  Class* isa;
  Object* block;
};

Implementation rootDealloc = nullptr;

void deallocHolder(Object* self, Selector* selector) {
  releaseBlock(reinterpret_cast<Holder*>(self)->block);
  reinterpret_cast<void (*)(Object*, Selector*)>(rootDealloc)(self, selector);
}

Object* copyMethod(Object* self, Selector*) {
  return _Block_copy(self);
}

Object* retainMethod(Object* self, Selector*) {
  return retainBlock(self);
}

void releaseMethod(Object* self, Selector*) {
  releaseBlock(self);
}

Object* autoreleaseMethod(Object* self, Selector*) {
  Object* const holder = makeObject(kHolderClass);
  reinterpret_cast<Holder*>(holder)->block = self;
  send(holder, selectors.autorelease);
  return self;
}

template <typename Function>
void add(Class* extended, Selector* selector, Function* function, const char* types) {
  class_addMethod(extended, selector, reinterpret_cast<Implementation>(function), types);
}

extern "C" Implementation class_getMethodImplementation(Class*, Selector*);

}  // namespace

bool isBlock(const Object* object) {
  const void* const isa = object->isa;
  return isa == _NSConcreteStackBlock || isa == _NSConcreteMallocBlock || isa == _NSConcreteGlobalBlock;
}

Object* retainBlock(Object* block) {
  return isOnStack(block) ? block : _Block_copy(block);
}

void releaseBlock(Object* block) {
  if (!isOnStack(block)) _Block_release(block);
}

void startBlocks(Class* rootClass) {
  rootDealloc = class_getMethodImplementation(rootClass, selectors.dealloc);
  Class* const holder = objc_allocateClassPair(rootClass, kHolderClass, 0);
  class_addIvar(holder, "_block", sizeof(void*), 3, "^v");
  add(holder, selectors.dealloc, &deallocHolder, "v16@0:8");
  objc_registerClassPair(holder);

  Class* const block = objc_allocateClassPair(rootClass, "ObjCLinuxBlock", 0);
  add(block, selectors.copy, &copyMethod, "@16@0:8");
  add(block, sel_registerName("copyWithZone:"), &copyMethod, "@24@0:8^v16");
  add(block, selectors.retain, &retainMethod, "@16@0:8");
  add(block, selectors.release, &releaseMethod, "v16@0:8");
  add(block, selectors.autorelease, &autoreleaseMethod, "@16@0:8");
  objc_registerClassPair(block);
  // A block's class is an array in the blocks runtime. Once the class has a dispatch table, which its first message
  // builds, a copy of the record works as well.
  send(reinterpret_cast<Object*>(block), sel_registerName("class"));
  for (void** isa : {_NSConcreteStackBlock, _NSConcreteMallocBlock, _NSConcreteGlobalBlock}) {
    std::memcpy(isa, block, kBytesOfGccClass);
  }
}

}  // namespace objclinux
