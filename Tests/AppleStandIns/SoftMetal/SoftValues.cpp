#include "SoftValues.hpp"

#include <fmt/format.h>

#include "State.hpp"

namespace softmetal {

void defineStrings();
void definePools();

SoftArray* makeArray(std::vector<Ref<Object>> items) {
  auto* array = make<SoftArray>();
  array->items = std::move(items);
  return array;
}

SoftArray* SoftArray::array() {
  return autoreleased(make<SoftArray>());
}
SoftArray* SoftArray::withObject(Object* item) {
  return withObjects(&item, 1);
}
SoftArray* SoftArray::withObjects(Object* const* items, unsigned long count) {
  auto* array = make<SoftArray>();
  array->initWithObjects(items, count);
  return autoreleased(array);
}
Object* SoftArray::initWithObjects(Object* const* objects, unsigned long count) {
  for (unsigned long i = 0; i < count; ++i) {
    if (objects[i]) {
      items.emplace_back(objects[i]);
    } else {
      violate("an NSArray was made with nil in it; Apple throws an exception");
    }
  }
  return this;
}
unsigned long SoftArray::count() {
  return items.size();
}
Object* SoftArray::objectAtIndex(unsigned long index) {
  if (index < items.size()) return items[index].get();
  violate(fmt::format("object {} of an NSArray of {} was requested; Apple throws an exception", index, items.size()));
  return nullptr;
}

Object* SoftEnumerator::nextObject() {
  return next < items.size() ? items[next++].get() : nullptr;
}
Object* SoftEnumerator::allObjects() {
  std::vector<Ref<Object>> rest(items.begin() + static_cast<std::ptrdiff_t>(next), items.end());
  next = items.size();
  return autoreleased(makeArray(std::move(rest)));
}

SoftDictionary* SoftDictionary::dictionary() {
  return autoreleased(make<SoftDictionary>());
}
SoftDictionary* SoftDictionary::withObject(Object* value, Object* key) {
  return withObjects(&value, &key, 1);
}
SoftDictionary* SoftDictionary::withObjects(Object* const* values, Object* const* keys, unsigned long count) {
  auto* dictionary = make<SoftDictionary>();
  for (unsigned long i = 0; i < count; ++i) {
    if (values[i] && textOf(keys[i], "a key of an NSDictionary")) {
      dictionary->entries.emplace_back(Ref<Object>(keys[i]), Ref<Object>(values[i]));
    }
  }
  return autoreleased(dictionary);
}
unsigned long SoftDictionary::count() {
  return entries.size();
}
Object* SoftDictionary::objectForKey(Object* key) {
  const auto wanted = textOf(key, "objectForKey:");
  for (const auto& [name, value] : entries) {
    if (wanted && textOf(name.get(), "objectForKey:") == wanted) return value.get();
  }
  return nullptr;
}
Object* SoftDictionary::keyEnumerator() {
  auto* enumerator = make<SoftEnumerator>();
  for (const auto& [name, value] : entries) enumerator->items.push_back(name);
  return autoreleased(enumerator);
}

template <typename T>
SoftNumber* SoftNumber::with(T value) {
  auto* number = make<SoftNumber>();
  number->isReal = std::is_floating_point_v<T>;
  number->whole = static_cast<long long>(value);
  number->real = static_cast<double>(value);
  return autoreleased(number);
}
Object* SoftNumber::stringValue() {
  return pooledString(valueText(this));
}
std::string valueText(Object* value) {
  if (!value) return "";
  if (value->isa == classOf<SoftNumber>) {
    const auto* number = static_cast<SoftNumber*>(value);
    return number->isReal ? fmt::format("{}", number->real) : fmt::format("{}", number->whole);
  }
  return textOf(value, "a value").value_or("");
}

SoftError* makeError(std::string_view domain, long code, std::string_view description) {
  auto* error = make<SoftError>();
  error->domain = Ref<SoftString>::adopt(makeString(domain));
  error->code = code;
  error->description = Ref<SoftString>::adopt(makeString(description));
  error->setLabelText(fmt::format("{} {}: {}", domain, code, description));
  return error;
}
void giveError(SoftError** into, std::string_view domain, long code, std::string_view description) {
  if (into) *into = autoreleased(makeError(domain, code, description));
}
SoftError* SoftError::with(Object* domain, long code, Object* info) {
  const std::string name = textOf(domain, "errorWithDomain:code:userInfo:").value_or("");
  auto* error =
      autoreleased(makeError(name, code, fmt::format("The operation couldn't be completed. ({} {})", name, code)));
  if (info) error->info = Ref<SoftDictionary>(usable(static_cast<SoftDictionary*>(info), "an NSError's userInfo"));
  return error;
}
Object* SoftError::domainMessage() {
  return retainedInPool(domain.get());
}
Object* SoftError::descriptionText() {
  return retainedInPool(description.get());
}
Object* SoftError::userInfo() {
  return info ? retainedInPool(info.get()) : SoftDictionary::dictionary();
}
void SoftError::finish() {
  domain = {};
  description = {};
  info = {};
}

SoftURL* pooledURL(const std::string& path) {
  auto* url = make<SoftURL>();
  url->path = path;
  url->setLabelText(path);
  return autoreleased(url);
}
SoftURL* SoftURL::fileURLWithPath(Object* path) {
  const auto text = textOf(path, "fileURLWithPath:");
  if (!text) {
    violate("fileURLWithPath: was given nil; Apple throws an exception");
    return nullptr;
  }
  return pooledURL(*text);
}
Object* SoftURL::initFileURLWithPath(Object* string) {
  path = textOf(string, "initFileURLWithPath:").value_or("");
  setLabelText(path);
  return this;
}

void defineFoundation() {
  defineStrings();
  definePools();
  define<Object>("NSObject").withAlloc();
  define<SoftArray>("NSArray")
      .withAlloc()
      .onClass<&SoftArray::array>("array")
      .onClass<&SoftArray::withObject>("arrayWithObject:")
      .onClass<&SoftArray::withObjects>("arrayWithObjects:count:")
      .on<&SoftArray::initWithObjects>("initWithObjects:count:")
      .on<&SoftArray::copyMessage>("copy")
      .on<&SoftArray::count>("count")
      .on<&SoftArray::objectAtIndex>("objectAtIndex:");
  define<SoftEnumerator>("NSEnumerator")
      .on<&SoftEnumerator::nextObject>("nextObject")
      .on<&SoftEnumerator::allObjects>("allObjects");
  define<SoftDictionary>("NSDictionary")
      .withAlloc()
      .onClass<&SoftDictionary::dictionary>("dictionary")
      .onClass<&SoftDictionary::withObject>("dictionaryWithObject:forKey:")
      .onClass<&SoftDictionary::withObjects>("dictionaryWithObjects:forKeys:count:")
      .on<&SoftDictionary::copyMessage>("copy")
      .on<&SoftDictionary::count>("count")
      .on<&SoftDictionary::objectForKey>("objectForKey:")
      .on<&SoftDictionary::keyEnumerator>("keyEnumerator");
  define<SoftNumber>("NSNumber")
      .onClass<&SoftNumber::with<bool>>("numberWithBool:")
      .onClass<&SoftNumber::with<int>>("numberWithInt:")
      .onClass<&SoftNumber::with<unsigned int>>("numberWithUnsignedInt:")
      .onClass<&SoftNumber::with<long>>("numberWithLong:")
      .onClass<&SoftNumber::with<unsigned long>>("numberWithUnsignedLong:")
      .onClass<&SoftNumber::with<double>>("numberWithDouble:")
      .onClass<&SoftNumber::with<float>>("numberWithFloat:")
      .on<&SoftNumber::as<bool>>("boolValue")
      .on<&SoftNumber::as<int>>("intValue")
      .on<&SoftNumber::as<unsigned int>>("unsignedIntValue")
      .on<&SoftNumber::as<long>>("integerValue")
      .on<&SoftNumber::as<unsigned long>>("unsignedIntegerValue")
      .on<&SoftNumber::as<double>>("doubleValue")
      .on<&SoftNumber::as<float>>("floatValue")
      .on<&SoftNumber::stringValue>("stringValue");
  define<SoftError>("NSError")
      .onClass<&SoftError::with>("errorWithDomain:code:userInfo:")
      .on<&SoftError::copyMessage>("copy")
      .on<&SoftError::codeMessage>("code")
      .on<&SoftError::domainMessage>("domain")
      .on<&SoftError::descriptionText>("localizedDescription")
      .on<&SoftError::userInfo>("userInfo");
  define<SoftURL>("NSURL")
      .withAlloc()
      .onClass<&SoftURL::fileURLWithPath>("fileURLWithPath:")
      .on<&SoftURL::initFileURLWithPath>("initFileURLWithPath:")
      .on<&SoftURL::copyMessage>("copy")
      .on<&SoftURL::fileSystemRepresentation>("fileSystemRepresentation")
      .on<&SoftURL::pathMessage>("path");
}

}  // namespace softmetal
