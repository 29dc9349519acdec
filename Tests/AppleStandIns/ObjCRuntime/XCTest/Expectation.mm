#import "Running.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace {

// One for all expectations, because a waiter waits for several.
struct Changes {
  std::mutex mutex;
  std::condition_variable happened;
  NSUInteger count = 0;
};

Changes &changes() {
  static auto &all = *new Changes;
  return all;
}

}  // namespace

@implementation XCTestExpectation {
  NSUInteger _fulfillmentCount;
}

- (instancetype)init {
  return [self initWithDescription:@"an expectation"];
}

- (instancetype)initWithDescription:(NSString *)expectationDescription {
  if (!(self = [super init])) return nil;
  _expectationDescription = [expectationDescription copy];
  _expectedFulfillmentCount = 1;
  return self;
}

- (void)fulfill {
  std::lock_guard lock(changes().mutex);
  if (++_fulfillmentCount == _expectedFulfillmentCount) _fulfillmentToken = ++changes().count;
  changes().happened.notify_all();
}

- (BOOL)isFulfilled {
  std::lock_guard lock(changes().mutex);
  return _fulfillmentToken != 0;
}

- (BOOL)isOverFulfilled {
  std::lock_guard lock(changes().mutex);
  return _assertForOverFulfill && _fulfillmentCount > _expectedFulfillmentCount;
}

+ (BOOL)waitForAll:(NSArray<XCTestExpectation *> *)expectations timeout:(NSTimeInterval)seconds {
  for (XCTestExpectation *each in expectations) each.isWaitedFor = YES;
  const auto isOver = [&] {
    bool all = true;
    for (XCTestExpectation *each in expectations) {
      const bool isFulfilled = each->_fulfillmentToken != 0;
      if (isFulfilled && each->_inverted) return true;
      all = all && isFulfilled;
    }
    return all;
  };
  std::unique_lock lock(changes().mutex);
  return changes().happened.wait_for(lock, std::chrono::duration<double>(seconds), isOver);
}

- (NSString *)description {
  return _expectationDescription;
}

@end
