#import "DeviceTestCase.h"

#import "MLXNativeKernelsHost/MLXNativeKernelsHost.h"

#include "CoreTests.h"

@implementation DeviceTestCase

+ (void)setUp {
  [super setUp];
  mnk_register_host_device();
  core_test_choose_device();
}

- (void)setUp {
  [super setUp];
  NSError *error = nil;
  MNKDevice *device = [MNKDevice defaultDeviceWithError:&error];
  XCTAssertNotNil(device, @"%@", error);
  _device = device;
  NSString *name = [[NSUUID UUID] UUIDString];
  _temporaryFile = [NSURL fileURLWithPath:[NSTemporaryDirectory() stringByAppendingPathComponent:name]];
}

- (void)tearDown {
  MNKDevice *none = nil;
  _device = none;
  [[NSFileManager defaultManager] removeItemAtPath:(NSString *_Nonnull)_temporaryFile.path error:nil];
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

- (MNKAttentionCache *)cacheWith:(MNKAttentionCacheDescriptor *)descriptor {
  NSError *error = nil;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:self.device descriptor:descriptor error:&error];
  XCTAssertNotNil(cache, @"%@", error);
  return cache;
}

- (void)step:(BOOL (^)(MNKCommandEncoder *step, NSError **error))body {
  NSError *error = nil;
  MNKCommandEncoder *step = [_device commandEncoder];
  XCTAssertTrue(body(step, &error), @"%@", error);
  MNKCompletion *done = [step commitWithError:&error];
  XCTAssertNotNil(done, @"%@", error);
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
}

@end
