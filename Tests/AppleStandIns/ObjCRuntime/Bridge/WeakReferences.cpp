// Weak references: tables of the variables that refer to each object, cleared by its last release.
//
// The last release excludes the loading of a weak reference, so that no thread can get an object that another has begun
// to deallocate. -[NSObject release] is replaced for that. -[NSObject dealloc] also clears references, for classes with
// their own reference counts.
#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "Runtime.hpp"

namespace objclinux {

extern "C" {
Object* objc_retain(Object*);
void objc_release(Object*);
Object* objc_autorelease(Object*);
// GNUstep's reference counts: decrements, or returns true if it was the last.
bool NSDecrementExtraRefCountWasZero(Object*);
}

namespace {

// The references to the objects of some addresses, and their lock.
struct Table {
  std::recursive_mutex mutex;  // a class may override retain and do anything under this lock
  std::unordered_map<const Object*, std::vector<Object**>> variables;

  void add(const Object* object, Object** variable) { variables[object].push_back(variable); }

  void remove(const Object* object, Object** variable) {
    const auto found = variables.find(object);
    if (found == variables.end()) return;
    std::erase(found->second, variable);
    if (found->second.empty()) variables.erase(found);
  }

  void clear(const Object* object) {
    const auto found = variables.find(object);
    if (found == variables.end()) return;
    for (Object** variable : found->second) __atomic_store_n(variable, nullptr, __ATOMIC_RELEASE);
    variables.erase(found);
  }
};

// Objects are released until the very end of the process, so the tables are never destroyed.
Table& tableOf(const Object* object) {
  static auto& tables = *new std::array<Table, 64>;
  return tables[reinterpret_cast<std::uintptr_t>(object) / 16 % tables.size()];
}

// Calls use(object) with the referenced object or null. The object lives at least until the call returns.
template <typename Use>
auto withReferred(Object** variable, Use use) {
  while (true) {
    Object* const object = __atomic_load_n(variable, __ATOMIC_ACQUIRE);
    if (!object) return use(object);
    std::lock_guard lock(tableOf(object).mutex);
    if (__atomic_load_n(variable, __ATOMIC_ACQUIRE) == object) return use(object);
  }
}

Implementation originalDealloc = nullptr;

void releaseMethod(Object* self, Selector*) {
  {
    Table& table = tableOf(self);
    std::lock_guard lock(table.mutex);
    if (!NSDecrementExtraRefCountWasZero(self)) return;
    table.clear(self);
  }
  send(self, selectors.dealloc);
}

void deallocMethod(Object* self, Selector* selector) {
  {
    Table& table = tableOf(self);
    std::lock_guard lock(table.mutex);
    table.clear(self);
  }
  reinterpret_cast<void (*)(Object*, Selector*)>(originalDealloc)(self, selector);
}

}  // namespace

void startWeakReferences(Class* rootClass) {
  const auto replace = [&](Selector* selector, void (*function)(Object*, Selector*)) {
    return method_setImplementation(class_getInstanceMethod(rootClass, selector),
                                    reinterpret_cast<Implementation>(function));
  };
  replace(selectors.release, &releaseMethod);
  originalDealloc = replace(selectors.dealloc, &deallocMethod);
}

extern "C" {

Object* objc_initWeak(Object** variable, Object* object) {
  __atomic_store_n(variable, object, __ATOMIC_RELEASE);
  if (!object) return nullptr;
  Table& table = tableOf(object);
  std::lock_guard lock(table.mutex);
  table.add(object, variable);
  return object;
}

void objc_destroyWeak(Object** variable) {
  withReferred(variable, [&](Object* object) {
    if (object) tableOf(object).remove(object, variable);
    __atomic_store_n(variable, nullptr, __ATOMIC_RELEASE);
  });
}

Object* objc_storeWeak(Object** variable, Object* object) {
  objc_destroyWeak(variable);
  return objc_initWeak(variable, object);
}

Object* objc_loadWeakRetained(Object** variable) {
  return withReferred(variable, [](Object* object) { return objc_retain(object); });
}

Object* objc_loadWeak(Object** variable) {
  return objc_autorelease(objc_loadWeakRetained(variable));
}

void objc_copyWeak(Object** to, Object** from) {
  Object* const object = objc_loadWeakRetained(from);
  objc_initWeak(to, object);
  objc_release(object);
}

void objc_moveWeak(Object** to, Object** from) {
  objc_copyWeak(to, from);
  objc_destroyWeak(from);
}
}

}  // namespace objclinux
