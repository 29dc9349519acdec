#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

MNKDeviceKind const MNKDeviceKindHost = @"host";
MNKDeviceKind const MNKDeviceKindMetal = @"metal";

@implementation MNKHostOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"workers", @"orderSeed", @"checking", @"allowsSameValue", @"perturbsResults", @"level", @"compiler" ];
}

@end

@implementation MNKDevice

// Whoever gets around the header gets nothing, rather than an object without a core.
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
    const host::Options given{.workers = reading.narrow(options.workers, "workers"),
                              .orderSeed = options.orderSeed,
                              .checking = reading.choice(options.checking, host::Checking::full, "checking"),
                              .allowSameValue = options.allowsSameValue != NO,
                              .perturb = options.perturbsResults != NO,
                              .level = reading.choice(options.level, host::Level::avx512, "level"),
                              .compiler = objc::textFrom(options.compiler)};
    if (reading.failed()) return reading.error();
    auto device = host::makeDevice(given);
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
  auto core = std::make_unique<CommandEncoder>(_core, objc::textFrom(label));
  return [[MNKCommandEncoder alloc] initWithDevice:self core:std::move(core)];
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
