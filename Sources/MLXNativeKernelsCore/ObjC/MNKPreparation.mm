#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKPreparation

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"caches", @"queryHeads", @"rows", @"elementType", @"options", @"rotary", @"tuning", @"tuningFileURL" ];
}

- (instancetype)initWithCaches:(NSArray<MNKAttentionCache *> *)caches {
  if ((self = [super init])) {
    _caches = [caches copy];
    _rows = 1;
    _elementType = MNKElementTypeFloat32;
  }
  return self;
}

@end

@implementation MNKPreparationSummary {
  PreparationSummary _core;
}

- (instancetype)init {
  return nil;
}

- (instancetype)initWithCore:(const PreparationSummary &)core {
  if ((self = [super init])) _core = core;
  return self;
}

- (NSUInteger)kernels {
  return static_cast<NSUInteger>(_core.kernels);
}
- (NSUInteger)measured {
  return static_cast<NSUInteger>(_core.measured);
}
- (NSUInteger)known {
  return static_cast<NSUInteger>(_core.known);
}
- (NSTimeInterval)seconds {
  return _core.seconds;
}
- (BOOL)isKept {
  return _core.tuningFile.empty() ? NO : YES;
}
- (NSString *)description {
  return objc::stringFrom(_core.text());
}

@end

namespace mnk::objc {

Preparation read(Reading &reading, MNKPreparation *preparation) {
  if (!reading.needed(preparation, "the preparation") || !reading.needed(preparation.caches, "the caches")) return {};
  Preparation result{.queryHeads = reading.narrow(preparation.queryHeads, "queryHeads"),
                     .rows = reading.narrow(preparation.rows, "rows"),
                     .dtype = read(reading, preparation.elementType),
                     .options = read(reading, preparation.options, "options"),
                     .tuning = read(reading, preparation.tuning, "tuning")};
  for (MNKAttentionCache *cache in preparation.caches) {
    if (!reading.isA([MNKAttentionCache class], cache, "a cache")) return {};
    if (const auto core = read(reading, cache)) result.caches.push_back(*core);
  }
  if (preparation.rotary) result.rotary = read(reading, preparation.rotary, "rotary");
  if (NSURL *url = preparation.tuningFileURL) result.tuningFile = reading.take(pathFrom(url, "prepare"));
  return result;
}

}  // namespace mnk::objc
