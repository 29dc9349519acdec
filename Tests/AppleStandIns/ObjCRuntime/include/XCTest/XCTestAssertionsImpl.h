// The implementation of the assertions: comparing values, describing them, and reporting a failure.
#pragma once
#import <Foundation/Foundation.h>

#include <cmath>
#include <concepts>
#include <sstream>
#include <type_traits>

@class XCTestCase;

NS_ASSUME_NONNULL_BEGIN

FOUNDATION_EXPORT void _XCTFail(XCTestCase *test, const char *file, int line, NSString *text);
FOUNDATION_EXPORT void _XCTSkip(XCTestCase *test, NSString *note);
// Runs the block and returns the NSException that escaped, or nil.
FOUNDATION_EXPORT NSException *_Nullable _XCTCatch(void(NS_NOESCAPE ^ block)(void));

namespace xct {

// " - " and the formatted text; empty without a format.
inline NSString *note() {
  return @"";
}
NSString *note(NSString *format, ...) NS_FORMAT_FUNCTION(1, 2);

template <typename T>
NSString *streamed(const T &value) {
  if constexpr (requires(std::ostringstream stream) { stream << value; }) {
    std::ostringstream stream;
    if constexpr (std::is_floating_point_v<T>) stream.precision(std::is_same_v<T, float> ? 9 : 17);
    stream << value;
    return [NSString stringWithUTF8String:stream.str().c_str()];
  } else {
    return @"(a value)";
  }
}

template <typename T>
NSString *text(const T &value) {
  if constexpr (std::is_enum_v<T>) {
    return text(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_convertible_v<T, id>) {
    return [NSString stringWithFormat:@"%@", static_cast<id>(value)];
  } else if constexpr (std::is_same_v<T, SEL>) {
    return NSStringFromSelector(value);
  } else if constexpr (std::is_integral_v<T>) {
    return streamed(+value);  // BOOL and int8_t are numbers here, not characters
  } else {
    return streamed(value);
  }
}

inline NSString *joined(NSString *before, id _Nullable object, NSString *after) {
  return [NSString stringWithFormat:@"%@%@%@", before, object, after];
}

// Values of two types compare as in the language; tests may mix signed literals and unsigned counts.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wsign-compare"
#pragma clang diagnostic ignored "-Wfloat-equal"
inline constexpr auto isEqual = [](const auto &left, const auto &right) { return left == right; };
inline constexpr auto isGreater = [](const auto &left, const auto &right) { return left > right; };
inline constexpr auto isGreaterOrEqual = [](const auto &left, const auto &right) { return left >= right; };
inline constexpr auto isLess = [](const auto &left, const auto &right) { return left < right; };
inline constexpr auto isLessOrEqual = [](const auto &left, const auto &right) { return left <= right; };
#pragma clang diagnostic pop

inline bool isEqualObject(id _Nullable left, id _Nullable right) {
  return left == right || [left isEqual:right];
}
inline bool isIdentical(id _Nullable left, id _Nullable right) {
  return left == right;
}

// As with Apple's, NaN is neither near to nor far from any value.
template <typename L, typename R, typename A>
bool isNear(L left, R right, A accuracy) {
  using T = std::common_type_t<L, R>;
  return T(left) == T(right) || (T(left) > T(right) ? T(left) - T(right) : T(right) - T(left)) <= T(accuracy);
}
template <typename L, typename R, typename A>
bool isFar(L left, R right, A accuracy) {
  using T = std::common_type_t<L, R>;
  return (T(left) > T(right) ? T(left) - T(right) : T(right) - T(left)) > T(accuracy);
}

inline bool isNamed(NSException *_Nullable exception, Class exceptionClass, NSString *name) {
  return [exception isKindOfClass:exceptionClass] && [exception.name isEqualToString:name];
}

template <typename L, typename R>
NSString *difference(NSString *claim, const L &left, NSString *relation, const R &right) {
  return [NSString stringWithFormat:@"%@ failed: (\"%@\") %@ (\"%@\")", claim, text(left), relation, text(right)];
}

}  // namespace xct

NS_ASSUME_NONNULL_END

// The arguments of these macros end in an optional format with its arguments.
#define XCT_FAIL_(text, ...) _XCTFail(self, __FILE__, __LINE__, [(text) stringByAppendingString:xct::note(__VA_ARGS__)])
#define XCT_CHECK_(condition, text, ...)            \
  do {                                              \
    if (!(condition)) XCT_FAIL_(text, __VA_ARGS__); \
  } while (0)
// The claim is made from the unexpanded arguments, so that a failure shows macros as written.
#define XCT_COMPARE_(...) XCT_COMPARE_AS_(const auto, __VA_ARGS__)
#define XCT_COMPARE_OBJECTS_(...) XCT_COMPARE_AS_(const id, __VA_ARGS__)
#define XCT_COMPARE_AS_(type, left, right, holds, claim, relation, ...)                                       \
  do {                                                                                                        \
    type xctLeft = (left);                                                                                    \
    type xctRight = (right);                                                                                  \
    XCT_CHECK_(holds(xctLeft, xctRight), xct::difference(@claim, xctLeft, @relation, xctRight), __VA_ARGS__); \
  } while (0)
#define XCT_COMPARE_NEAR_(left, right, accuracy, holds, claim, relation, ...)          \
  do {                                                                                 \
    const auto xctLeft = (left);                                                       \
    const auto xctRight = (right);                                                     \
    const auto xctAccuracy = (accuracy);                                               \
    XCT_CHECK_(holds(xctLeft, xctRight, xctAccuracy),                                  \
               ([xct::difference(@claim, xctLeft, @relation, xctRight)                 \
                   stringByAppendingFormat:@" +/- (\"%@\")", xct::text(xctAccuracy)]), \
               __VA_ARGS__);                                                           \
  } while (0)
#define XCT_CAUGHT_(expression) \
  _XCTCatch(^{                  \
    (void)(expression);         \
  })
