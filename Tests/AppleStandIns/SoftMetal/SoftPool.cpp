// NSAutoreleasePool: each thread has a stack of them.
#include <fmt/format.h>

#include "SoftObject.hpp"
#include "State.hpp"

namespace softmetal {

namespace {

// Has no destructor: blocks on Foundation's threads, and their captures, are released after all destructors of the
// thread.
thread_local SoftPool* innermost = nullptr;

}  // namespace

bool hasPool() {
  return innermost != nullptr;
}

void autorelease(Object* object) {
  if (!innermost) {
    violate(fmt::format("{} was autoreleased by {} on a thread without a pool and leaks", object->describe(),
                        lastMessage()));
    return;
  }
  innermost->addObject(object);
}

Object* SoftPool::initPool() {
  if (isOpen) {
    violate("an NSAutoreleasePool was initialized twice");
    return this;
  }
  isOpen = true;
  outer = innermost;
  innermost = this;
  return this;
}

void SoftPool::drain() {
  if (!isOpen) return;
  const SoftPool* found = innermost;
  while (found && found != this) found = found->outer;
  if (!found) {
    violate("an NSAutoreleasePool was drained on a thread that did not make it");
    return;
  }
  if (this != innermost) {
    violate("an NSAutoreleasePool was drained before the pools inside of it");
    while (innermost != this) innermost->drain();
  }
  isOpen = false;
  // Objects may autorelease others into this pool while they are released.
  while (!objects.empty()) {
    Object* const object = objects.back();
    objects.pop_back();
    object->pooled -= 1;
    softmetal::release(object);
  }
  innermost = outer;
}

void SoftPool::addObject(Object* object) {
  if (!object) return;
  object->pooled += 1;
  objects.push_back(object);
}

Object* SoftPool::retainPool() {
  violate("an NSAutoreleasePool was retained or autoreleased; Apple throws an exception");
  return this;
}

void definePools() {
  define<SoftPool>("NSAutoreleasePool")
      .withAlloc()
      .on<&SoftPool::initPool>("init")
      .on<&SoftPool::releaseMessage>("drain")  // equivalent to release for a pool
      .on<&SoftPool::addObject>("addObject:")
      .on<&SoftPool::retainPool>("retain")
      .on<&SoftPool::retainPool>("autorelease");
}

}  // namespace softmetal
