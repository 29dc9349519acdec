#import "Generated/Objects.hpp"
#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/Common/BindingCases.hpp"
#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;
using test::FakeDevice;
using test::PlanSummary;

namespace {

std::string textOf(NSString *text) {
  return std::string(text.UTF8String ?: "");
}

// The error, or what is wrong with it.
Error coreOf(NSError *error) {
  Error parts = partsOf(error);
  if (NSString *wrong = wrongIn(error, parts)) parts.what = textOf(wrong);
  return parts;
}

struct ObjCAPI {
  template <typename Op>
  Result<PlanSummary> plan(const Op &op, const std::shared_ptr<Device> &device) const {
    @autoreleasepool {
      NSError *error = nil;
      MNKPlan *plan = [objectFor(op) planForDevice:device ? objectOver(device) : nil error:&error];
      if (!plan) return coreOf(error);
      PlanSummary summary{.text = textOf(plan.description), .scratchBytes = plan.scratchBytes};
      for (MNKPlannedDispatch *one in plan.dispatches) {
        Size3 grid{};
        XCTAssertEqual(one.grid.count, grid.size());
        for (size_t i = 0; i < grid.size(); ++i) grid[i] = one.grid[i].unsignedIntValue;
        summary.dispatches.push_back({textOf(one.function), grid, one.bytesRead, one.bytesWritten});
      }
      return summary;
    }
  }

  template <typename Op>
  Result<void> run(const Op &op, const std::shared_ptr<Device> &device) const {
    @autoreleasepool {
      NSError *error = nil;
      MNKCommandEncoder *step = [objectOver(device) commandEncoderWithLabel:@"binding"];
      if (![step encodeOperation:objectFor(op) error:&error]) return coreOf(error);
      if (![[step commitWithError:&error] waitWithError:&error]) return coreOf(error);
      return {};
    }
  }

  XCTestCase *self;
};

}  // namespace

// Every property reaches the core: ops of this binding equal those of C++.
@interface OperationPlanTests : DeviceTestCase
@end

@implementation OperationPlanTests

- (void)testDispatchesMatchCxx {
  XCTAssertNil(failuresWithin([&] { test::expectSameRequests(ObjCAPI{self}); }));
}

@end
