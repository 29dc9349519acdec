// Reads properties of descriptors into the core's types. It keeps the first error and continues with zeros, so one
// expression reads a whole descriptor, with one check at the end.
#pragma once
#import <Foundation/Foundation.h>

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::objc {

class Reading {
 public:
  // The op or object that errors name.
  explicit Reading(std::string_view op) : op_(op) {}

  // A count that is 32 bits wide in the core.
  uint32_t narrow(NSUInteger value, std::string_view name);
  // A number that C would take for another one if it were 0.
  template <typename Number>
  Number nonzero(Number value, std::string_view name) {
    if (value == 0) fail(std::string(name) + " is 0", "0", "another number", "Pass the number that is meant.");
    return value;
  }
  // An integer in the range of the type.
  template <std::integral Integer>
  Integer integer(NSNumber* _Nullable number, std::string_view name) {
    return static_cast<Integer>(checked(number, name, static_cast<int64_t>(std::numeric_limits<Integer>::min()),
                                        static_cast<uint64_t>(std::numeric_limits<Integer>::max())));
  }
  template <std::integral Integer>
  std::vector<Integer> integers(NSArray<NSNumber*>* _Nullable list, std::string_view name) {
    std::vector<Integer> all;
    if (!needed(list, name)) return all;
    all.reserve(list.count);
    for (NSNumber* number in list) all.push_back(integer<Integer>(number, name));
    return all;
  }
  std::vector<float> floats(NSArray<NSNumber*>* _Nullable list, std::string_view name);
  Shape shape(NSArray<NSNumber*>* _Nullable extents);
  // A string as C has it, which ends at a null character, and lives as long as the reading.
  const char* _Nonnull text(NSString* _Nullable string, std::string_view name);
  // The path of a file URL, which does so too.
  const char* _Nonnull path(NSURL* _Nullable url);
  // A case of an enum whose numbers are those of another.
  template <typename Enum, typename Input>
  Enum choice(Input input, std::initializer_list<Enum> cases, std::string_view name, std::string_view type) {
    for (const Enum one : cases) {
      if (static_cast<int64_t>(one) == static_cast<int64_t>(input)) return one;
    }
    unknown(static_cast<int64_t>(input), name, type);
    return Enum{};
  }
  // False, with a failure, for an object of another class, which an array may hold at run time.
  bool isA(Class _Nonnull kind, id _Nullable object, std::string_view name);
  // `classes` are those that are expected.
  void failForClass(id _Nullable object, std::string_view name, std::string classes);
  // False, with a failure, for nil.
  bool needed(id _Nullable object, std::string_view name);

  // The value of a Result; records its failure.
  template <typename T>
  T take(Result<T> result) {
    if (result) return std::move(*result);
    fail(std::move(result).error());
    return T{};
  }
  void check(Result<void> result) {
    if (!result) fail(std::move(result).error());
  }
  // Memory that structs of C point to.
  template <typename Number>
  const std::vector<Number>& keep(std::vector<Number> list) {
    return *std::static_pointer_cast<std::vector<Number>>(
        kept_.emplace_back(std::make_shared<std::vector<Number>>(std::move(list))));
  }
  const char* _Nonnull keep(std::string text) {
    return static_cast<std::string*>(kept_.emplace_back(std::make_shared<std::string>(std::move(text))).get())->c_str();
  }
  // The first elements of an array; the others stay as they are.
  template <std::integral Integer, size_t size>
  void fill(Integer (&array)[size], NSArray<NSNumber*>* _Nullable list, std::string_view name) {
    if (!list) return;
    const auto numbers = integers<Integer>(list, name);
    if (numbers.size() > size) {
      return fail("there are too many " + std::string(name), std::to_string(numbers.size()),
                  "at most " + std::to_string(size), "Pass fewer.");
    }
    std::copy(numbers.begin(), numbers.end(), array);
  }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void fail(std::string what, std::string got, std::string expected, std::string fix);

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  // The value that was read, or the first failure.
  template <typename T>
  Result<T> result(T value) const {
    if (error_) return *error_;
    return value;
  }

 private:
  uint64_t checked(NSNumber* _Nullable number, std::string_view name, int64_t least, uint64_t most);
  void unknown(int64_t number, std::string_view name, std::string_view type);

  std::string op_;
  std::optional<Error> error_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace mnk::objc
