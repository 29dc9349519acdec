#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKAttentionOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"scale", @"causal", @"window", @"windowSeesPinned", @"softcap", @"mask", @"slopes", @"sinks", @"splits", @"kernel",
    @"merge"
  ];
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
  return @[ @"sequence", @"length", @"highest", @"rows", @"position" ];
}

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length {
  return [self initWithSequence:sequence length:length highest:0];
}

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length highest:(NSUInteger)highest {
  return [self initWithSequence:sequence length:length highest:highest rows:0];
}

- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows {
  return [self initWithSequence:sequence length:length highest:highest rows:rows position:nil];
}

- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows
                        position:(NSNumber *)position {
  if ((self = [super init])) {
    _sequence = sequence;
    _length = length;
    _highest = highest;
    _rows = rows;
    _position = [position copy];
  }
  return self;
}

- (id)copyWithZone:(NSZone *)zone {
  return self;  // immutable
}

@end

@implementation MNKFlashDecode

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"queriesView", @"cache", @"quantizedCache", @"sequences", @"results", @"options", @"scratch" ];
}

- (instancetype)initWithQueries:(MNKTensor *)queries
                      overCache:(MNKKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results {
  return [self initWithQueriesView:[[MNKHeadsView alloc] initWithTensor:queries]
                         overCache:cache
                         sequences:sequences
                           results:results];
}

- (instancetype)initWithQueries:(MNKTensor *)queries
             overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results {
  return [self initWithQueriesView:[[MNKHeadsView alloc] initWithTensor:queries]
                overQuantizedCache:cache
                         sequences:sequences
                           results:results];
}

- (instancetype)initWithQueriesView:(MNKHeadsView *)queries
                          overCache:(MNKKVCacheView *)cache
                          sequences:(NSArray<MNKAttendedSequence *> *)sequences
                            results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _queriesView = [queries copy];
    _cache = [cache copy];
    _sequences = [sequences copy];
    _results = [results copy];
    _options = [[MNKAttentionOptions alloc] init];
  }
  return self;
}

- (instancetype)initWithQueriesView:(MNKHeadsView *)queries
                 overQuantizedCache:(MNKQuantizedKVCacheView *)cache
                          sequences:(NSArray<MNKAttendedSequence *> *)sequences
                            results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _queriesView = [queries copy];
    _quantizedCache = [cache copy];
    _sequences = [sequences copy];
    _results = [results copy];
    _options = [[MNKAttentionOptions alloc] init];
  }
  return self;
}

- (MNKTensor *)queries {
  return _queriesView.tensor;
}
- (void)setQueries:(MNKTensor *)queries {
  self.queriesView = [[MNKHeadsView alloc] initWithTensor:queries];
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(FlashDecode::name);
  if ((_cache == nil) == (_quantizedCache == nil)) {
    reading.fail("the cache is not one of dense and quantized", _cache ? "both" : "neither", "one of them",
                 "Set cache or quantizedCache, and leave the other nil.");
    return reading.error();
  }
  FlashDecode op{.queries = objc::read(reading, _queriesView),
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
    op.sequences.push_back({objc::sequenceNumber(one.sequence), one.length, one.highest, one.rows});
    if (one.position) op.sequences.back().position = reading.integer<int64_t>(one.position, "position");
  }
  if (reading.failed()) return reading.error();
  return objc::AnyOp(std::move(op));
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

- (Result<objc::AnyOp>)coreOp {
  Reading reading(MergePartials::name);
  MergePartials op{.partials = {objc::coreOf(_partials.sums), objc::coreOf(_partials.stats)},
                   .sinks = objc::optionalCoreOf(_sinks),
                   .results = objc::read(reading, _results)};
  if (reading.failed()) return reading.error();
  return objc::AnyOp(std::move(op));
}

@end

namespace mnk::objc {

AttentionOptions read(Reading &reading, MNKAttentionOptions *options) {
  if (!options) return {};
  return {.scale = options.scale,
          .isCausal = options.isCausal != NO,
          .window = reading.narrow(options.window, "window"),
          .windowSeesPinned = options.windowSeesPinned != NO,
          .softcap = options.softcap,
          .mask = optionalCoreOf(options.mask),
          .slopes = optionalCoreOf(options.slopes),
          .sinks = optionalCoreOf(options.sinks),
          .splits = reading.narrow(options.splits, "splits"),
          .kernel = reading.choice(options.kernel, FlashDecodeKernel::matrix, "kernel"),
          .merge = reading.choice(options.merge, FlashDecodeMerge::inKernel, "merge")};
}

AttentionResults read(Reading &reading, MNKAttentionResults *results) {
  if (!reading.needed(results, "results")) return {};
  AttentionResults result{.into = optionalCoreOf(results.output), .logSumExp = optionalCoreOf(results.logSumExp)};
  if (results.partials) result.partials = {coreOf(results.partials.sums), coreOf(results.partials.stats)};
  return result;
}

}  // namespace mnk::objc
