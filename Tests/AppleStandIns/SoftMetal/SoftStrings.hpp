// NSString: created at run time, or by MTLSTR at compile time.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "SoftObject.hpp"

namespace softmetal {

struct SoftString : Object {
  std::string text;

  static SoftString* string();
  static SoftString* withString(Object* other);
  static SoftString* withCString(const char* characters, unsigned long encoding);
  Object* initWithString(Object* other);
  Object* initWithCString(const char* characters, unsigned long encoding);
  Object* initWithBytes(void* bytes, unsigned long length, unsigned long encoding, bool freeWhenDone);
  unsigned long length();
  unsigned short characterAtIndex(unsigned long index);
  const char* utf8String();
  const char* cString(unsigned long encoding);
  unsigned long lengthOfBytes(unsigned long encoding);
  bool isEqualToString(Object* other);
  Object* appending(Object* other);

  void set(std::string value);
};

// The record that clang generates for MTLSTR("…"). Not an Object: it has no reference count and is never deallocated.
struct ConstantString {
  void* isa;
  int flags;
  const char* characters;
  long length;
};
bool isConstantStringClass(const void* isa);

// An owned string, and one in the calling thread's pool.
SoftString* makeString(std::string_view text);
SoftString* pooledString(std::string_view text);
// Empty for nil, and, with a violation, for an object that is not a live string.
std::optional<std::string> textOf(Object* string, const char* what);

}  // namespace softmetal
