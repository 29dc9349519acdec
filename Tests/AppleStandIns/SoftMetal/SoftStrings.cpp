#include "SoftStrings.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "State.hpp"

// The class that the compiler gives to MTLSTR strings; only its address matters.
extern "C" __attribute__((weak, visibility("hidden"))) int __CFConstantStringClassReference[32] = {};

namespace softmetal {

namespace {

constexpr unsigned long kASCII = 1, kUTF8 = 4;

// UTF-16 units, or empty if the text is not UTF-8.
std::optional<std::vector<unsigned short>> unitsOf(std::string_view text) {
  std::vector<unsigned short> units;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t count = first < 0x80   ? 1
                         : first < 0xC2 ? 0
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF5 ? 4
                                        : 0;
    if (count == 0 || i + count > text.size()) return std::nullopt;
    uint32_t point = count == 1 ? first : first & (0x7Fu >> count);
    for (size_t k = 1; k < count; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return std::nullopt;
      point = point << 6 | (next & 0x3F);
    }
    const uint32_t least = count == 3 ? 0x800 : count == 4 ? 0x10000 : 0;
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return std::nullopt;
    if (point >= 0x10000) {
      units.push_back(static_cast<unsigned short>(0xD7C0 + (point >> 10)));
      units.push_back(static_cast<unsigned short>(0xDC00 | (point & 0x3FF)));
    } else {
      units.push_back(static_cast<unsigned short>(point));
    }
    i += count;
  }
  return units;
}

bool isKnown(unsigned long encoding) {
  if (encoding == kASCII || encoding == kUTF8) return true;
  violate(fmt::format("an NSString was requested in encoding {}; SoftMetal knows ASCII (1) and UTF-8 (4)", encoding));
  return false;
}

bool isText(const char* characters, unsigned long encoding) {
  if (!isKnown(encoding)) return false;
  if (!characters) {
    violate("an NSString was made from a null pointer; Apple throws an exception");
    return false;
  }
  for (const char* c = characters; encoding == kASCII && *c; ++c) {
    if (static_cast<signed char>(*c) < 0) return false;
  }
  return unitsOf(characters).has_value();
}

}  // namespace

bool isConstantStringClass(const void* isa) {
  return isa == __CFConstantStringClassReference;
}

void SoftString::set(std::string value) {
  text = std::move(value);
  setLabelText(text.size() > 60 ? text.substr(0, 57) + "..." : text);
}

SoftString* makeString(std::string_view text) {
  auto* string = make<SoftString>();
  string->set(std::string(text));
  return string;
}

SoftString* pooledString(std::string_view text) {
  return autoreleased(makeString(text));
}

std::optional<std::string> textOf(Object* string, const char* what) {
  if (!string) return std::nullopt;
  if (isConstantStringClass(string->isa)) return reinterpret_cast<ConstantString*>(string)->characters;
  auto* const usableString = static_cast<SoftString*>(usableObject(string, classOf<SoftString>, what));
  if (!usableString) return std::nullopt;
  return usableString->text;
}

SoftString* SoftString::string() {
  return pooledString("");
}
SoftString* SoftString::withString(Object* other) {
  return pooledString(textOf(other, "stringWithString:").value_or(""));
}
SoftString* SoftString::withCString(const char* characters, unsigned long encoding) {
  return isText(characters, encoding) ? pooledString(characters) : nullptr;
}
Object* SoftString::initWithString(Object* other) {
  set(textOf(other, "initWithString:").value_or(""));
  return this;
}
Object* SoftString::initWithCString(const char* characters, unsigned long encoding) {
  if (isText(characters, encoding)) {
    set(characters);
    return this;
  }
  release(this);  // as a failing initializer does
  return nullptr;
}
Object* SoftString::initWithBytes(void* bytes, unsigned long length, unsigned long encoding, bool freeWhenDone) {
  const std::string value(static_cast<const char*>(bytes), length);
  if (freeWhenDone) std::free(bytes);
  return initWithCString(value.c_str(), encoding);
}
unsigned long SoftString::length() {
  return unitsOf(text).value_or(std::vector<unsigned short>()).size();
}
unsigned short SoftString::characterAtIndex(unsigned long index) {
  const auto units = unitsOf(text).value_or(std::vector<unsigned short>());
  if (index < units.size()) return units[index];
  violate(fmt::format("character {} of {} was requested, which has {}", index, describe(), units.size()));
  return 0;
}
const char* SoftString::utf8String() {
  return text.c_str();
}
const char* SoftString::cString(unsigned long encoding) {
  return isKnown(encoding) ? text.c_str() : nullptr;
}
unsigned long SoftString::lengthOfBytes(unsigned long encoding) {
  return isKnown(encoding) ? text.size() : 0;
}
bool SoftString::isEqualToString(Object* other) {
  const auto theirs = textOf(other, "isEqualToString:");
  return theirs && *theirs == text;
}
Object* SoftString::appending(Object* other) {
  return pooledString(text + textOf(other, "stringByAppendingString:").value_or(""));
}

void defineStrings() {
  define<SoftString>("NSString")
      .withAlloc()
      .onClass<&SoftString::string>("string")
      .onClass<&SoftString::withString>("stringWithString:")
      .onClass<&SoftString::withCString>("stringWithCString:encoding:")
      .on<&SoftString::copyMessage>("copy")
      .on<&SoftString::initWithString>("initWithString:")
      .on<&SoftString::initWithCString>("initWithCString:encoding:")
      .on<&SoftString::initWithBytes>("initWithBytesNoCopy:length:encoding:freeWhenDone:")
      .on<&SoftString::length>("length")
      .on<&SoftString::characterAtIndex>("characterAtIndex:")
      .on<&SoftString::utf8String>("UTF8String")
      .on<&SoftString::utf8String>("fileSystemRepresentation")
      .on<&SoftString::cString>("cStringUsingEncoding:")
      .on<&SoftString::lengthOfBytes>("lengthOfBytesUsingEncoding:")
      .on<&SoftString::isEqualToString>("isEqualToString:")
      .on<&SoftString::isEqualToString>("isEqual:")
      .on<&SoftString::appending>("stringByAppendingString:");

  objc_class* const constants = objc_lookUpClass("__NSCFConstantString");
  classOf<ConstantString> = constants;
  const auto add = [&](const char* selector, auto* function) {
    constants->methods[sel_registerName(selector)].function = reinterpret_cast<void*>(function);
  };
  add(
      "retain", +[](ConstantString* self, SEL) { return self; });
  add(
      "release", +[](ConstantString*, SEL) {});
  add(
      "autorelease", +[](ConstantString* self, SEL) { return self; });
  add(
      "copy", +[](ConstantString* self, SEL) { return self; });
  add(
      "UTF8String", +[](ConstantString* self, SEL) { return self->characters; });
  add(
      "length", +[](ConstantString* self, SEL) { return static_cast<unsigned long>(self->length); });
  add(
      "isEqualToString:", +[](ConstantString* self, SEL, Object* other) {
        const auto theirs = textOf(other, "isEqualToString:");
        return theirs && *theirs == self->characters;
      });
}

}  // namespace softmetal
