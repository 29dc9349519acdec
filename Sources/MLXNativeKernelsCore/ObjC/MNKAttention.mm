#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKAttentionResults (MNKOutputs)

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
  if (!reading.needed(_results, "results")) return reading.error();
  if ((_cache == nil) == (_quantizedCache == nil)) {
    reading.fail("the cache is not one of dense and quantized", _cache ? "both" : "neither", "one of them",
                 "Set cache or quantizedCache, and leave the other nil.");
    return reading.error();
  }
  FlashDecode op{.queries = objc::read(reading, _queriesView, "queriesView"),
                 .over = {},
                 .results = objc::read(reading, _results, "results"),
                 .options = objc::read(reading, _options, "options"),
                 .scratch = objc::optionalCoreOf(_scratch)};
  if (_cache) {
    op.over = objc::read(reading, _cache, "the cache");
  } else {
    op.over = objc::read(reading, _quantizedCache, "the cache");
  }
  for (MNKAttendedSequence *one in _sequences) {
    if (!reading.isA([MNKAttendedSequence class], one, "a sequence")) break;
    op.sequences.push_back(objc::read(reading, one, "a sequence"));
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
  if (!reading.needed(_results, "results")) return reading.error();
  MergePartials op{.partials = objc::read(reading, _partials, "partials"),
                   .sinks = objc::optionalCoreOf(_sinks),
                   .results = objc::read(reading, _results, "results")};
  if (reading.failed()) return reading.error();
  return objc::AnyOp(std::move(op));
}

@end
