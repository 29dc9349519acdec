// The records that clang writes into a module, and the functions of GCC's libobjc that the bridge calls. Clang's
// records for `-fobjc-runtime=gnustep-1.9` begin with GCC's fields, so one type describes both.
#pragma once
#include <cstddef>
#include <cstdint>

namespace objclinux {

struct Class;

struct Object {
  Class* isa;
};

struct Selector {
  const void* name;
  const char* types;
};

using Implementation = Object* (*)(Object*, Selector*, ...);

struct InstanceVariable {
  const char* name;
  const char* type;
  int offset;
};

struct InstanceVariables {
  int count;
  InstanceVariable list[];
};

struct Protocol;

struct Protocols {
  Protocols* next;
  std::size_t count;
  Protocol* list[];
};

struct Protocol {
  std::uintptr_t version;  // a loaded protocol stores its class here
  const char* name;
  Protocols* adopted;
};

struct Class {
  Class* isa;
  Class* superclass;  // its name, until the class is loaded
  const char* name;
  long version;
  unsigned long info;
  long instanceSize;  // as clang writes it: minus the size of its own variables
  InstanceVariables* variables;
  void* methods;
  void* dispatchTable;
  Class* subclasses;
  Class* sibling;
  Protocols* protocols;
  void* garbageCollector;
  // Only clang's records have these.
  long abiVersion;
  int** offsets;  // read by code to find variables
  void* properties;
  std::uintptr_t strongVariables;
  std::uintptr_t weakVariables;
};
constexpr std::size_t kBytesOfGccClass = offsetof(Class, abiVersion);

struct Category {
  const char* name;
  const char* className;
  void* methods;
  void* classMethods;
  Protocols* protocols;
};

struct Symbols {
  unsigned long selectorCount;
  Selector* selectors;
  unsigned short classCount;
  unsigned short categoryCount;
  void* definitions[];  // the classes, then the categories
};

struct Module {
  unsigned long version;
  unsigned long size;
  const char* name;
  Symbols* symbols;
};

// The implementation that a message to an object calls.
Implementation methodOf(Object* receiver, Selector* selector);
// Sends `selector` without arguments.
Object* send(Object* receiver, Selector* selector);
// [[name alloc] init]
Object* makeObject(const char* name);

// The selectors that the bridge sends. Valid after startBridge, which runs before any module is loaded.
struct Selectors {
  Selector *alloc, *autorelease, *copy, *dealloc, *drain, *init, *release, *retain;
};
extern Selectors selectors;

// Called by Start.cpp.
void startBlocks(Class* rootClass);

extern "C" {
bool class_addIvar(Class*, const char* name, std::size_t size, unsigned char alignment, const char* type);
bool class_addMethod(Class*, Selector*, Implementation, const char* types);
Class* objc_allocateClassPair(Class* superclass, const char* name, std::size_t extraBytes);
void objc_registerClassPair(Class*);
Class* objc_lookUpClass(const char* name);
Implementation objc_msg_lookup(Object*, Selector*);
Implementation objc_msg_lookup_super(void* super, Selector*);
void objc_setProperty(Object*, Selector*, std::ptrdiff_t offset, Object* value, bool isAtomic, bool copies);
Selector* sel_registerName(const char* name);
}

}  // namespace objclinux
