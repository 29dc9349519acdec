// The functions that clang calls under ARC to retain, release and autorelease, and to set properties. An object that is
// returned autoreleased always lives until its pool is drained; there is no return optimization as on a Mac.
#include "Blocks.hpp"

namespace objclinux {

extern "C" {

Object* objc_retain(Object* object) {
  if (!object) return nullptr;
  return isBlock(object) ? retainBlock(object) : send(object, selectors.retain);
}

void objc_release(Object* object) {
  if (!object) return;
  if (isBlock(object)) {
    releaseBlock(object);
  } else {
    send(object, selectors.release);
  }
}

Object* objc_autorelease(Object* object) {
  return object ? send(object, selectors.autorelease) : nullptr;
}

Object* objc_retainBlock(Object* block) {
  return block ? _Block_copy(block) : nullptr;
}

Object* objc_retainAutorelease(Object* object) {
  return objc_autorelease(objc_retain(object));
}

Object* objc_autoreleaseReturnValue(Object* object) {
  return objc_autorelease(object);
}

Object* objc_retainAutoreleaseReturnValue(Object* object) {
  return objc_retainAutorelease(object);
}

Object* objc_retainAutoreleasedReturnValue(Object* object) {
  return objc_retain(object);
}

Object* objc_unsafeClaimAutoreleasedReturnValue(Object* object) {
  return object;
}

void objc_storeStrong(Object** variable, Object* value) {
  Object* const old = *variable;
  *variable = objc_retain(value);
  objc_release(old);
}

void* objc_autoreleasePoolPush() {
  return makeObject("NSAutoreleasePool");
}

void objc_autoreleasePoolPop(void* pool) {
  send(static_cast<Object*>(pool), selectors.drain);
}

// The only kind of property that the package has and clang does not set inline.
void objc_setProperty_nonatomic_copy(Object* self, Selector* selector, Object* value, std::ptrdiff_t offset) {
  objc_setProperty(self, selector, offset, value, false, true);
}
}

}  // namespace objclinux
