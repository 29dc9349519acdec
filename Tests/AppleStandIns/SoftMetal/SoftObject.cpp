#include "SoftObject.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>

#include "SoftMetal.hpp"
#include "SoftStrings.hpp"
#include "State.hpp"

namespace softmetal {

namespace {

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

}  // namespace

Object* enlist(Object* object, objc_class* isa) {
  object->isa = isa;
  object->madeBy = lastMessage();
  std::lock_guard lock(objects().mutex);
  object->serial = objects().nextSerial++;
  objects().live.emplace(object->serial, object);
  return object;
}

void retain(Object* object) {
  if (object->references.fetch_add(1) > 0) return;
  object->references.fetch_sub(1);
  violate(fmt::format("{} was retained after it was deallocated", object->describe()));
}

void release(Object* object) {
  const int64_t before = object->references.fetch_sub(1);
  if (before > 1) return;
  if (before < 1) {
    object->references.fetch_add(1);
    violate(fmt::format("{} is over-released: it is deallocated already", object->describe()));
    return;
  }
  if (object->unretainedUses > 0) {
    violate(fmt::format("{} was deallocated while a command buffer that does not retain it still uses it",
                        object->describe()));
  }
  object->isDead = true;
  bury(object);
}

Object* usableObject(Object* object, objc_class* wanted, const char* what) {
  if (!object) {
    violate(fmt::format("{} was given nil, expected {}", what, wanted->name));
    return nullptr;
  }
  if (isConstantStringClass(object->isa) || object->isa != wanted) {
    violate(fmt::format("{} was given {}, expected {}", what,
                        isConstantStringClass(object->isa) ? "a constant string" : object->describe(), wanted->name));
    return nullptr;
  }
  if (object->isDead) {
    violate(fmt::format("{} was given {}, which is deallocated", what, object->describe()));
    return nullptr;
  }
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
    violate(fmt::format("{} was deallocated on a thread without an autorelease pool", describe()));
  }
  release(this);
}
Object* Object::autoreleaseMessage() {
  autorelease(this);
  return this;
}
unsigned long Object::retainCountMessage() {
  return static_cast<unsigned long>(references.load());
}
unsigned long Object::hashMessage() {
  return reinterpret_cast<unsigned long>(this) >> 4;
}
bool Object::isEqualMessage(Object* other) {
  return this == other;
}
Object* Object::descriptionMessage() {
  return pooledString(isa == classOf<SoftString> ? labelText() : describe());
}
bool Object::respondsMessage(SEL selector) {
  return isa->find(selector) != nullptr;
}
void* Object::signatureMessage(SEL) {
  return nullptr;
}
Object* Object::initMessage() {
  return this;
}
// Correct for immutable objects.
Object* Object::copyMessage() {
  retain(this);
  return this;
}

Object* Object::labelMessage() {
  const std::string text = labelText();
  return text.empty() ? nullptr : pooledString(text);
}
void Object::setLabelMessage(Object* text) {
  setLabelText(textOf(text, "setLabel:").value_or(""));
}

std::vector<std::string> liveObjects() {
  return liveObjectsSince(Mark{});
}

size_t liveCount() {
  waitUntilIdle();
  std::lock_guard lock(objects().mutex);
  return objects().live.size();
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
  for (const std::string& text : leaked) violate(fmt::format("leaked: {}", text));
  return leaked.size();
}

}  // namespace softmetal
