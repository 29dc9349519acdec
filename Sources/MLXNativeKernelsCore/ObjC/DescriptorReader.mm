#import "ObjC/DescriptorReader.hpp"

#import "ObjC/ErrorBridge.hpp"
#include "Support/Errors.hpp"

namespace mnk::objc {

void Reading::fail(std::string what, std::string got, std::string expected, std::string fix) {
  fail(Error{.op = op_,
             .what = std::move(what),
             .got = std::move(got),
             .expected = std::move(expected),
             .fix = std::move(fix)});
}

bool Reading::needed(id object, std::string_view name) {
  if (object) return true;
  fail(fmt::format("nil was passed for {}", name), "nil", "an object", fmt::format("Pass {}.", name));
  return false;
}

bool Reading::isA(Class kind, id object, std::string_view name) {
  if ([object isKindOfClass:kind]) return true;
  failForClass(object, name, textFrom(NSStringFromClass(kind)));
  return false;
}

void Reading::failForClass(id object, std::string_view name, std::string classes) {
  fail(fmt::format("an object of another class was passed for {}", name),
       object ? textFrom(NSStringFromClass([object class])) : "nil", std::move(classes), "Pass objects of this class.");
}

void Reading::unknown(int64_t number, std::string_view name, std::string_view type) {
  fail(fmt::format("the number for {} is unknown", name), fmt::format("{}", number), fmt::format("a case of {}", type),
       "Use the constants of the framework's headers.");
}

uint32_t Reading::narrow(NSUInteger value, std::string_view name) {
  if (std::in_range<uint32_t>(value)) return static_cast<uint32_t>(value);
  fail(fmt::format("the number for {} is out of range", name), fmt::format("{}", value), "0 to 4294967295",
       "Pass a number in this range.");
  return 0;
}

uint64_t Reading::checked(NSNumber *number, std::string_view name, int64_t least, uint64_t most) {
  if (!isA([NSNumber class], number, name)) return 0;
  const bool isNegative = [number compare:@0] == NSOrderedAscending;
  const auto isWhole = [number isEqualToNumber:isNegative ? @(number.longLongValue) : @(number.unsignedLongLongValue)];
  const bool isInRange = isNegative ? number.longLongValue >= least : number.unsignedLongLongValue <= most;
  if (!isWhole || !isInRange) {
    fail(fmt::format("the number for {} is out of range", name), textFrom(number.stringValue),
         fmt::format("a whole number from {} to {}", least, most), "Pass a number in this range.");
    return 0;
  }
  return isNegative ? static_cast<uint64_t>(number.longLongValue) : number.unsignedLongLongValue;
}

std::vector<float> Reading::floats(NSArray<NSNumber *> *list, std::string_view name) {
  std::vector<float> all;
  all.reserve(list.count);
  for (NSNumber *number in list) {
    if (!isA([NSNumber class], number, name)) return {};
    all.push_back(number.floatValue);
  }
  return all;
}

const char *Reading::text(NSString *string, std::string_view name) {
  std::string text = textFrom(string);
  if (text.find('\0') != std::string::npos) {
    fail(fmt::format("{} has a null character", name), fmt::format("one after {} bytes", text.find('\0')),
         "text without one", "Remove it.");
  }
  return keep(std::move(text));
}

const char *Reading::path(NSURL *url) {
  return keep(take(pathFrom(url, op_)));
}

Shape Reading::shape(NSArray<NSNumber *> *extents) {
  if (!needed(extents, "the shape")) return {};
  if (extents.count > Shape::kMaxRank) {
    fail("the shape has too many extents", fmt::format("{}", extents.count), fmt::format("at most {}", Shape::kMaxRank),
         "Pass a shape of fewer axes.");
    return {};
  }
  const auto numbers = integers<uint64_t>(extents, "an extent of the shape");
  return failed() ? Shape() : take(Shape::make(numbers));
}

}  // namespace mnk::objc
