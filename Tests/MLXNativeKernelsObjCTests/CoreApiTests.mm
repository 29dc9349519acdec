#import "Support/Bridging.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk;
using namespace mnk::objc_test;

// The C++ API from Objective-C++, together with objects over the same memory.
@interface CoreApiTests : DeviceTestCase
@end

@implementation CoreApiTests

- (void)testCAndCxxApisWorkBesideObjectiveC {
  XCTAssertTrue(bool(Device::makeDefault()));
  XCTAssertGreaterThan(mnk_device_count(), 0u);
}

- (void)testACoreOpUsesTensorsOfTheBinding {
  MNKTensor *x = [self floats:{1, 0, 0, 0} shape:@[ @1, @4 ]];
  CommandEncoder encoder(coreOf(self.device), "core");
  XCTAssertTrue(bool(encoder.encode(Hadamard{.from = coreOf(x)})));
  auto done = encoder.commit();
  XCTAssertTrue(bool(done) && bool(done->wait()));
  XCTAssertEqual(done->summary().total.dispatches, 1u);
  XCTAssertEqual([self floatOf:x at:2], 0.5f);
  XCTAssertFalse(bool(encoder.commit()));
  XCTAssertFalse(bool(encoder.barrier()));
}

- (void)testRulesAndPlans {
  const Tensor x = coreOf([self zeros:@[ @2, @32 ]]);
  const auto planned = plan(Hadamard{.from = x});
  XCTAssertTrue(bool(planned));
  XCTAssertEqual(planned->dispatches.size(), 1u);
  XCTAssertEqual(planned->dispatches[0].countedBytesRead(), 256u);
  const auto refused = plan(Hadamard{});
  XCTAssertFalse(bool(refused));
  XCTAssertEqual(refused.error().op, "Hadamard");
  XCTAssertTrue(refused.error().code == ErrorCode::invalidArgument);
}

- (void)testACoreCacheFollowsItsEncoder {
  auto cache = AttentionCache::make(coreOf(self.device), {.kvHeads = 1, .headDim = 32, .capacity = 4});
  XCTAssertTrue(bool(cache));
  MNKAttentionCache *object = objectOver(*cache);
  const Tensor token = coreOf([self zeros:@[ @1, @32 ]]);
  {
    CommandEncoder dropped(coreOf(self.device));
    XCTAssertTrue(bool(cache->append(dropped, token, token)));
  }
  XCTAssertEqual(object.nextPosition, 0u);
  CommandEncoder encoder(coreOf(self.device));
  XCTAssertTrue(bool(cache->append(encoder, token, token)));
  int calls = 0;
  auto done = encoder.commit([&](const Result<Summary> &outcome) { calls += outcome ? 1 : 100; });
  XCTAssertTrue(bool(done) && bool(done->wait()));
  XCTAssertEqual(object.nextPosition, 1u);
  // Handlers of one device run in order, so the first one has finished.
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step insertBarrierWithError:error];
  }];
  XCTAssertEqual(calls, 1);
}

- (void)testObjectsAndCoreShareMemory {
  MNKTensor *x = [self floats:{1, 2} shape:@[ @2 ]];
  const Tensor core = coreOf(x);
  float numbers[2] = {};
  XCTAssertTrue(bool(core.read(std::as_writable_bytes(std::span(numbers)))));
  XCTAssertEqual(numbers[1], 2);
  XCTAssertEqualObjects(objectOver(core), x);
}

@end
