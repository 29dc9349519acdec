// Messages: what objc_msgSend and messages to super ask for a method's function, and what unwinds their frames.
#include "Runtime.hpp"

namespace objclinux {

Implementation methodOf(Object* receiver, Selector* selector) {
  // Read here, because a sanitizer sees no read of the runtime below: so it tells of messages to dead objects.
  static_cast<void>(*const_cast<Class* volatile*>(&receiver->isa));
  return objc_msg_lookup(receiver, selector);
}

extern "C" {

// The trampolines of Tests/AppleStandIns/SoftMetal/MessageSend.cpp are linked into this program twice: for the software
// Metal under other names, and under their own for Objective-C, where this is what they ask.
void softmetal_zero();
void softmetal_zero_struct();

__attribute__((visibility("hidden"))) void* softmetal_lookup(Object* receiver, Selector* selector, int returnsStruct) {
  if (receiver) return reinterpret_cast<void*>(methodOf(receiver, selector));
  return reinterpret_cast<void*>(returnsStruct ? &softmetal_zero_struct : &softmetal_zero);
}

struct Slot {
  Class* owner;
  Class* cachedFor;
  const char* types;
  int version;
  Implementation method;
};

// The caller reads the method at once, so that one slot for each thread is enough.
Slot* objc_slot_lookup_super(void* super, Selector* selector) {
  static thread_local Slot slot;
  slot.method = objc_msg_lookup_super(super, selector);
  return &slot;
}

// Frames of .mm files unwind as those of C++ do. An NSException runs their cleanups, and passes.
int __gxx_personality_v0(int version, int actions, std::uint64_t exceptionClass, void* exception, void* context);

int __gnustep_objcxx_personality_v0(int version, int actions, std::uint64_t exceptionClass, void* exception,
                                    void* context) {
  return __gxx_personality_v0(version, actions, exceptionClass, exception, context);
}
}

}  // namespace objclinux
