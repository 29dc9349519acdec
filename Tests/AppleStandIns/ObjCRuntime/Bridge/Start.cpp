// Starts the bridge before any module of this program is loaded, and after GNUstep, which is a shared library.
#include <cstdio>
#include <cstdlib>

#include "Runtime.hpp"

namespace objclinux {

Selectors selectors;

// Calls a method through the message's type, whatever its real result type is, to which the sanitizer objects.
__attribute__((no_sanitize("function"))) Object* send(Object* receiver, Selector* selector) {
  const auto method = reinterpret_cast<Object* (*)(Object*, Selector*)>(methodOf(receiver, selector));
  return method(receiver, selector);
}

Object* makeObject(const char* name) {
  return send(send(reinterpret_cast<Object*>(objc_lookUpClass(name)), selectors.alloc), selectors.init);
}

// 101 is the first priority available to programs; constructors without a priority, which run later, load modules.
__attribute__((constructor(101))) static void startBridge() {
  selectors = {
      .alloc = sel_registerName("alloc"),
      .autorelease = sel_registerName("autorelease"),
      .copy = sel_registerName("copy"),
      .dealloc = sel_registerName("dealloc"),
      .drain = sel_registerName("drain"),
      .init = sel_registerName("init"),
      .release = sel_registerName("release"),
      .retain = sel_registerName("retain"),
  };
  Class* const rootClass = objc_lookUpClass("NSObject");
  if (!rootClass) {
    std::fputs("error: there is no class NSObject. Link with -lgnustep-base.\n", stderr);
    std::abort();
  }
  send(reinterpret_cast<Object*>(rootClass), sel_registerName("class"));  // a class is initialized by its first message
  // Clang puts the protocols that a file names into a category of this class, which does not exist, and GCC's runtime
  // initializes only protocols that come with a class.
  objc_registerClassPair(objc_allocateClassPair(rootClass, "__ObjC_Protocol_Holder_Ugly_Hack", 0));
  startBlocks(rootClass);
}

}  // namespace objclinux
