// Method lookup for objc_msgSend and messages to super, and unwinding of their frames.
#include "Runtime.hpp"

namespace objclinux {

Implementation methodOf(Object* receiver, Selector* selector) {
  // Read here, because sanitizers do not see reads in GCC's runtime: this reports messages to deallocated objects.
  static_cast<void>(*const_cast<Class* volatile*>(&receiver->isa));
  return objc_msg_lookup(receiver, selector);
}

extern "C" {

// The trampolines of Tests/AppleStandIns/SoftMetal/MessageSend.cpp are linked twice: for the software Metal under other
// names, and for Objective-C under their own, where they call this lookup.
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

// The caller reads the method immediately, so one slot per thread is enough.
Slot* objc_slot_lookup_super(void* super, Selector* selector) {
  static thread_local Slot slot;
  slot.method = objc_msg_lookup_super(super, selector);
  return &slot;
}

// Frames of .mm files unwind like those of C++. An NSException runs their cleanups and propagates.
int __gxx_personality_v0(int version, int actions, std::uint64_t exceptionClass, void* exception, void* context);

int __gnustep_objcxx_personality_v0(int version, int actions, std::uint64_t exceptionClass, void* exception,
                                    void* context) {
  return __gxx_personality_v0(version, actions, exceptionClass, exception, context);
}
}

}  // namespace objclinux
