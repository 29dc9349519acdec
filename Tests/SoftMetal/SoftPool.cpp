// NSAutoreleasePool: each thread has a stack of them.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "SoftObject.hpp"
#include "State.hpp"

namespace softmetal {

namespace {

thread_local std::vector<SoftPool*> pools;

}  // namespace

bool hasPool() {
  return !pools.empty();
}

void autorelease(Object* object) {
  if (pools.empty()) {
    violate(fmt::format("{} was autoreleased by {} on a thread without a pool and leaks", object->describe(),
                        lastMessage()));
    return;
  }
  pools.back()->addObject(object);
}

Object* SoftPool::initPool() {
  if (isOpen) {
    violate("an NSAutoreleasePool was initialized twice");
    return this;
  }
  isOpen = true;
  pools.push_back(this);
  return this;
}

void SoftPool::drain() {
  if (!isOpen) return;
  const auto place = std::find(pools.begin(), pools.end(), this);
  if (place == pools.end()) {
    violate("an NSAutoreleasePool was drained on a thread that did not make it");
    return;
  }
  if (this != pools.back()) {
    violate("an NSAutoreleasePool was drained before the pools inside of it");
    while (pools.back() != this) pools.back()->drain();
  }
  isOpen = false;
  // While they go, objects may autorelease others into this pool.
  while (!objects.empty()) {
    Object* const object = objects.back();
    objects.pop_back();
    object->pooled -= 1;
    softmetal::release(object);
  }
  pools.pop_back();
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
      .on<&SoftPool::releaseMessage>("drain")  // ends a pool as releasing does
      .on<&SoftPool::addObject>("addObject:")
      .on<&SoftPool::retainPool>("retain")
      .on<&SoftPool::retainPool>("autorelease");
}

}  // namespace softmetal
