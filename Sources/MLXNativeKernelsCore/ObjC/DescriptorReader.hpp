// Reads properties of descriptors into the core's types. It keeps the first error and continues with zeros, so one
// expression reads a whole descriptor, with one check at the end.
#pragma once
#import <Foundation/Foundation.h>

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Shape.hpp"

namespace mnk::objc {

class Reading {
 public:
  // The op or object that errors name.
  explicit Reading(std::string_view op) : op_(op) {}

  // A count that is 32 bits wide in the core.
  uint32_t narrow(NSUInteger value, std::string_view name);
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
  // A case of an enum whose numbers match the core's, with `last` as the largest; or one of those listed.
  template <typename Enum, typename Input>
  Enum choice(Input input, Enum last, std::string_view name) {
    const auto number = static_cast<int64_t>(input);
    if (number < 0 || number > static_cast<int64_t>(last)) unknown(number, name);
    return failed() ? Enum{} : static_cast<Enum>(input);
  }
  template <typename Enum, typename Input>
  Enum choice(Input input, std::initializer_list<Enum> cases, std::string_view name) {
    for (const Enum one : cases) {
      if (static_cast<int64_t>(one) == static_cast<int64_t>(input)) return one;
    }
    unknown(static_cast<int64_t>(input), name);
    return Enum{};
  }
  // False, with a failure, for an object of another class, which an array may hold at run time.
  bool isA(Class _Nonnull kind, id _Nullable object, std::string_view name);
  // False, with a failure, for nil.
  bool needed(id _Nullable object, std::string_view name);

  // The value of a Result; records its failure.
  template <typename T>
  T take(Result<T> result) {
    if (result) return std::move(*result);
    fail(std::move(result).error());
    return T{};
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
  void unknown(int64_t number, std::string_view name);

  std::string op_;
  std::optional<Error> error_;
};

}  // namespace mnk::objc
