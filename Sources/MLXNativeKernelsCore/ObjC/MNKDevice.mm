#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
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

- (instancetype)initWithCore:(std::shared_ptr<Device>)core {
  if ((self = [super init])) _core = std::move(core);
  return self;
}

+ (instancetype)defaultDeviceWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKDevice *> {
    auto device = Device::makeDefault();
    if (!device) return device.error();
    return [[MNKDevice alloc] initWithCore:*device];
  });
}

+ (NSArray<MNKDevice *> *)allDevices {
  NSArray<MNKDevice *> *devices = objc::make(nil, [&]() -> Result<NSArray<MNKDevice *> *> {
    NSMutableArray<MNKDevice *> *all = [NSMutableArray array];
    for (const auto &device : Device::all()) [all addObject:[[MNKDevice alloc] initWithCore:device]];
    return all;
  });
  return devices ?: @[];
}

+ (instancetype)hostDeviceWithOptions:(MNKHostOptions *)options error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKDevice *> {
    Reading reading("Host device");
    const HostOptions input = objc::read(reading, options, "options");
    if (reading.failed()) return reading.error();
    auto device = host::makeDevice(input);
    if (!device) return device.error();
    return [[MNKDevice alloc] initWithCore:*device];
  });
}

- (MNKDeviceKind)kind {
  return objc::stringFrom(_core->kind());
}
- (NSString *)name {
  return objc::stringFrom(_core->name());
}

- (MNKCommandEncoder *)commandEncoder {
  return [self commandEncoderWithLabel:@""];
}
- (MNKCommandEncoder *)commandEncoderWithLabel:(NSString *)label {
  std::unique_ptr<mnk_encoder> handle(new mnk_encoder{CommandEncoder(_core, objc::textFrom(label))});
  return [[MNKCommandEncoder alloc] initWithDevice:self handle:std::move(handle)];
}

- (MNKSummary *)runWithError:(NSError **)error block:(BOOL(NS_NOESCAPE ^)(MNKCommandEncoder *, NSError **))block {
  // Records only work that can be waited for.
  const BOOL canRun = objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKDevice");
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
  return objc::make(error, [&]() -> Result<MNKPreparationSummary *> {
    Reading reading("prepare");
    const Preparation input = objc::read(reading, preparation);
    if (reading.failed()) return reading.error();
    const auto prepared = mnk::prepare(self->_core, input);
    if (!prepared) return prepared.error();
    return [[MNKPreparationSummary alloc] initWithCore:*prepared];
  });
}

- (NSError *)lastFailure {
  return objc::make(nil, [&]() -> Result<NSError *> {
    const auto failure = self->_core->lastFailure();
    return failure ? objc::errorFrom(*failure) : nil;
  });
}

- (void)clearKernels {
  _core->registry().clear();
}

- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKDevice class]] && static_cast<MNKDevice *>(other)->_core == _core;
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_core.get()) / 16;
}
- (NSString *)description {
  return self.name;
}

@end

namespace mnk::objc {

Result<std::shared_ptr<Device>> coreOf(MNKDevice *device) {
  if (device) return device->_core;
  return Error{.op = "MNKDevice",
               .what = "nil was passed for the device",
               .got = "nil",
               .expected = "a device",
               .fix = "Pass a device, such as that of +[MNKDevice defaultDeviceWithError:]."};
}

}  // namespace mnk::objc
