#include "SoftObject.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <unordered_set>

namespace softmetal {

namespace {

// metal-cpp's globals use selectors and classes before our globals are initialized, and possibly after static
// destructors have run. So nothing here is a plain global, and nothing is destroyed.
struct Tables {
  std::mutex mutex;
  std::unordered_set<std::string> selectors;
  std::map<std::string, objc_class*, std::less<>> classes;
  std::set<SEL> structSelectors;  // complete after startRuntime
};

Tables& tables() {
  static auto& all = *new Tables;
  return all;
}

struct Objects {
  std::mutex mutex;
  std::map<uint64_t, Object*> live;  // by serial number, so in creation order
  std::deque<Object*> dead;
  uint64_t nextSerial = 1;
  std::mutex labels;
};

Objects& objects() {
  static auto& all = *new Objects;
  return all;
}

// The last message that the calling thread sent, or the function that it called.
struct LastMessage {
  const objc_class* receiver = nullptr;
  SEL selector = nullptr;
  const char* function = nullptr;

  // "-[MTLDevice newCommandQueue]"; shows where objects come from.
  std::string text() const {
    if (function) return function;
    return receiver ? receiver->methodText(selector) : "no message";
  }
};
thread_local LastMessage lastSent;

const char* nameOf(SEL selector) {
  return reinterpret_cast<const char*>(selector);
}

std::vector<std::string> methodsWhere(bool (*test)(const Method&)) {
  startRuntime();
  std::vector<std::string> texts;
  std::lock_guard lock(tables().mutex);
  for (const auto& [name, entry] : tables().classes) {
    for (const objc_class* each : {static_cast<const objc_class*>(entry), static_cast<const objc_class*>(entry->isa)}) {
      for (const auto& [selector, method] : each->methods) {
        if (test(method)) texts.push_back(each->methodText(selector));
      }
    }
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// These create no objects; a deallocating release is checked elsewhere.
bool isReferenceCounting(SEL selector) {
  static const SEL kSelectors[] = {sel_registerName("retain"), sel_registerName("release"),
                                   sel_registerName("retainCount")};
  return std::find(std::begin(kSelectors), std::end(kSelectors), selector) != std::end(kSelectors);
}

constexpr size_t kMaxDead = 200'000;

// No list contains its address.
bool isFree(const Object* dead) {
  return dead->unretainedUses == 0 && dead->pooled == 0;
}

void bury(Object* object) {
  object->isa->finish(object);
  Object* oldest = nullptr;
  {
    std::lock_guard lock(objects().mutex);
    objects().live.erase(object->serial);
    objects().dead.push_back(object);
    if (objects().dead.size() > kMaxDead && isFree(objects().dead.front())) {
      oldest = objects().dead.front();
      objects().dead.pop_front();
    }
  }
  if (oldest) oldest->isa->destroy(oldest);
}

struct SoftPool : Object {
  std::vector<Object*> objects;
  SoftPool* outer = nullptr;  // of the same thread, while it is open
  bool isOpen = false;

  Object* init();
  Object* retainMessage() { return violate("an NSAutoreleasePool was retained; Apple throws an exception"); }
  void finish();
};

// Each thread has a stack of pools. Has no destructor: blocks on Foundation's threads, and their captures, are released
// after all destructors of the thread.
thread_local SoftPool* innermost = nullptr;

Object* SoftPool::init() {
  isOpen = true;
  outer = innermost;
  innermost = this;
  return this;
}

void SoftPool::finish() {
  if (!isOpen) return;
  const SoftPool* found = innermost;
  while (found && found != this) found = found->outer;
  if (!found) {
    violate("an NSAutoreleasePool was released on a thread that did not make it");
    return;
  }
  if (this != innermost) {
    violate("an NSAutoreleasePool was released before the pools inside of it");
    while (innermost != this) innermost->finish();
  }
  isOpen = false;
  // Objects may autorelease others into this pool while they are released.
  while (!objects.empty()) {
    Object* const object = objects.back();
    objects.pop_back();
    object->pooled -= 1;
    softmetal::release(object);
  }
  innermost = outer;
}

}  // namespace

thread_local Place At::current = Place::elsewhere;

Place place() {
  return At::current;
}

void startRuntime() {
  static const bool started = [] {
    define<SoftPool>("NSAutoreleasePool").withAlloc();
    defineFoundation();
    defineDevice();
    defineBuffers();
    defineLibraries();
    defineCommands();
    defineCounters();
    defineEncoder();
    return true;
  }();
  (void)started;
}

void setLastMessage(const char* function) {
  lastSent = {nullptr, nullptr, function};
}

const char* currentSelector() {
  return nameOf(lastSent.selector);
}

void noteStructSelector(SEL selector) {
  tables().structSelectors.insert(selector);
}

std::vector<std::string> selectorsSent() {
  return methodsWhere([](const Method& method) { return method.wasSent.load(); });
}

std::vector<std::string> selectorsImplemented() {
  return methodsWhere([](const Method&) { return true; });
}

bool hasPool() {
  return innermost != nullptr;
}

void autorelease(Object* object) {
  if (!innermost) {
    violate("{} was autoreleased by {} on a thread without a pool and leaks", object->describe(), lastSent.text());
    return;
  }
  object->pooled += 1;
  innermost->objects.push_back(object);
}

Object* enlist(Object* object, objc_class* isa) {
  object->isa = isa;
  object->madeBy = lastSent.text();
  std::lock_guard lock(objects().mutex);
  object->serial = objects().nextSerial++;
  objects().live.emplace(object->serial, object);
  return object;
}

void retain(Object* object) {
  if (object->references.fetch_add(1) > 0) return;
  object->references.fetch_sub(1);
  violate("{} was retained after it was deallocated", object->describe());
}

void release(Object* object) {
  const int64_t before = object->references.fetch_sub(1);
  if (before > 1) return;
  if (before < 1) {
    object->references.fetch_add(1);
    violate("{} is over-released: it is deallocated already", object->describe());
    return;
  }
  if (object->unretainedUses > 0) {
    violate("{} was deallocated while a command buffer that does not retain it still uses it", object->describe());
  }
  object->isDead = true;
  bury(object);
}

Object* usableObject(Object* object, objc_class* wanted) {
  const char* const message = currentSelector();
  if (!object) return violate("{} was given nil, expected {}", message, wanted->name);
  if (object->isa != wanted) return violate("{} was given {}, expected {}", message, object->describe(), wanted->name);
  if (object->isDead) return violate("{} was given {}, which is deallocated", message, object->describe());
  return object;
}

void emptyQuarantine() {
  std::deque<Object*> free;
  {
    std::lock_guard lock(objects().mutex);
    auto& dead = objects().dead;
    std::copy_if(dead.begin(), dead.end(), std::back_inserter(free), isFree);
    std::erase_if(dead, isFree);
  }
  for (Object* object : free) object->isa->destroy(object);
}

std::string Object::labelText() const {
  std::lock_guard lock(objects().labels);
  return label_;
}

void Object::setLabelText(std::string text) {
  std::lock_guard lock(objects().labels);
  label_ = std::move(text);
}

std::string Object::describe() const {
  const std::string text = labelText();
  return text.empty() ? fmt::format("{} without a label", isa->name) : fmt::format("{} '{}'", isa->name, text);
}

Object* Object::retainMessage() {
  retain(this);
  return this;
}

void Object::releaseMessage() {
  if (isa->isMetal && references == 1 && !hasPool()) {
    violate("{} was deallocated on a thread without an autorelease pool", describe());
  }
  release(this);
}

void Object::setLabel(Object* text) {
  setLabelText(textOf(text).value_or(""));
}

Mark mark() {
  std::lock_guard lock(objects().mutex);
  return {objects().nextSerial};
}

std::vector<std::string> liveObjectsSince(Mark since) {
  waitUntilIdle();
  std::lock_guard lock(objects().mutex);
  std::vector<std::string> texts;
  for (auto entry = objects().live.lower_bound(since.serial); entry != objects().live.end(); ++entry) {
    const Object& object = *entry->second;
    const int64_t count = object.references;
    texts.push_back(
        fmt::format("{} made by {}, {} reference{}", object.describe(), object.madeBy, count, count == 1 ? "" : "s"));
  }
  return texts;
}

size_t reportLeaks(Mark since) {
  const auto leaked = liveObjectsSince(since);
  for (const std::string& text : leaked) violate("leaked: {}", text);
  return leaked.size();
}

}  // namespace softmetal

using namespace softmetal;

std::string objc_class::methodText(SEL selector) const {
  return fmt::format("{}[{} {}]", isMeta ? '+' : '-', name, nameOf(selector));
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
  objc_class*& entry = tables().classes[name];
  if (!entry) {
    entry = new objc_class{.name = name, .isMetal = std::string_view(name).starts_with("MTL")};
    entry->isa = new objc_class{.name = name, .isMeta = true};
  }
  return entry;
}

Protocol* objc_getProtocol(const char*) {
  return nullptr;
}

void softmetal_zero();
void softmetal_zero_struct();

// Called by the trampolines in MessageSend.cpp with a message's receiver; returns the function to jump to.
__attribute__((visibility("hidden"))) void* softmetal_lookup(void* receiver, SEL selector, int returnsStruct) {
  const At inside(Place::inside);
  startRuntime();
  void* const zero = reinterpret_cast<void*>(returnsStruct ? &softmetal_zero_struct : &softmetal_zero);
  if (!receiver) {
    if (tables().structSelectors.contains(selector)) {
      violate("{} was sent to nil: Apple leaves the struct that it returns undefined", nameOf(selector));
    }
    return zero;
  }
  objc_class* const isa = *static_cast<objc_class**>(receiver);
  lastSent = {isa, selector, nullptr};
  const auto* const object = isa->isMeta ? nullptr : static_cast<const Object*>(receiver);
  if (object && object->isDead) {
    violate("{} was sent to {}, which is deallocated{}", isa->methodText(selector), object->describe(),
            std::string_view(nameOf(selector)) == "release" ? ": it is over-released" : "");
    return zero;
  }
  if (isa->isMetal && !hasPool() && !isReferenceCounting(selector)) {
    violate("{} was sent on a thread without an autorelease pool", isa->methodText(selector));
  }
  const auto found = isa->methods.find(selector);
  if (found == isa->methods.end()) {
    violate("unrecognized selector {}", isa->methodText(selector));
    return zero;
  }
  found->second.wasSent.store(true, std::memory_order_relaxed);
  return found->second.function;
}

}  // extern "C"
