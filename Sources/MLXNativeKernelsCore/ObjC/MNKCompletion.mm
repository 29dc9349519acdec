#import "ObjC/Core.hpp"

using namespace mnk;

@interface MNKCounts ()
- (instancetype)initWithCore:(const Summary::Counts &)core;
@end

@implementation MNKCounts

- (instancetype)initWithCore:(const Summary::Counts &)core {
  if ((self = [super init])) {
    _dispatches = static_cast<NSUInteger>(core.dispatches);
    _bytesRead = static_cast<NSUInteger>(core.bytesRead);
    _bytesWritten = static_cast<NSUInteger>(core.bytesWritten);
    _deviceSeconds = core.deviceSeconds;
  }
  return self;
}

@end

@implementation MNKSummary {
  Summary _core;
}

- (instancetype)initWithCore:(Summary)core {
  if ((self = [super init])) _core = std::move(core);
  return self;
}

- (MNKCounts *)total {
  return [[MNKCounts alloc] initWithCore:_core.total];
}
- (NSUInteger)barriers {
  return static_cast<NSUInteger>(_core.barriers);
}
- (NSTimeInterval)deviceSeconds {
  return _core.deviceSeconds;
}
- (NSDictionary<NSString *, MNKCounts *> *)kinds {
  NSMutableDictionary<NSString *, MNKCounts *> *kinds = [NSMutableDictionary dictionary];
  for (const auto &[kind, counts] : _core.kinds) {
    kinds[objc::stringFrom(kind)] = [[MNKCounts alloc] initWithCore:counts];
  }
  return kinds;
}
- (MNKCounts *)countsOfKind:(NSString *)kind {
  const auto found = _core.kinds.find(objc::textFrom(kind));
  return [[MNKCounts alloc] initWithCore:found == _core.kinds.end() ? Summary::Counts() : found->second];
}
- (NSString *)description {
  return objc::stringFrom(_core.text());
}

@end

@implementation MNKCompletion

- (instancetype)init {
  return nil;
}

- (instancetype)initWithHandle:(mnk_completion *)handle {
  if ((self = [super init])) _handle.reset(handle);
  return self;
}

- (BOOL)waitWithError:(NSError **)error {
  return objc::run(error, "MNKCompletion", [&](objc::Reading &reading) {
    return objc::call(reading, mnk_completion_wait, self->_handle.get());
  });
}
- (BOOL)isDone {
  return mnk_completion_is_done(_handle.get()) ? YES : NO;
}
- (MNKSummary *)summary {
  return [[MNKSummary alloc] initWithCore:_handle->completion.summary()];
}

@end
