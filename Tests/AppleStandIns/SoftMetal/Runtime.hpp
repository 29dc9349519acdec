// The part of the Objective-C runtime that metal-cpp uses: classes are tables from selectors to C++ functions. A member
// function becomes a method: define<Buffer>("MTLBuffer").on<&Buffer::length>("length").
#pragma once
#include <objc/runtime.h>

#include <atomic>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "SoftMetal.hpp"

namespace softmetal {

struct Object;

struct Method {
  void* function = nullptr;
  bool (*isThere)() = nullptr;  // null: always
  std::atomic<bool> wasSent = false;
};

}  // namespace softmetal

// objc/runtime.h declares this name.
struct objc_class {
  objc_class* isa = nullptr;  // its metaclass, with the class methods
  std::string name;
  bool isMeta = false;
  bool isMetal = false;  // MTL…, whose methods may autorelease anything
  std::unordered_map<SEL, softmetal::Method> methods;
  softmetal::Object* (*make)() = nullptr;
  void (*finish)(softmetal::Object*) = nullptr;
  void (*destroy)(softmetal::Object*) = nullptr;

  const softmetal::Method* find(SEL selector) const;
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
// The last message that the calling thread sent, such as "-[MTLDevice newCommandQueue]"; shows where objects come from.
std::string lastMessage();
void setLastMessage(const char* function);

// For messages to nil that return a struct in memory rather than zero in registers.
void setNilFunction(SEL selector, void* function);
// Methods that every class implements.
void addClassMethods(objc_class* defined);

template <typename Member>
struct MemberTraits;
template <typename T, typename R, typename... A>
struct MemberTraits<R (T::*)(A...)> {
  using Return = R;
  template <typename Self, auto M>
  static R call(Self* self, SEL, A... arguments) {
    const At inside(Place::inside);
    return (self->*M)(arguments...);
  }
  static R nil(void*, SEL, A...) { return R(); }
};
template <typename R, typename... A>
struct MemberTraits<R (*)(A...)> {
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
    addClassMethods(class_);
    inheritFromObject();
  }

  template <auto Member>
  ClassBuilder& on(const char* selector, bool (*isThere)() = nullptr) {
    using Traits = MemberTraits<decltype(Member)>;
    const SEL name = sel_registerName(selector);
    Method& method = class_->methods[name];
    method.function = reinterpret_cast<void*>(&Traits::template call<T, Member>);
    method.isThere = isThere;
    if constexpr (std::is_class_v<typename Traits::Return>) {
      if (sizeof(typename Traits::Return) > 16) setNilFunction(name, reinterpret_cast<void*>(&Traits::nil));
    }
    return *this;
  }

  template <auto Function>
  ClassBuilder& onClass(const char* selector) {
    using Traits = MemberTraits<decltype(Function)>;
    class_->isa->methods[sel_registerName(selector)].function =
        reinterpret_cast<void*>(&Traits::template call<Function>);
    return *this;
  }

  // Allows creation with alloc.
  ClassBuilder& withAlloc();

 private:
  void inheritFromObject();
  objc_class* class_;
};

template <typename T>
ClassBuilder<T> define(const char* name) {
  return ClassBuilder<T>(name);
}

std::vector<std::string> methodsWhere(bool (*test)(const Method&));
std::vector<std::string> unknownMessages();

void defineFoundation();
void defineBundles();
void defineDevice();
void defineLibraries();
void definePipelines();
void defineCommands();
void defineCounters();
void defineEncoder();

}  // namespace softmetal
