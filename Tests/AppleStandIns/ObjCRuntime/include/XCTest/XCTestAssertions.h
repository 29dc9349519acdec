// The assertions, with Apple's texts. Each ends with an optional format and arguments, printed on failure. As with
// Apple's, an argument that contains a comma within [] or {} needs parentheses.
#pragma once
#import <XCTest/XCTestAssertionsImpl.h>

#define XCTFail(...) XCT_FAIL_(@"failed", __VA_ARGS__)

#define XCTAssert(expression, ...) \
  XCT_CHECK_(static_cast<bool>(expression), @"((" #expression ") is true) failed", __VA_ARGS__)
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
#define XCTAssertNotEqual(left, right, ...) \
  XCT_COMPARE_(left, right, !xct::isEqual, "((" #left ") not equal to (" #right "))", "is equal to", __VA_ARGS__)
#define XCTAssertGreaterThan(left, right, ...)                                                                \
  XCT_COMPARE_(left, right, xct::isGreater, "((" #left ") greater than (" #right "))", "is not greater than", \
               __VA_ARGS__)
#define XCTAssertGreaterThanOrEqual(left, right, ...)                                                     \
  XCT_COMPARE_(left, right, xct::isGreaterOrEqual, "((" #left ") greater than or equal to (" #right "))", \
               "is less than", __VA_ARGS__)
#define XCTAssertLessThan(left, right, ...) \
  XCT_COMPARE_(left, right, xct::isLess, "((" #left ") less than (" #right "))", "is not less than", __VA_ARGS__)
#define XCTAssertLessThanOrEqual(left, right, ...)                                                                     \
  XCT_COMPARE_(left, right, xct::isLessOrEqual, "((" #left ") less than or equal to (" #right "))", "is greater than", \
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

#define XCTAssertEqualWithAccuracy(left, right, accuracy, ...)                                                     \
  XCT_COMPARE_NEAR_(left, right, accuracy, xct::isNear, "((" #left ") equal to (" #right ") +/- (" #accuracy "))", \
                    "is not equal to", __VA_ARGS__)
#define XCTAssertNotEqualWithAccuracy(left, right, accuracy, ...)                                                     \
  XCT_COMPARE_NEAR_(left, right, accuracy, xct::isFar, "((" #left ") not equal to (" #right ") +/- (" #accuracy "))", \
                    "is equal to", __VA_ARGS__)

#define XCTAssertThrows(expression, ...) \
  XCT_CHECK_(XCT_CAUGHT_(expression), @"((" #expression ") throws) failed", __VA_ARGS__)
#define XCTAssertThrowsSpecific(expression, exceptionClass, ...)             \
  XCT_CHECK_([XCT_CAUGHT_(expression) isKindOfClass:[exceptionClass class]], \
             @"((" #expression ") throws <" #exceptionClass ">) failed", __VA_ARGS__)
#define XCTAssertThrowsSpecificNamed(expression, exceptionClass, exceptionName, ...)       \
  XCT_CHECK_(xct::isNamed(XCT_CAUGHT_(expression), [exceptionClass class], exceptionName), \
             @"((" #expression ") throws <" #exceptionClass ", \"" #exceptionName "\">) failed", __VA_ARGS__)
#define XCTAssertNoThrow(expression, ...)                                                                       \
  do {                                                                                                          \
    NSException *xctCaught = XCT_CAUGHT_(expression);                                                           \
    XCT_CHECK_(!xctCaught,                                                                                      \
               xct::joined(@"((" #expression ") does not throw) failed: throwing \"", xctCaught.reason, @"\""), \
               __VA_ARGS__);                                                                                    \
  } while (0)

// These end the test as skipped, which is not a failure.
#define XCTSkip(...) _XCTSkip(self, xct::note(__VA_ARGS__))
#define XCTSkipIf(expression, ...)        \
  do {                                    \
    if (expression) XCTSkip(__VA_ARGS__); \
  } while (0)
#define XCTSkipUnless(expression, ...) XCTSkipIf(!(expression), __VA_ARGS__)
