#include "Runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_set>

#include "SoftObject.hpp"
#include "SoftStrings.hpp"
#include "State.hpp"

namespace softmetal {

namespace {

// metal-cpp's globals use selectors and classes before our globals are initialized, and possibly after static
// destructors have run. So nothing here is a plain global, and nothing is destroyed.
struct Tables {
  std::mutex mutex;
  std::unordered_set<std::string> selectors;
  std::map<std::string, std::unique_ptr<objc_class>, std::less<>> classes;
  std::vector<std::unique_ptr<objc_class>> metaclasses;
  std::unordered_map<SEL, void*> nilFunctions;  // complete after startRuntime
  std::set<std::string> unknown;
};

Tables& tables() {
  static auto& all = *new Tables;
  return all;
}

struct LastMessage {
  const objc_class* receiver = nullptr;
  SEL selector = nullptr;
  const char* function = nullptr;
};
thread_local LastMessage lastSent;

}  // namespace

thread_local Place At::current = Place::elsewhere;

Place place() {
  return At::current;
}

void startRuntime() {
  static const bool started = [] {
    defineFoundation();
    defineBundles();
    defineDevice();
    defineLibraries();
    definePipelines();
    defineCommands();
    defineCounters();
    defineEncoder();
    return true;
  }();
  (void)started;
}

std::string lastMessage() {
  if (lastSent.function) return lastSent.function;
  return lastSent.receiver ? lastSent.receiver->methodText(lastSent.selector) : "no message";
}

void setLastMessage(const char* function) {
  lastSent = {nullptr, nullptr, function};
}

void setNilFunction(SEL selector, void* function) {
  tables().nilFunctions[selector] = function;
}

void addClassMethods(objc_class* defined) {
  using Responds = bool (*)(objc_class*, SEL, SEL);
  const Responds responds = [](objc_class* self, SEL, SEL selector) { return self->isa->find(selector) != nullptr; };
  const Responds instances = [](objc_class* self, SEL, SEL selector) { return self->find(selector) != nullptr; };
  auto& methods = defined->isa->methods;
  methods[sel_registerName("respondsToSelector:")].function = reinterpret_cast<void*>(responds);
  methods[sel_registerName("instancesRespondToSelector:")].function = reinterpret_cast<void*>(instances);
}

std::vector<std::string> methodsWhere(bool (*test)(const Method&)) {
  startRuntime();
  std::vector<std::string> texts;
  std::lock_guard lock(tables().mutex);
  for (const auto& [name, entry] : tables().classes) {
    for (const objc_class* each : {entry.get(), entry->isa}) {
      for (const auto& [selector, method] : each->methods) {
        if (test(method)) texts.push_back(each->methodText(selector));
      }
    }
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

std::vector<std::string> unknownMessages() {
  std::lock_guard lock(tables().mutex);
  return {tables().unknown.begin(), tables().unknown.end()};
}

}  // namespace softmetal

using namespace softmetal;

const Method* objc_class::find(SEL selector) const {
  const auto found = methods.find(selector);
  if (found == methods.end() || (found->second.isThere && !found->second.isThere())) return nullptr;
  return &found->second;
}

std::string objc_class::methodText(SEL selector) const {
  return fmt::format("{}[{} {}]", isMeta ? '+' : '-', name, reinterpret_cast<const char*>(selector));
}

extern "C" {

SEL sel_registerName(const char* name) {
  const At inside(Place::inside);
  std::lock_guard lock(tables().mutex);
  return reinterpret_cast<SEL>(const_cast<char*>(tables().selectors.insert(name).first->c_str()));
}

// Apple returns null for an unknown class. Here every class exists, so that a message to an unimplemented one is
// reported.
Class objc_lookUpClass(const char* name) {
  const At inside(Place::inside);
  std::lock_guard lock(tables().mutex);
  auto& entry = tables().classes[name];
  if (!entry) {
    entry = std::make_unique<objc_class>();
    entry->name = name;
    entry->isMetal = entry->name.starts_with("MTL");
    auto& meta = *tables().metaclasses.emplace_back(std::make_unique<objc_class>());
    meta.name = name;
    meta.isMeta = true;
    entry->isa = &meta;
  }
  return entry.get();
}

Protocol* objc_getProtocol(const char*) {
  return nullptr;
}

// These create no objects; a deallocating release is checked elsewhere.
static bool isReferenceCounting(SEL selector) {
  static const SEL kSelectors[] = {sel_registerName("retain"), sel_registerName("release"),
                                   sel_registerName("retainCount")};
  return std::find(std::begin(kSelectors), std::end(kSelectors), selector) != std::end(kSelectors);
}

void softmetal_zero();
void softmetal_zero_struct();

// Called by the trampolines in MessageSend.cpp with a message's receiver; returns the function to jump to.
__attribute__((visibility("hidden"))) void* softmetal_lookup(void* receiver, SEL selector, int returnsStruct) {
  const At inside(Place::inside);
  startRuntime();
  void* const zero = reinterpret_cast<void*>(returnsStruct ? &softmetal_zero_struct : &softmetal_zero);
  if (!receiver) {
    const auto found = tables().nilFunctions.find(selector);
    if (found == tables().nilFunctions.end()) return zero;
    violate(fmt::format("{} was sent to nil: Apple leaves the struct that it returns undefined",
                        reinterpret_cast<const char*>(selector)));
    return found->second;
  }
  objc_class* isa = *static_cast<objc_class**>(receiver);
  if (isConstantStringClass(isa)) isa = classOf<ConstantString>;
  lastSent = {isa, selector, nullptr};
  if (!isa->isMeta && isa != classOf<ConstantString>) {
    const auto* object = static_cast<const Object*>(receiver);
    if (object->isDead) {
      const bool isRelease = selector == sel_registerName("release");
      violate(fmt::format("{} was sent to {}, which is deallocated{}", isa->methodText(selector), object->describe(),
                          isRelease ? ": it is over-released" : ""));
      return zero;
    }
  }
  if (isa->isMetal && !hasPool() && !isReferenceCounting(selector)) {
    violate(fmt::format("{} was sent on a thread without an autorelease pool", isa->methodText(selector)));
  }
  const auto found = isa->methods.find(selector);
  if (found == isa->methods.end() || (found->second.isThere && !found->second.isThere())) {
    {
      std::lock_guard lock(tables().mutex);
      tables().unknown.insert(isa->methodText(selector));
    }
    violate(fmt::format("unrecognized selector {}", isa->methodText(selector)));
    return zero;
  }
  found->second.wasSent.store(true, std::memory_order_relaxed);
  return found->second.function;
}

}  // extern "C"
