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
  mnk_preparation_summary _summary;
}

- (instancetype)init {
  return nil;
}

- (instancetype)initWithSummary:(mnk_preparation_summary)summary {
  if ((self = [super init])) _summary = summary;
  return self;
}

- (NSUInteger)kernels {
  return static_cast<NSUInteger>(_summary.kernels);
}
- (NSUInteger)measured {
  return static_cast<NSUInteger>(_summary.measured);
}
- (NSUInteger)known {
  return static_cast<NSUInteger>(_summary.known);
}
- (NSTimeInterval)seconds {
  return _summary.seconds;
}
- (BOOL)isKept {
  return _summary.is_kept ? YES : NO;
}
- (NSString *)description {
  const std::unique_ptr<char, decltype(&mnk_text_release)> text(mnk_preparation_summary_copy_text(&_summary),
                                                                mnk_text_release);
  return objc::stringFrom(text ? text.get() : "");
}

@end

namespace mnk::objc {

mnk_preparation structFrom(Reading &reading, MNKPreparation *preparation) {
  mnk_preparation into{};
  if (!reading.needed(preparation, "the preparation") || !reading.needed(preparation.caches, "the caches")) return into;
  std::vector<const mnk_cache *> caches;
  for (MNKAttentionCache *cache in preparation.caches) caches.push_back(handleOf(reading, cache, "a cache"));
  into.cache_count = caches.size();
  into.caches = caches.empty() ? nullptr : reading.keep(std::move(caches)).data();
  into.query_heads = reading.narrow(preparation.queryHeads, "queryHeads");
  into.rows = reading.narrow(preparation.rows, "rows");
  // C reads 0 as a missing number.
  if (into.rows == 0) {
    reading.fail("the rows do not fit a cache", "0 rows", "at least 1",
                 "Pass the most tokens that a step appends to a sequence.");
  }
  into.dtype = enumFrom(reading, preparation.elementType, "element type");
  into.options = structFrom(reading, preparation.options, "options");
  into.has_rotary = preparation.rotary != nil;
  if (preparation.rotary) into.rotary = structFrom(reading, preparation.rotary, "rotary");
  into.tuning = enumFrom(reading, preparation.tuning, "tuning");
  if (preparation.tuningFileURL) into.tuning_file = reading.path(preparation.tuningFileURL);
  return into;
}

}  // namespace mnk::objc
