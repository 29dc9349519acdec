// The parts of Foundation and the prefix header that the Objective-C API needs: literals, subscripts, errors,
// enumerations, and macros that GNUstep lacks.
#import <XCTest/XCTest.h>

NS_ASSUME_NONNULL_BEGIN

FOUNDATION_EXPORT NSErrorDomain const SampleErrorDomain;
typedef NS_ERROR_ENUM(SampleErrorDomain, SampleError){
    SampleErrorSmall = 1,
    SampleErrorLarge,
};
typedef NS_CLOSED_ENUM(NSInteger, SampleKind) { SampleKindFirst, SampleKindSecond } NS_SWIFT_NAME(Sample.Kind);
typedef NS_OPTIONS(NSUInteger, SampleOptions) { SampleOptionsOne = 1 << 0, SampleOptionsTwo = 1 << 1 };

NS_ASSUME_NONNULL_END

NSErrorDomain const SampleErrorDomain = @"SampleErrorDomain";

@interface FoundationTests : XCTestCase
@end

@implementation FoundationTests

- (void)testLiteralsAndSubscripts {
  NSMutableDictionary<NSString *, NSNumber *> *const numbers = [NSMutableDictionary dictionary];
  numbers[@"a"] = @1;
  numbers[@"b"] = @YES;
  XCTAssertEqualObjects(numbers[@"a"], @1);
  XCTAssertTrue(numbers[@"b"].boolValue);
  XCTAssertNil(numbers[@"c"]);
  NSArray<NSString *> *const texts = @[ @"x", @"y" ];
  XCTAssertEqualObjects(texts[1], @"y");
  XCTAssertEqual(texts.count, 2);
}

- (void)testFastEnumeration {
  int sum = 0;
  for (NSNumber *number in @[ @1, @2, @3 ]) sum += number.intValue;
  XCTAssertEqual(sum, 6);
}

- (void)testErrors {
  NSError *const error = [NSError errorWithDomain:SampleErrorDomain
                                             code:SampleErrorLarge
                                         userInfo:@{NSLocalizedDescriptionKey : @"too large"}];
  XCTAssertEqual(error.code, SampleErrorLarge);
  XCTAssertEqualObjects(error.localizedDescription, @"too large");
}

- (void)testEnumerations {
  const SampleOptions both = SampleOptionsOne | SampleOptionsTwo;
  XCTAssertEqual(both, 3);
  XCTAssertNotEqual(SampleKindFirst, SampleKindSecond);
}

- (void)testData {
  const float values[] = {1, 2, 3};
  NSData *const data = [NSData dataWithBytes:values length:sizeof values];
  XCTAssertEqual(static_cast<const float *>(data.bytes)[2], 3);
  XCTAssertEqualObjects(data, [data copy]);
}

- (void)testJSON {
  NSData *const data = [NSJSONSerialization dataWithJSONObject:@{@"k" : @[ @1, @YES ]} options:0 error:nil];
  NSDictionary<NSString *, NSArray *> *const read = [NSJSONSerialization JSONObjectWithData:data options:0 error:nil];
  XCTAssertEqualObjects(read[@"k"][0], @1);
}

@end
