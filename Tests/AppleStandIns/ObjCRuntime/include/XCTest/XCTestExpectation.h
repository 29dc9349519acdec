// Something that a test waits for, fulfilled from any thread.
#pragma once
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

@interface XCTestExpectation : NSObject
@property(nonatomic, copy) NSString *expectationDescription;
// Waiting succeeds if it is not fulfilled in time.
@property(nonatomic, getter=isInverted) BOOL inverted;
@property(nonatomic) NSUInteger expectedFulfillmentCount;
// If YES, fulfilling it more often than expected fails the test; YES in -[XCTestCase expectationWithDescription:].
@property(nonatomic) BOOL assertForOverFulfill;

- (instancetype)init;
- (instancetype)initWithDescription:(NSString *)expectationDescription NS_DESIGNATED_INITIALIZER;
- (void)fulfill;
@end

NS_ASSUME_NONNULL_END
