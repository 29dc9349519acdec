#import "ObjC/Core.hpp"

using namespace mnk;

@interface MNKPlannedDispatch ()
- (instancetype)initWithCore:(const Dispatch &)core;
@end

@implementation MNKPlannedDispatch

- (instancetype)initWithCore:(const Dispatch &)core {
  if ((self = [super init])) {
    _function = objc::stringFrom(core.kernel.function);
    _grid = @[ @(core.grid.extent[0]), @(core.grid.extent[1]), @(core.grid.extent[2]) ];
    _bytesRead = static_cast<NSUInteger>(core.countedBytesRead());
    _bytesWritten = static_cast<NSUInteger>(core.countedBytesWritten());
  }
  return self;
}

@end

@implementation MNKPlan

- (instancetype)init {
  return nil;
}

- (instancetype)initWithHandle:(mnk_plan *)handle {
  if ((self = [super init])) {
    _handle.reset(handle);
    NSMutableArray<MNKPlannedDispatch *> *dispatches = [NSMutableArray array];
    for (const Dispatch &dispatch : handle->plan.dispatches) {
      [dispatches addObject:[[MNKPlannedDispatch alloc] initWithCore:dispatch]];
    }
    _dispatches = [dispatches copy];
    _scratchBytes = static_cast<NSUInteger>(handle->plan.scratchBytes);
  }
  return self;
}

- (NSString *)description {
  return objc::stringFrom(_handle->text);
}

@end

static Error customClass(Class kind) {
  return {.code = ErrorCode::unsupported,
          .op = objc::textFrom(NSStringFromClass(kind)),
          .what = "the class is not an op of this framework",
          .got = "a custom class",
          .expected = "one of the framework's ops",
          .fix = "Use one of the framework's ops, or MNKDispatch for a kernel of your own."};
}

@implementation MNKOperation

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  return customClass([self class]);
}
- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  return customClass([self class]);
}

- (MNKPlan *)planForDevice:(MNKDevice *)device error:(NSError **)error {
  return objc::make<MNKPlan>(error, "MNKOperation", [&](objc::Reading &) {
    return [self planForHandle:device ? device->_handle.get() : nil];
  });
}

@end
