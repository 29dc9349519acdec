// C++ exceptions and NSExceptions in Objective-C++ files.
#import <XCTest/XCTest.h>

#include <stdexcept>

namespace {

struct Counted {
  explicit Counted(int &count) : count(count) { ++count; }
  ~Counted() { --count; }
  int &count;
};

}  // namespace

@interface ExceptionTests : XCTestCase
@end

@implementation ExceptionTests

- (void)throwText:(const char *)text {
  throw std::runtime_error(text);
}

- (void)testCxxExceptionIsCaught {
  std::string text;
  try {
    [self throwText:"thrown through a message"];
  } catch (const std::exception &exception) {
    text = exception.what();
  }
  XCTAssertEqual(text, "thrown through a message");
}

- (void)testCxxExceptionReleasesLocals {
  __weak NSObject *weak = nil;
  @autoreleasepool {
    try {
      NSObject *const local = [[NSObject alloc] init];
      weak = local;
      [self throwText:"away"];
      XCTAssertNotNil(local);
    } catch (const std::exception &) {
    }
  }
  XCTAssertNil(weak);
}

- (void)testNSExceptionRunsDestructors {
  int count = 0;
  __block int *const counter = &count;
  XCTAssertThrowsSpecificNamed((^{
                                 const Counted counted(*counter);
                                 [NSException raise:NSRangeException format:@"index %d", 7];
                               }()),
                               NSException, NSRangeException);
  XCTAssertEqual(count, 0);
}

- (void)testFoundationRaises {
  XCTAssertThrows([@[ @1 ] objectAtIndex:7]);
  XCTAssertNoThrow([@[ @1 ] objectAtIndex:0]);
}

- (void)testUnknownSelectorRaises {
  // As far as the compiler knows, any object may respond to it.
  const id object = [[NSObject alloc] init];
  XCTAssertThrowsSpecific([object firstObject], NSException);
}

@end
