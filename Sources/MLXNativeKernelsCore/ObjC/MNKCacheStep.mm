#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKCacheStep

+ (NSArray<NSString *> *)valueKeys {
  return
      @[ @"queries", @"keys", @"values", @"rotary", @"results", @"options", @"sequences", @"rowCounts", @"prefixes" ];
}

+ (instancetype)stepWithKeys:(MNKTensor *)keys values:(MNKTensor *)values {
  MNKCacheStep *step = [[self alloc] init];
  step.keys = [[MNKHeadsView alloc] initWithTensor:keys];
  step.values = [[MNKHeadsView alloc] initWithTensor:values];
  return step;
}

+ (instancetype)stepWithQueries:(MNKTensor *)queries results:(MNKAttentionResults *)results {
  MNKCacheStep *step = [[self alloc] init];
  step.queries = [[MNKHeadsView alloc] initWithTensor:queries];
  step.results = results;
  return step;
}

- (instancetype)init {
  if ((self = [super init])) {
    _sequences = @[ @(MNKOnlySequence) ];
    _prefixes = @[];
  }
  return self;
}

@end

namespace mnk::objc {

mnk_cache_step structFrom(Reading &reading, MNKCacheStep *step) {
  mnk_cache_step into{};
  if (!reading.needed(step, "the step") || !reading.isA([MNKCacheStep class], step, "the step")) return into;
  if (step.queries) into.queries = structFrom(reading, step.queries, "queries");
  if (step.keys) into.keys = structFrom(reading, step.keys, "keys");
  if (step.values) into.values = structFrom(reading, step.values, "values");
  into.results = structFrom(reading, step.results, "results");
  into.options = structFrom(reading, step.options, "options");
  into.has_rotary = step.rotary != nil;
  if (step.rotary) into.rotary = structFrom(reading, step.rotary, "rotary");
  fillSequences(reading, into, step.sequences, step.rowCounts);
  std::vector<mnk_cache_prefix> prefixes;
  for (MNKCachePrefix *prefix in step.prefixes) {
    if (!reading.isA([MNKCachePrefix class], prefix, "a prefix")) break;
    prefixes.push_back({handleOf(reading, prefix.cache, "the cache"), sequenceNumber(prefix.sequence)});
  }
  into.prefix_count = prefixes.size();
  into.prefixes = prefixes.empty() ? nullptr : reading.keep(std::move(prefixes)).data();
  return into;
}

}  // namespace mnk::objc
