// XCTest for Linux: the part of Apple's API that the Objective-C++ tests use, so that the same files run here and in
// Xcode.
#pragma once
#import <XCTest/XCTestAssertions.h>

NS_ASSUME_NONNULL_BEGIN

// A class of tests: each method without arguments whose name begins with "test" is one, and runs in its own object.
@interface XCTestCase : NSObject
@property(readonly, copy) NSString *name;  // "-[Class method]"

+ (void)setUp;
+ (void)tearDown;
- (void)setUp;
- (void)tearDown;
@end

NS_ASSUME_NONNULL_END
