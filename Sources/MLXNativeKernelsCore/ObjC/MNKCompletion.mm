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

@implementation MNKCompletion {
  Completion _core;
}

- (instancetype)init {
  return nil;
}

- (instancetype)initWithCore:(Completion)core {
  if ((self = [super init])) _core = std::move(core);
  return self;
}

- (BOOL)waitWithError:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    const auto outcome = self->_core.wait();
    return outcome ? Result<void>() : Result<void>(outcome.error());
  });
}
- (BOOL)isDone {
  return _core.isDone() ? YES : NO;
}
- (MNKSummary *)summary {
  return [[MNKSummary alloc] initWithCore:_core.summary()];
}

@end
