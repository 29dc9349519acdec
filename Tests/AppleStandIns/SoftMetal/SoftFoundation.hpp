// NSArray, NSError and NSURL.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "SoftObject.hpp"

namespace softmetal {

struct SoftArray : Object {
  std::vector<Ref<Object>> items;

  unsigned long count() { return items.size(); }
  Object* objectAtIndex(unsigned long index);
  void finish() { items.clear(); }
};
SoftArray* makeArray(std::vector<Ref<Object>> items);

struct SoftError : Object {
  std::string domain, description;
  long code = 0;

  static SoftError* with(Object* domain, long code, Object* info);
};
inline constexpr std::string_view kCommandBufferErrorDomain = "MTLCommandBufferErrorDomain";
SoftError* makeError(std::string_view domain, long code, std::string_view description);
// Sets the caller's NSError**, if there is one, to an error in the thread's pool. Returns null, as the caller does.
std::nullptr_t giveError(SoftError** into, std::string_view domain, long code, std::string_view description);

struct SoftURL : Object {
  std::string path;

  static SoftURL* fileURLWithPath(Object* path);
};

}  // namespace softmetal
