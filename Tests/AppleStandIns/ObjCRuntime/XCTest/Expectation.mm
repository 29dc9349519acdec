#import "Running.h"

#include <condition_variable>
#include <mutex>

@implementation XCTestExpectation {
  NSString *_description;
  std::mutex _mutex;
  std::condition_variable _changed;
  NSUInteger _fulfillments;
}

- (instancetype)initWithDescription:(NSString *)description {
  if ((self = [super init])) _description = [description copy];
  return self;
}

- (void)fulfill {
  std::lock_guard lock(_mutex);
  ++_fulfillments;
  _changed.notify_all();
}

- (NSUInteger)fulfillmentsUntil:(std::chrono::steady_clock::time_point)deadline {
  std::unique_lock lock(_mutex);
  _changed.wait_until(lock, deadline, [&] { return self->_fulfillments > 0; });
  return _fulfillments;
}

- (NSString *)description {
  return _description;
}

@end
