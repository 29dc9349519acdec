#include <atomic>
#include <memory>

#import "Sample.h"

namespace {

std::atomic<int> liveCount = 0;

struct Life {
  Life() { ++liveCount; }
  ~Life() { --liveCount; }
};

}  // namespace

@implementation SampleSquare {
  char _unaligned;
  SampleVector _vector;
  std::shared_ptr<Life> _life;
}

+ (int)liveCount {
  return ::liveCount;
}

+ (instancetype)squareWithTitle:(NSString *)title {
  return [[self alloc] initWithTitle:title];
}

- (instancetype)initWithTitle:(NSString *)title {
  if (!(self = [super init])) return nil;
  _title = [title copy];
  _side = 2;
  _unaligned = 'u';
  _vector = {{1, 2, 3, 4}};
  _life = std::make_shared<Life>();
  return self;
}

- (double)area {
  return _side * _side;
}

- (SampleVector)vector {
  return _unaligned == 'u' ? _vector : SampleVector{};
}

- (SampleSums)sums {
  return {{_side, _side + 1, _side + 2, _side + 3, _side + 4}};
}

@end
