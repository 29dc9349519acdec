#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// Long decoding with errors in between: a leak checker would report leaks, and memory must not grow with the steps.
@interface LoopTests : DeviceTestCase
@end

// A checker that records each allocation makes a step ten times slower, so fewer steps run.
#if __has_feature(address_sanitizer)
static constexpr NSUInteger kSteps = 800;
#else
static constexpr NSUInteger kSteps = 10000;
#endif

@implementation LoopTests

- (void)testThousandsOfSteps {
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1 headDim:32 capacity:4];
  descriptor.elementType = MNKElementTypeFloat32;
  descriptor.whenFull = MNKKVWrapRing;
  MNKAttentionCache *cache = [self cacheWith:descriptor];
  MNKTensor *keys = [self zeros:@[ @1, @32 ]], *values = [self zeros:@[ @1, @32 ]], *out = [self zeros:@[ @1, @32 ]];
  MNKTensor *wrong = [self zeros:@[ @1, @31 ]];
  MNKAttentionOptions *options = [[MNKAttentionOptions alloc] init];
  options.kernel = MNKAttentionOptionsKernelVector;
  options.splits = 1;
  NSUInteger failures = 0, finished = 0;
  for (NSUInteger i = 0; i < kSteps; ++i) {
    @autoreleasepool {
      const std::vector<float> numbers(32, static_cast<float>(i));
      NSError *error = nil;
      MNKCommandEncoder *step = [self.device commandEncoder];
      if (i % 8 == 0) {
        failures += ![step appendKeys:wrong values:wrong toCache:cache error:&error];
        failures += ![step attendQueries:wrong overCache:cache intoTensor:absentObject() options:options error:nil];
        failures += ![cache truncateToPosition:i + 1 sequence:0 error:&error];
        @autoreleasepool {  // dropped with its recorded work, before the values change
          XCTAssertTrue([[self.device commandEncoder] appendKeys:keys values:values toCache:cache error:nil]);
        }
      }
      finished += [values writeFloats:numbers.data() count:32 error:nil] &&
                  [step appendKeys:keys values:values toCache:cache error:&error] &&
                  [step attendQueries:keys overCache:cache intoTensor:out options:options error:&error] &&
                  [[step commitWithError:&error] waitWithError:&error];
    }
  }
  XCTAssertEqual(finished, kSteps);
  XCTAssertEqual(failures, kSteps / 8 * 3);
  XCTAssertEqual(cache.nextPosition, kSteps);
  XCTAssertEqualWithAccuracy([self floatOf:out at:0], kSteps - 2.5, 0.01);
}

@end
