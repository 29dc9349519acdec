// The assertions that the tests use, with Apple's texts. Each ends with an optional format and arguments, printed on
// failure. As with Apple's, an argument that contains a comma within [] or {} needs parentheses.
#pragma once
#import <Foundation/Foundation.h>

#include <sstream>
#include <type_traits>

@class XCTestCase;

NS_ASSUME_NONNULL_BEGIN

FOUNDATION_EXPORT void _XCTFail(XCTestCase *test, const char *file, int line, NSString *text);

namespace xct {

// " - " and the formatted text; empty without a format.
inline NSString *note() {
  return @"";
}
NSString *note(NSString *format, ...) NS_FORMAT_FUNCTION(1, 2);

template <typename T>
NSString *text(const T &value) {
  if constexpr (std::is_enum_v<T>) {
    return text(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_convertible_v<T, id>) {
    return [NSString stringWithFormat:@"%@", static_cast<id>(value)];
  } else if constexpr (requires(std::ostringstream stream) { stream << value; }) {
    std::ostringstream stream;
    if constexpr (std::is_floating_point_v<T>) stream.precision(std::is_same_v<T, float> ? 9 : 17);
    if constexpr (std::is_integral_v<T>) {
      stream << +value;  // BOOL and int8_t are numbers here, not characters
    } else {
      stream << value;
    }
    return [NSString stringWithUTF8String:stream.str().c_str()];
  } else {
    return @"(a value)";
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
#pragma clang diagnostic pop

inline bool isEqualObject(id _Nullable left, id _Nullable right) {
  return left == right || [left isEqual:right];
}
inline bool isIdentical(id _Nullable left, id _Nullable right) {
  return left == right;
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

#define XCTFail(...) XCT_FAIL_(@"failed", __VA_ARGS__)

#define XCTAssertTrue(expression, ...) \
  XCT_CHECK_(static_cast<bool>(expression), @"((" #expression ") is true) failed", __VA_ARGS__)
#define XCTAssertFalse(expression, ...) \
  XCT_CHECK_(!static_cast<bool>(expression), @"((" #expression ") is false) failed", __VA_ARGS__)
#define XCTAssertNil(expression, ...)                                                                           \
  do {                                                                                                          \
    id xctValue = (expression);                                                                                 \
    XCT_CHECK_(!xctValue, xct::joined(@"((" #expression ") == nil) failed: \"", xctValue, @"\""), __VA_ARGS__); \
  } while (0)
#define XCTAssertNotNil(expression, ...) \
  XCT_CHECK_((expression) != nil, @"((" #expression ") != nil) failed", __VA_ARGS__)

#define XCTAssertEqual(left, right, ...) \
  XCT_COMPARE_(left, right, xct::isEqual, "((" #left ") equal to (" #right "))", "is not equal to", __VA_ARGS__)
#define XCTAssertGreaterThan(left, right, ...)                                                                \
  XCT_COMPARE_(left, right, xct::isGreater, "((" #left ") greater than (" #right "))", "is not greater than", \
               __VA_ARGS__)

#define XCTAssertEqualObjects(left, right, ...)                                                                   \
  XCT_COMPARE_OBJECTS_(left, right, xct::isEqualObject, "((" #left ") equal to (" #right "))", "is not equal to", \
                       __VA_ARGS__)
#define XCTAssertNotEqualObjects(left, right, ...)                                                                 \
  XCT_COMPARE_OBJECTS_(left, right, !xct::isEqualObject, "((" #left ") not equal to (" #right "))", "is equal to", \
                       __VA_ARGS__)
#define XCTAssertIdentical(left, right, ...)                                                     \
  XCT_COMPARE_OBJECTS_(left, right, xct::isIdentical, "((" #left ") identical to (" #right "))", \
                       "is not identical to", __VA_ARGS__)
#define XCTAssertNotIdentical(left, right, ...)                                                       \
  XCT_COMPARE_OBJECTS_(left, right, !xct::isIdentical, "((" #left ") not identical to (" #right "))", \
                       "is identical to", __VA_ARGS__)
