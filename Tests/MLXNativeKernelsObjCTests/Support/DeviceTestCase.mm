#import "DeviceTestCase.h"

#import "MLXNativeKernelsHost/MLXNativeKernelsHost.h"

#include "Bridging.hpp"
#include "Checks.hpp"
#include "CoreTests.h"

using namespace mnk::objc_test;

@implementation DeviceTestCase

+ (void)setUp {
  [super setUp];
  mnk_register_host_device();
  core_test_choose_device();
}

- (void)setUp {
  [super setUp];
  self.continueAfterFailure = YES;
  NSError *error = nil;
  MNKDevice *device = [MNKDevice defaultDeviceWithError:&error];
  XCTAssertNotNil(device, @"%@", error);
  _device = device;
}

- (void)tearDown {
  MNKDevice *none = nil;
  _device = none;
  [super tearDown];
}

- (BOOL)isHost {
  return [_device.kind isEqualToString:MNKDeviceKindHost];
}

- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape {
  return [self zeros:shape type:MNKElementTypeFloat32];
}

- (MNKTensor *)zeros:(NSArray<NSNumber *> *)shape type:(MNKElementType)type {
  NSError *error = nil;
  MNKTensor *tensor = [MNKTensor zerosWithShape:shape elementType:type device:_device error:&error];
  XCTAssertNotNil(tensor, @"%@", error);
  return tensor;
}

- (MNKTensor *)floats:(const std::vector<float> &)floats shape:(NSArray<NSNumber *> *)shape {
  MNKTensor *tensor = [self zeros:shape];
  NSError *error = nil;
  XCTAssertTrue([tensor writeFloats:floats.data() count:floats.size() error:&error], @"%@", error);
  return tensor;
}

- (MNKTensor *)numbers:(NSArray<NSNumber *> *)shape seed:(unsigned)seed {
  size_t count = 1;
  for (NSNumber *extent in shape) count *= extent.unsignedIntegerValue;
  std::vector<float> floats(count);
  uint32_t state = seed * 2654435761u + 1;
  for (float &number : floats) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 23);
  }
  return [self floats:floats shape:shape];
}

- (std::vector<float>)floatsOf:(MNKTensor *)tensor {
  std::vector<float> floats(tensor.count);
  NSError *error = nil;
  XCTAssertTrue([tensor readFloats:floats.data() count:floats.size() error:&error], @"%@", error);
  return floats;
}

- (float)floatOf:(MNKTensor *)tensor at:(NSUInteger)index {
  const auto floats = [self floatsOf:tensor];
  return index < floats.size() ? floats[index] : NAN;
}

- (MNKHeadsView *)tokens:(const std::vector<float> &)numbers {
  std::vector<float> elements;
  for (const float number : numbers) elements.insert(elements.end(), 32, number);
  return [[MNKHeadsView alloc] initWithTensor:[self floats:elements shape:@[ @(numbers.size()), @1, @32 ]]];
}
- (MNKHeadsView *)zeroTokens:(NSUInteger)count {
  return [[MNKHeadsView alloc] initWithTensor:[self zeros:@[ @(count), @1, @32 ]]];
}

- (MNKAttentionCache *)cacheWith:(MNKAttentionCacheDescriptor *)descriptor {
  NSError *error = nil;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:&error];
  XCTAssertNotNil(cache, @"%@", error);
  return cache;
}

- (void)append:(const std::vector<float> &)numbers to:(MNKAttentionCache *)cache sequence:(NSUInteger)sequence {
  MNKHeadsView *keys = [self zeroTokens:numbers.size()], *values = [self tokens:numbers];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step append:cacheStep({ .keys = keys, .values = values, .sequences = @[ @(sequence) ] })
                toCache:cache
                  error:error];
  }];
}

- (void)step:(BOOL (^)(MNKCommandEncoder *step, NSError **error))body {
  NSError *error = nil;
  MNKCommandEncoder *step = [_device commandEncoder];
  XCTAssertTrue(body(step, &error), @"%@", error);
  MNKCompletion *done = [step commitWithError:&error];
  XCTAssertNotNil(done, @"%@", error);
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
}

- (void)encode:(MNKOperation *)operation {
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step encodeOperation:operation error:error];
  }];
}

@end
