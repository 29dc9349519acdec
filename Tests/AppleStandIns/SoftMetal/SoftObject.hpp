// The part of the Objective-C runtime that metal-cpp uses. A class is a table from selectors to C++ functions: a member
// function becomes a method, and a data member its getter or setter:
//   define<SoftBuffer>("MTLBuffer").on<&SoftBuffer::contents>("contents").on<&SoftBuffer::bytes>("length");
// Objects have an isa, a reference count and a label. All live ones are listed; deallocated ones stay in memory for a
// while, so that a message to one is reported with its name.
#pragma once
#include <objc/runtime.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "State.hpp"

namespace softmetal {

struct Object;
struct Method {
  void* function = nullptr;
  std::atomic<bool> wasSent = false;
};

}  // namespace softmetal

// objc/runtime.h declares this name.
struct objc_class {
  objc_class* isa = nullptr;  // its metaclass, with the class methods
  std::string name;
  bool isMeta = false;
  bool isMetal = false;  // MTL…, whose methods may autorelease anything
  std::unordered_map<SEL, softmetal::Method> methods = {};
  softmetal::Object* (*make)() = nullptr;
  void (*finish)(softmetal::Object*) = nullptr;
  void (*destroy)(softmetal::Object*) = nullptr;

  std::string methodText(SEL selector) const;  // "-[MTLBuffer length]"
};

namespace softmetal {

// Marks where the calling thread is until the end of the scope.
class At {
 public:
  explicit At(Place place) : before_(std::exchange(current, place)) {}
  ~At() { current = before_; }
  At(const At&) = delete;
  At& operator=(const At&) = delete;

 private:
  friend Place place();
  static thread_local Place current;
  Place before_;
};

// Set when the class is defined.
template <typename T>
inline objc_class* classOf = nullptr;

// Defines all classes once; called before any object is created.
void startRuntime();
void setLastMessage(const char* function);
// The selector of the last message that the calling thread sent, which is the one being handled.
const char* currentSelector();
// Messages to nil that return a struct in memory are reported.
void noteStructSelector(SEL selector);

// No virtual functions: the first word is the isa. finish() of a class frees its resources.
struct Object {
  objc_class* isa = nullptr;
  std::atomic<int64_t> references = 1;
  std::atomic<bool> isDead = false;
  std::atomic<uint32_t> unretainedUses = 0;  // by incomplete command buffers that do not retain it
  std::atomic<uint32_t> pooled = 0;          // how often it is in a pool
  uint64_t serial = 0;
  std::string madeBy;

  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  std::string labelText() const;
  void setLabelText(std::string text);
  std::string describe() const;  // "MTLBuffer 'keys'"
  void finish() {}

  // Methods of every object.
  Object* retainMessage();
  void releaseMessage();
  unsigned long retainCount() { return static_cast<unsigned long>(references.load()); }
  bool respondsToSelector(SEL selector) { return isa->methods.contains(selector); }
  void* methodSignature(SEL) { return nullptr; }
  Object* init() { return this; }
  void setLabel(Object* text);

 private:
  std::string label_;
};

void retain(Object* object);
void release(Object* object);
// Transfers a reference to the calling thread's innermost pool.
void autorelease(Object* object);
// Whether the calling thread has a pool. Metal may need one internally, so every call to Metal must have one.
bool hasPool();

Object* enlist(Object* object, objc_class* isa);

// A new object, owned by the caller.
template <typename T, typename... A>
T* make(A&&... arguments) {
  startRuntime();
  return static_cast<T*>(enlist(new T(std::forward<A>(arguments)...), classOf<T>));
}

template <typename T>
T* autoreleased(T* object) {
  if (object) autorelease(object);
  return object;
}

// An owned reference.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) retain(object_);
  }
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) release(object_);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

// What a getter returns for an object that it keeps: valid until the caller's pool is drained.
template <typename T>
T* retainedInPool(const Ref<T>& kept) {
  if (kept) retain(kept.get());
  return autoreleased(kept.get());
}

// The argument of the current message: null, with a violation, if it is not a live object of the class.
Object* usableObject(Object* object, objc_class* wanted);
template <typename T>
T* usable(T* object) {
  return static_cast<T*>(usableObject(object, classOf<T>));
}

// Frees deallocated objects that are no longer referenced.
void emptyQuarantine();

struct SoftString : Object {
  std::string text;

  static SoftString* withCString(const char* characters, unsigned long encoding);
  const char* utf8String() { return text.c_str(); }
};
SoftString* makeString(std::string_view text);
SoftString* pooledString(std::string_view text);
// An argument of the current message: empty for nil, and, with a violation, for an object that is not a live string.
std::optional<std::string> textOf(Object* string);

// How a data member is passed in a message.
template <typename V>
struct Passed {
  using Type = V;
  static V get(V value) { return value; }
  static V set(V value) { return value; }
};
template <typename T>
struct Passed<Ref<T>> {
  using Type = T*;
  static T* get(const Ref<T>& kept) { return retainedInPool(kept); }
  static Ref<T> set(T* object) { return Ref<T>(usable(object)); }
};
template <typename V>
struct Passed<std::atomic<V>> {
  using Type = V;
  static V get(const std::atomic<V>& value) { return value; }
};
template <>
struct Passed<std::string> {
  using Type = Object*;
  static Object* get(const std::string& text) { return pooledString(text); }
};

// The functions that a message jumps to, for a method, a data member and a class method.
template <typename Member>
struct Function;
template <typename T, typename R, typename... A>
struct Function<R (T::*)(A...)> {
  using Return = R;
  template <typename Self, auto M>
  static R call(Self* self, SEL, A... arguments) {
    const At inside(Place::inside);
    return (self->*M)(arguments...);
  }
};
template <typename T, typename V>
struct Function<V T::*> {
  using Return = typename Passed<V>::Type;
  template <typename Self, auto M>
  static Return call(Self* self, SEL) {
    const At inside(Place::inside);
    return Passed<V>::get(self->*M);
  }
  template <typename Self, auto M>
  static void set(Self* self, SEL, Return value) {
    const At inside(Place::inside);
    self->*M = Passed<V>::set(value);
  }
};
template <typename R, typename... A>
struct Function<R (*)(A...)> {
  template <auto F>
  static R call(Class, SEL, A... arguments) {
    const At inside(Place::inside);
    return F(arguments...);
  }
};

template <typename T>
class ClassBuilder {
 public:
  explicit ClassBuilder(const char* name) : class_(objc_lookUpClass(name)) {
    classOf<T> = class_;
    class_->finish = [](Object* object) { static_cast<T*>(object)->finish(); };
    class_->destroy = [](Object* object) { delete static_cast<T*>(object); };
    on<&T::retainMessage>("retain").template on<&T::releaseMessage>("release");
    on<&T::retainCount>("retainCount").template on<&T::init>("init").template on<&T::setLabel>("setLabel:");
    on<&T::respondsToSelector>("respondsToSelector:");
    on<&T::methodSignature>("methodSignatureForSelector:");
  }

  template <auto Member>
  ClassBuilder& on(const char* selector) {
    using Called = Function<decltype(Member)>;
    using Return = typename Called::Return;
    const SEL name = add(class_, selector, &Called::template call<T, Member>);
    if constexpr (std::is_class_v<Return>) {
      if (sizeof(Return) > 16) noteStructSelector(name);
    }
    return *this;
  }
  template <auto Member>
  ClassBuilder& sets(const char* selector) {
    add(class_, selector, &Function<decltype(Member)>::template set<T, Member>);
    return *this;
  }
  template <auto Called>
  ClassBuilder& onClass(const char* selector) {
    add(class_->isa, selector, &Function<decltype(Called)>::template call<Called>);
    return *this;
  }
  ClassBuilder& withAlloc() {
    class_->make = []() -> Object* {
      const At inside(Place::inside);
      return softmetal::make<T>();
    };
    add(
        class_->isa, "alloc", +[](Class self, SEL) -> Object* { return self->make(); });
    return *this;
  }

 private:
  template <typename Pointer>
  static SEL add(objc_class* to, const char* selector, Pointer function) {
    const SEL name = sel_registerName(selector);
    to->methods[name].function = reinterpret_cast<void*>(function);
    return name;
  }
  objc_class* class_;
};

template <typename T>
ClassBuilder<T> define(const char* name) {
  return ClassBuilder<T>(name);
}

void defineFoundation();
void defineDevice();
void defineBuffers();
void defineLibraries();
void defineCommands();
void defineCounters();
void defineEncoder();

}  // namespace softmetal
