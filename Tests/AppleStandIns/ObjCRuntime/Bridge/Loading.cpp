// Loads modules that clang compiled for `-fobjc-runtime=gnustep-1.9` into GCC's runtime. It converts a module in place
// to GCC's format and passes it on. The linker option `--wrap=__objc_exec_class` sends every module here first.
#include <cstring>
#include <unordered_map>
#include <vector>

#include "Runtime.hpp"

namespace objclinux {

namespace {

constexpr unsigned long kGccModuleVersion = 8;
constexpr std::uintptr_t kClangProtocolVersion = 3, kGccProtocolVersion = 2;
constexpr unsigned long kIsClassOrMetaclass = 3;  // clang sets a higher bit that means "in construction" to GCC
constexpr long kAlignment = 16;

// Modules whose superclasses are in modules that are not loaded yet.
std::vector<Module*>& waiting() {
  static auto& modules = *new std::vector<Module*>;
  return modules;
}

void adapt(Protocols* protocols) {
  for (; protocols; protocols = protocols->next) {
    for (std::size_t i = 0; i < protocols->count; ++i) {
      Protocol* const protocol = protocols->list[i];
      if (!protocol || protocol->version != kClangProtocolVersion) continue;
      protocol->version = kGccProtocolVersion;
      adapt(protocol->adopted);
    }
  }
}

bool adapt(Class* adapted);

// The class, with a known size, or null if its module is not loaded yet.
Class* findClass(const char* name) {
  if (Class* const loaded = objc_lookUpClass(name)) return loaded;
  for (const Module* module : waiting()) {
    for (int i = 0; i < module->symbols->classCount; ++i) {
      auto* const found = static_cast<Class*>(module->symbols->definitions[i]);
      if (std::strcmp(found->name, name) == 0) return adapt(found) ? found : nullptr;
    }
  }
  return nullptr;
}

// The size of a class that clang assumed for a subclass. Clang saw no variables of this package's classes, because they
// are in implementations, so it is the size of the nearest ancestor in Foundation.
long& visibleSizeOf(const Class* superclass) {
  static auto& sizes = *new std::unordered_map<const Class*, long>;
  return sizes.try_emplace(superclass, superclass->instanceSize).first->second;
}

// Moves the variables of a class behind those of its superclass; false if the superclass is not loaded yet. They move
// by a multiple of the largest alignment, so they stay aligned.
bool placeVariables(Class* placed) {
  if (placed->instanceSize > 0 || !placed->superclass) return true;
  const Class* const superclass = findClass(reinterpret_cast<const char*>(placed->superclass));
  if (!superclass) return false;
  const long visibleSize = visibleSizeOf(superclass);
  const long steps = (superclass->instanceSize - visibleSize + kAlignment - 1) / kAlignment;
  const long begin = visibleSize + steps * kAlignment;
  const int count = placed->variables ? placed->variables->count : 0;
  for (int i = 0; i < count; ++i) {
    placed->variables->list[i].offset += int(begin);
    *placed->offsets[i] = placed->variables->list[i].offset;
  }
  placed->instanceSize = begin - placed->instanceSize;
  visibleSizeOf(placed) = visibleSize;
  return true;
}

bool adapt(Class* adapted) {
  if (!placeVariables(adapted)) return false;
  adapted->info &= kIsClassOrMetaclass;
  adapted->isa->info &= kIsClassOrMetaclass;
  adapt(adapted->protocols);
  return true;
}

bool adapt(const Symbols* symbols) {
  for (int i = 0; i < symbols->classCount; ++i) {
    if (!adapt(static_cast<Class*>(symbols->definitions[i]))) return false;
  }
  for (int i = 0; i < symbols->categoryCount; ++i) {
    adapt(static_cast<Category*>(symbols->definitions[symbols->classCount + i])->protocols);
  }
  return true;
}

extern "C" void __real___objc_exec_class(Module*);

bool tryToLoad(Module* module) {
  if (!adapt(module->symbols)) return false;
  // The runtime keeps it.
  __real___objc_exec_class(new Module{kGccModuleVersion, sizeof(Module), module->name, module->symbols});
  return true;
}

}  // namespace

extern "C" void __wrap___objc_exec_class(Module* module) {
  if (module->version <= kGccModuleVersion) {
    __real___objc_exec_class(module);
  } else {
    waiting().push_back(module);
  }
  while (std::erase_if(waiting(), tryToLoad) > 0) {
  }
}

}  // namespace objclinux
