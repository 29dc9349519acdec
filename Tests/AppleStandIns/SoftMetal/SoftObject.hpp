// Objects with an isa, a reference count and a label. All live ones are listed; deallocated ones stay in memory for a
// while, so that a message to one is reported with its name.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "Runtime.hpp"

namespace softmetal {

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
  Object* autoreleaseMessage();
  unsigned long retainCountMessage();
  unsigned long hashMessage();
  bool isEqualMessage(Object* other);
  Object* descriptionMessage();
  bool respondsMessage(SEL selector);
  void* signatureMessage(SEL selector);
  Object* initMessage();
  Object* copyMessage();
  Object* labelMessage();
  void setLabelMessage(Object* text);

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

// What a getter returns for an object that it keeps: valid until the caller's pool is drained.
template <typename T>
T* retainedInPool(T* object) {
  if (object) retain(object);
  return autoreleased(object);
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

// The argument of a message: null, with a violation, if it is not a live object of the class.
Object* usableObject(Object* object, objc_class* wanted, const char* what);
template <typename T>
T* usable(T* object, const char* what) {
  return static_cast<T*>(usableObject(object, classOf<T>, what));
}

// Frees deallocated objects that are no longer referenced.
void emptyQuarantine();

struct SoftPool : Object {
  std::vector<Object*> objects;
  SoftPool* outer = nullptr;  // of the same thread, while it is open
  bool isOpen = false;

  Object* initPool();
  void drain();
  void addObject(Object* object);
  Object* retainPool();
  void finish() { drain(); }
};

template <typename T>
ClassBuilder<T>& ClassBuilder<T>::withAlloc() {
  class_->make = []() -> Object* {
    const At inside(Place::inside);
    return make<T>();
  };
  class_->isa->methods[sel_registerName("alloc")].function =
      reinterpret_cast<void*>(+[](Class self, SEL) -> Object* { return self->make(); });
  return *this;
}

template <typename T>
void ClassBuilder<T>::inheritFromObject() {
  on<&T::retainMessage>("retain").template on<&T::releaseMessage>("release");
  this->template on<&T::autoreleaseMessage>("autorelease").template on<&T::retainCountMessage>("retainCount");
  this->template on<&T::hashMessage>("hash").template on<&T::isEqualMessage>("isEqual:");
  this->template on<&T::descriptionMessage>("description").template on<&T::descriptionMessage>("debugDescription");
  this->template on<&T::respondsMessage>("respondsToSelector:");
  this->template on<&T::signatureMessage>("methodSignatureForSelector:");
  this->template on<&T::initMessage>("init");
}

}  // namespace softmetal
