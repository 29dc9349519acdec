// NSArray, NSDictionary, NSNumber, NSError and NSURL.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "SoftStrings.hpp"

namespace softmetal {

struct SoftArray : Object {
  std::vector<Ref<Object>> items;

  static SoftArray* array();
  static SoftArray* withObject(Object* item);
  static SoftArray* withObjects(Object* const* items, unsigned long count);
  Object* initWithObjects(Object* const* objects, unsigned long count);
  unsigned long count();
  Object* objectAtIndex(unsigned long index);
  void finish() { items.clear(); }
};
SoftArray* makeArray(std::vector<Ref<Object>> items);

struct SoftEnumerator : Object {
  std::vector<Ref<Object>> items;
  size_t next = 0;

  Object* nextObject();
  Object* allObjects();
  void finish() { items.clear(); }
};

struct SoftDictionary : Object {
  std::vector<std::pair<Ref<Object>, Ref<Object>>> entries;  // keys are strings

  static SoftDictionary* dictionary();
  static SoftDictionary* withObject(Object* value, Object* key);
  static SoftDictionary* withObjects(Object* const* values, Object* const* keys, unsigned long count);
  unsigned long count();
  Object* objectForKey(Object* key);
  Object* keyEnumerator();
  void finish() { entries.clear(); }
};

struct SoftNumber : Object {
  bool isReal = false;
  long long whole = 0;
  double real = 0;

  template <typename T>
  static SoftNumber* with(T value);
  template <typename T>
  T as() {
    return isReal ? static_cast<T>(real) : static_cast<T>(whole);
  }
  Object* stringValue();
};
// A string or number as text; empty for other objects.
std::string valueText(Object* value);

struct SoftError : Object {
  Ref<SoftString> domain, description;
  Ref<SoftDictionary> info;
  long code = 0;

  static SoftError* with(Object* domain, long code, Object* info);
  long codeMessage() { return code; }
  Object* domainMessage();
  Object* descriptionText();
  Object* userInfo();
  void finish();
};
inline constexpr std::string_view kLibraryErrorDomain = "MTLLibraryErrorDomain";
inline constexpr std::string_view kCommandBufferErrorDomain = "MTLCommandBufferErrorDomain";
inline constexpr std::string_view kPipelineErrorDomain = "CompilerError";
SoftError* makeError(std::string_view domain, long code, std::string_view description);
// Sets the caller's NSError**, if there is one, to an error in the thread's pool.
void giveError(SoftError** into, std::string_view domain, long code, std::string_view description);

struct SoftURL : Object {
  std::string path;

  static SoftURL* fileURLWithPath(Object* path);
  Object* initFileURLWithPath(Object* path);
  const char* fileSystemRepresentation() { return path.c_str(); }
  Object* pathMessage() { return pooledString(path); }
};
SoftURL* pooledURL(const std::string& path);

}  // namespace softmetal
