#include "SoftFoundation.hpp"

namespace softmetal {

namespace {

constexpr unsigned long kUTF8 = 4;

bool isUTF8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t count = first < 0x80   ? 1
                         : first < 0xC2 ? 0
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF5 ? 4
                                        : 0;
    if (count == 0 || i + count > text.size()) return false;
    uint32_t point = count == 1 ? first : first & (0x7Fu >> count);
    for (size_t k = 1; k < count; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3F);
    }
    const uint32_t least = count == 3 ? 0x800 : count == 4 ? 0x10000 : 0;
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    i += count;
  }
  return true;
}

// Based on a test's description.
struct SoftBundle : Object {
  std::string path, resources;

  static SoftBundle* main() {
    const BundleDescription about = mainBundle();
    auto* bundle = make<SoftBundle>();
    bundle->path = about.path;
    bundle->resources = about.resources.empty() ? about.path : about.resources;
    return autoreleased(bundle);
  }
};

}  // namespace

SoftString* makeString(std::string_view text) {
  auto* string = make<SoftString>();
  string->text = text;
  string->setLabelText(text.size() > 60 ? std::string(text.substr(0, 57)) + "..." : std::string(text));
  return string;
}

SoftString* pooledString(std::string_view text) {
  return autoreleased(makeString(text));
}

std::optional<std::string> textOf(Object* string) {
  if (!string) return std::nullopt;
  auto* const checked = usable(static_cast<SoftString*>(string));
  if (!checked) return std::nullopt;
  return checked->text;
}

SoftString* SoftString::withCString(const char* characters, unsigned long encoding) {
  if (encoding != kUTF8)
    return violate("an NSString was requested in encoding {}; SoftMetal knows UTF-8 (4)", encoding);
  if (!characters) return violate("an NSString was made from a null pointer; Apple throws an exception");
  return isUTF8(characters) ? pooledString(characters) : nullptr;
}

SoftArray* makeArray(std::vector<Ref<Object>> items) {
  auto* array = make<SoftArray>();
  array->items = std::move(items);
  return array;
}

Object* SoftArray::objectAtIndex(unsigned long index) {
  if (index < items.size()) return items[index].get();
  return violate("object {} of an NSArray of {} was requested; Apple throws an exception", index, items.size());
}

SoftError* makeError(std::string_view domain, long code, std::string_view description) {
  auto* error = make<SoftError>();
  error->domain = domain;
  error->code = code;
  error->description = description;
  error->setLabelText(fmt::format("{} {}: {}", domain, code, description));
  return error;
}

std::nullptr_t giveError(SoftError** into, std::string_view domain, long code, std::string_view description) {
  if (into) *into = autoreleased(makeError(domain, code, description));
  return nullptr;
}

SoftError* SoftError::with(Object* domain, long code, Object*) {
  const std::string name = textOf(domain).value_or("");
  return autoreleased(makeError(name, code, fmt::format("The operation couldn't be completed. ({} {})", name, code)));
}

SoftURL* SoftURL::fileURLWithPath(Object* path) {
  const auto text = textOf(path);
  if (!text) return violate("fileURLWithPath: was given nil; Apple throws an exception");
  auto* url = make<SoftURL>();
  url->path = *text;
  url->setLabelText(*text);
  return autoreleased(url);
}

void defineFoundation() {
  define<SoftString>("NSString")
      .onClass<&SoftString::withCString>("stringWithCString:encoding:")
      .on<&SoftString::utf8String>("UTF8String");
  define<SoftArray>("NSArray").on<&SoftArray::count>("count").on<&SoftArray::objectAtIndex>("objectAtIndex:");
  define<SoftError>("NSError")
      .onClass<&SoftError::with>("errorWithDomain:code:userInfo:")
      .on<&SoftError::code>("code")
      .on<&SoftError::domain>("domain")
      .on<&SoftError::description>("localizedDescription");
  define<SoftURL>("NSURL").onClass<&SoftURL::fileURLWithPath>("fileURLWithPath:");
  define<SoftBundle>("NSBundle")
      .onClass<&SoftBundle::main>("mainBundle")
      .on<&SoftBundle::path>("bundlePath")
      .on<&SoftBundle::resources>("resourcePath");
}

}  // namespace softmetal
