#import "ObjC/Core.hpp"
#include "Runtime/WorkInFlight.hpp"

using namespace mnk;
using objc::Reading;

MNKDeviceKind const MNKDeviceKindHost = @"host";
MNKDeviceKind const MNKDeviceKindMetal = @"metal";

@implementation MNKDevice

// A caller that bypasses the header gets nil rather than an object without a core.
- (instancetype)init {
  return nil;
}

- (instancetype)initWithHandle:(mnk_device *)handle {
  if ((self = [super init])) _handle.reset(handle);
  return self;
}

+ (instancetype)defaultDeviceWithError:(NSError **)error {
  return objc::make<MNKDevice>(error, "MNKDevice",
                               [&](Reading &reading) { return objc::call(reading, mnk_device_make_default); });
}

+ (NSArray<MNKDevice *> *)allDevices {
  NSArray<MNKDevice *> *devices = objc::make(nil, [&]() -> Result<NSArray<MNKDevice *> *> {
    NSMutableArray<MNKDevice *> *all = [NSMutableArray array];
    for (const auto &device : Device::all()) [all addObject:[[MNKDevice alloc] initWithHandle:*c::handleFor(device)]];
    return all;
  });
  return devices ?: @[];
}

+ (instancetype)hostDeviceWithOptions:(MNKHostOptions *)options error:(NSError **)error {
  return objc::make<MNKDevice>(error, "Host device", [&](Reading &reading) {
    const auto input = objc::structFrom(reading, options, "options");
    return objc::call(reading, mnk_device_make_host, &input);
  });
}

- (MNKDeviceKind)kind {
  return objc::stringFrom(_handle->kind);
}
- (NSString *)name {
  return objc::stringFrom(_handle->name);
}

- (MNKCommandEncoder *)commandEncoder {
  return [self commandEncoderWithLabel:@""];
}
- (MNKCommandEncoder *)commandEncoderWithLabel:(NSString *)label {
  auto *handle = new mnk_encoder{CommandEncoder(_handle->device, objc::textFrom(label))};
  return [[MNKCommandEncoder alloc] initWithDevice:self handle:handle];
}

- (MNKSummary *)runWithError:(NSError **)error block:(BOOL(NS_NOESCAPE ^)(MNKCommandEncoder *, NSError **))block {
  // Records only work that can be waited for.
  const BOOL canRun = objc::run(error, "MNKDevice", [&](Reading &reading) -> Result<void> {
    if (!reading.needed(block, "the block")) return reading.error();
    return isInFinishedHandler() ? Result<void>(waitInHandler("MNKDevice")) : Result<void>();
  });
  if (!canRun) return nil;
  MNKCommandEncoder *step = [self commandEncoder];
  NSError *failure = nil;
  if (!block(step, &failure)) {
    step->_handle->encoder.discard();  // the object may live on in an autorelease pool
    if (failure && error) *error = failure;
    if (!failure) objc::store(error, objc::failedWithoutError());
    return nil;
  }
  MNKCompletion *done = [step commitWithError:error];
  return [done waitWithError:error] ? done.summary : nil;
}

- (MNKPreparationSummary *)prepare:(MNKPreparation *)preparation error:(NSError **)error {
  mnk_preparation_summary summary{};
  const BOOL isPrepared = objc::run(error, "prepare", [&](Reading &reading) {
    const auto input = objc::structFrom(reading, preparation);
    return objc::call(reading, mnk_device_prepare, self->_handle.get(), &input, &summary);
  });
  return isPrepared ? [[MNKPreparationSummary alloc] initWithSummary:summary] : nil;
}

- (NSError *)lastFailure {
  return objc::make(nil, [&]() -> Result<NSError *> {
    const auto failure = self->_handle->device->lastFailure();
    return failure ? objc::errorFrom(*failure) : nil;
  });
}

- (void)clearKernels {
  mnk_device_clear_kernels(_handle.get());
}

- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKDevice class]] && static_cast<MNKDevice *>(other)->_handle->device == _handle->device;
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_handle->device.get()) / 16;
}
- (NSString *)description {
  return self.name;
}

@end

namespace mnk::objc {

mnk_device *handleOf(Reading &reading, MNKDevice *device) {
  if (device) return device->_handle.get();
  reading.fail(Error{.op = "MNKDevice",
                     .what = "nil was passed for the device",
                     .got = "nil",
                     .expected = "a device",
                     .fix = "Pass a device, such as that of +[MNKDevice defaultDeviceWithError:]."});
  return nullptr;
}

}  // namespace mnk::objc
