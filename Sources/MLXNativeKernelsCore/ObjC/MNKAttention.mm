#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKAttentionOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"scale", @"causal", @"window", @"softcap", @"mask", @"slopes", @"sinks", @"splits", @"kernel", @"merge" ];
}

- (instancetype)init {
  if ((self = [super init])) _causal = YES;
  return self;
}

@end

@implementation MNKAttentionPartials

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"sums", @"stats" ];
}

- (instancetype)initWithSums:(MNKTensor *)sums stats:(MNKTensor *)stats {
  if ((self = [super init])) {
    _sums = sums;
    _stats = stats;
  }
  return self;
}

@end

@implementation MNKAttentionResults

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"output", @"partials", @"logSumExp" ];
}

+ (instancetype)resultsIntoTensor:(MNKTensor *)output {
  MNKAttentionResults *results = [[self alloc] init];
  results.output = output;
  return results;
}
+ (instancetype)resultsIntoPartials:(MNKAttentionPartials *)partials {
  MNKAttentionResults *results = [[self alloc] init];
  results.partials = partials;
  return results;
}

@end

@implementation MNKAttendedSequence

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"sequence", @"length" ];
}

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length {
  if ((self = [super init])) {
    _sequence = sequence;
    _length = length;
  }
  return self;
}

- (id)copyWithZone:(NSZone *)zone {
  return self;  // nothing of it can change
}

@end

@implementation MNKFlashDecode

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"queries", @"cache", @"quantizedCache", @"sequences", @"results", @"options", @"scratch" ];
}

- (instancetype)initWithQueries:(MNKTensor *)queries
                      overCache:(MNKKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _queries = queries;
    _cache = [cache copy];
    _sequences = [sequences copy];
    _results = [results copy];
    _options = [[MNKAttentionOptions alloc] init];
  }
  return self;
}

- (instancetype)initWithQueries:(MNKTensor *)queries
             overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _queries = queries;
    _quantizedCache = [cache copy];
    _sequences = [sequences copy];
    _results = [results copy];
    _options = [[MNKAttentionOptions alloc] init];
  }
  return self;
}

- (Result<Plan>)corePlanOn:(Device *)device {
  Reading reading(FlashDecode::name);
  if ((_cache == nil) == (_quantizedCache == nil)) {
    reading.fail("the cache is not one of dense and quantized", _cache ? "both" : "neither", "one of them",
                 "Set cache or quantizedCache, and leave the other nil.");
    return reading.error();
  }
  FlashDecode op{.queries = objc::coreOf(_queries),
                 .over = {},
                 .results = objc::read(reading, _results),
                 .options = objc::read(reading, _options),
                 .scratch = objc::optionalCoreOf(_scratch)};
  if (_cache) {
    op.over = objc::read(reading, _cache);
  } else {
    op.over = objc::read(reading, _quantizedCache);
  }
  for (MNKAttendedSequence *one in _sequences) {
    if (!reading.isA([MNKAttendedSequence class], one, "a sequence")) break;
    op.sequences.push_back({one.sequence, one.length});
  }
  if (reading.failed()) return reading.error();
  return device ? plan(op, *device) : plan(op);
}

@end

@implementation MNKMergePartials

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"partials", @"sinks", @"results" ];
}

- (instancetype)initWithPartials:(MNKAttentionPartials *)partials results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _partials = [partials copy];
    _results = [results copy];
  }
  return self;
}

- (Result<Plan>)corePlanOn:(Device *)device {
  Reading reading(MergePartials::name);
  const MergePartials op{.partials = {objc::coreOf(_partials.sums), objc::coreOf(_partials.stats)},
                         .sinks = objc::optionalCoreOf(_sinks),
                         .results = objc::read(reading, _results)};
  if (reading.failed()) return reading.error();
  return plan(op);
}

@end

namespace mnk::objc {

AttentionOptions read(Reading &reading, MNKAttentionOptions *options) {
  if (!options) return {};
  return {.scale = options.scale,
          .isCausal = options.isCausal != NO,
          .window = reading.narrow(options.window, "window"),
          .softcap = options.softcap,
          .mask = optionalCoreOf(options.mask),
          .slopes = optionalCoreOf(options.slopes),
          .sinks = optionalCoreOf(options.sinks),
          .splits = reading.narrow(options.splits, "splits"),
          .kernel = reading.choice(options.kernel, FlashDecodeKernel::matrix, "kernel"),
          .merge = reading.choice(options.merge, FlashDecodeMerge::together, "merge")};
}

AttentionResults read(Reading &reading, MNKAttentionResults *results) {
  if (!reading.needed(results, "results")) return {};
  AttentionResults made{.into = optionalCoreOf(results.output), .logSumExp = optionalCoreOf(results.logSumExp)};
  if (results.partials) made.partials = {coreOf(results.partials.sums), coreOf(results.partials.stats)};
  return made;
}

}  // namespace mnk::objc
