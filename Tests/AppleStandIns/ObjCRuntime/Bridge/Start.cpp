// Starts the bridge: before the module of any file is loaded, and after GNUstep's, which is a shared library.
#include <cstdio>
#include <cstdlib>

#include "Runtime.hpp"

namespace objclinux {

Selectors selectors;

// A method is called through the type that the message has, whatever its own result is; the sanitizer objects to that.
__attribute__((no_sanitize("function"))) Object* send(Object* receiver, Selector* selector) {
  const auto method = reinterpret_cast<Object* (*)(Object*, Selector*)>(methodOf(receiver, selector));
  return method(receiver, selector);
}

Object* makeObject(const char* name) {
  return send(send(reinterpret_cast<Object*>(objc_lookUpClass(name)), selectors.alloc), selectors.init);
}

// 101 is the first priority that programs may use; modules are loaded by constructors without one, which are later.
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
  send(reinterpret_cast<Object*>(rootClass), sel_registerName("class"));  // a class is set up by its first message
  // Clang gives the protocols that a file names to a category of this class, which exists nowhere, and GCC's runtime
  // sets up those alone that come with a class.
  objc_registerClassPair(objc_allocateClassPair(rootClass, "__ObjC_Protocol_Holder_Ugly_Hack", 0));
  startWeakReferences(rootClass);
  startBlocks(rootClass);
}

}  // namespace objclinux
