#include "CAPI/Generated/FieldCases.hpp"
#import "Generated/Objects.hpp"
#import "ObjC/Core.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;

/// Each field that the API's description has: from C++ to a property and back.
@interface FieldTests : DeviceTestCase
@end

@implementation FieldTests

- (void)testEachReachesTheCore {
  const Tensor tensor = objc_test::coreOf([self zeros:@[ @1 ]]), other = objc_test::coreOf([self zeros:@[ @1 ]]);
  test::forEachField(tensor, other, [self](std::string_view name, const auto &core) {
    objc::Reading reading("test");
    const auto from = objc::structFrom(reading, objc_test::objectFor(core), "object");
    XCTAssertFalse(reading.failed(), @"%s", std::string(name).c_str());
    std::remove_cvref_t<decltype(core)> read;
    XCTAssertTrue(c::read(read, from, {nullptr, name}));
    XCTAssertTrue(test::same(read, core), @"%s", std::string(name).c_str());
  });
}

@end
