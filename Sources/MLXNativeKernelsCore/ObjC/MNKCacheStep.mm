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

std::vector<uint32_t> readSequences(Reading &reading, NSArray<NSNumber *> *sequences) {
  if (sequences.count == 1 && [sequences[0] isEqual:@(MNKOnlySequence)]) return {kOnlySequence};
  auto numbers = reading.integers<uint32_t>(sequences, "a sequence");
  for (uint32_t &number : numbers) number = sequenceNumber(number);
  return numbers;
}

std::optional<std::vector<uint32_t>> readRowCounts(Reading &reading, NSArray<NSNumber *> *rowCounts) {
  if (!rowCounts) return std::nullopt;
  return reading.integers<uint32_t>(rowCounts, "a row count");
}

CacheStep read(Reading &reading, MNKCacheStep *step) {
  if (!reading.needed(step, "the step")) return {};
  CacheStep result{.rotary = read(reading, step.rotary),
                   .options = read(reading, step.options, "options"),
                   .sequences = readSequences(reading, step.sequences),
                   .rowCounts = readRowCounts(reading, step.rowCounts)};
  if (step.queries) result.queries = read(reading, step.queries, "queries");
  if (step.keys) result.keys = read(reading, step.keys, "keys");
  if (step.values) result.values = read(reading, step.values, "values");
  if (step.results) result.results = read(reading, step.results, "results");
  for (MNKCachePrefix *prefix in step.prefixes) {
    if (!reading.isA([MNKCachePrefix class], prefix, "a prefix")) break;
    const auto cache = read(reading, prefix.cache);
    if (!cache) break;
    result.after.push_back({*cache, sequenceNumber(prefix.sequence)});
  }
  return result;
}

}  // namespace mnk::objc
