// Blocks as objects: they answer copy, retain, release and autorelease, and can be kept in collections.
#pragma once
#include "Runtime.hpp"

namespace objclinux {

bool isBlock(const Object* object);
// A block on the stack is left alone: only a copy can outlive its scope.
Object* retainBlock(Object* block);
void releaseBlock(Object* block);

extern "C" {
Object* _Block_copy(const void* block);
void _Block_release(const void* block);
}

}  // namespace objclinux
