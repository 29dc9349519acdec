// Blocks as objects: they respond to copy, retain, release and autorelease, and can be stored in collections.
#pragma once
#include "Runtime.hpp"

namespace objclinux {

bool isBlock(const Object* object);
// Does not retain a stack block: only a copy can outlive its scope.
Object* retainBlock(Object* block);
void releaseBlock(Object* block);

extern "C" {
Object* _Block_copy(const void* block);
void _Block_release(const void* block);
}

}  // namespace objclinux
