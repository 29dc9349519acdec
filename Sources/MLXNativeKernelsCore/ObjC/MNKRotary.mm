#include <algorithm>

#import "ObjC/Core.hpp"
#include "Support/Format.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKHeadsView (MNKViews)

+ (instancetype)viewWithTensor:(MNKTensor *)tensor layout:(MNKKVLayout)layout {
  MNKHeadsView *view = [[self alloc] initWithTensor:tensor];
  view.layout = layout;
  return view;
}

+ (instancetype)viewWithColumnsOfTensor:(MNKTensor *)tensor
                            firstColumn:(NSUInteger)firstColumn
                                  heads:(NSUInteger)heads
                                headDim:(NSUInteger)headDim
                                  error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKHeadsView *> {
    auto core = HeadsView::columns(objc::coreOf(tensor), firstColumn, heads, headDim);
    if (!core) return core.error();
    MNKHeadsView *view = [[self alloc] initWithTensor:tensor];
    view.strides = objc::objectFrom(core->resolved());
    return view;
  });
}

@end

@implementation MNKRotaryPositions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"first", @"axes", @"tensor", @"cache", @"sequences", @"rowCounts" ];
}

- (instancetype)initWithFirst:(NSInteger)first axes:(NSArray<NSArray<NSNumber *> *> *)axes tensor:(MNKTensor *)tensor {
  if ((self = [super init])) {
    _first = first;
    // Axes may be mutable arrays.
    NSMutableArray *copies = axes ? [NSMutableArray array] : nil;
    for (id axis in axes) [copies addObject:[axis isKindOfClass:[NSArray class]] ? [axis copy] : axis];
    _axes = [copies copy];
    _tensor = tensor;
  }
  return self;
}

+ (instancetype)positionsStartingAt:(NSInteger)first {
  return [[self alloc] initWithFirst:first axes:nil tensor:nil];
}
+ (instancetype)positionsPerAxis:(NSArray<NSArray<NSNumber *> *> *)axes {
  return [[self alloc] initWithFirst:0 axes:axes ?: @[] tensor:nil];
}
+ (instancetype)positionsWithTensor:(MNKTensor *)tensor {
  // Without a tensor there are no positions, rather than positions from 0.
  return [[self alloc] initWithFirst:0 axes:tensor ? nil : @[] tensor:tensor];
}
+ (instancetype)nextPositionsOfCache:(MNKAttentionCache *)cache {
  return [self nextPositionsOfCache:cache sequences:@[ @(MNKOnlySequence) ] rowCounts:nil];
}
+ (instancetype)nextPositionsOfCache:(MNKAttentionCache *)cache
                           sequences:(NSArray<NSNumber *> *)sequences
                           rowCounts:(NSArray<NSNumber *> *)rowCounts {
  // Without a cache there are no positions, rather than positions from 0.
  MNKRotaryPositions *positions = [[self alloc] initWithFirst:0 axes:cache ? nil : @[] tensor:nil];
  positions->_cache = cache;
  positions->_sequences = [sequences copy];
  positions->_rowCounts = [rowCounts copy];
  return positions;
}
- (id)copyWithZone:(NSZone *)zone {
  return self;  // immutable
}

@end

@implementation MNKRotaryStep

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"embedding", @"positions", @"offsets" ];
}

- (instancetype)initWithEmbedding:(MNKRotaryEmbedding *)embedding {
  if ((self = [super init])) _embedding = [embedding copy];
  return self;
}

@end

// Empty if there are no integers.
static std::optional<RotaryOffsets> readOffsets(Reading &reading, MNKIntegers *offsets) {
  if (!offsets) return std::nullopt;
  if (offsets.tensor) return objc::coreOf(offsets.tensor);
  return reading.integers<int32_t>(offsets.list, "an offset");
}

@implementation MNKMultiRoPE

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"queries", @"keys", @"rotatedQueries", @"rotatedKeys", @"positions", @"offsets", @"rotary" ];
}

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                           keys:(MNKHeadsView *)keys
                      positions:(MNKRotaryPositions *)positions
                         rotary:(MNKRotaryEmbedding *)rotary {
  if ((self = [super init])) {
    _queries = [queries copy];
    _keys = [keys copy];
    _positions = [positions copy];
    _rotary = [rotary copy];
  }
  return self;
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(MultiRoPE::name);
  MultiRoPE op{.queries = objc::read(reading, _queries, "queries"),
               .positions = objc::read(reading, _positions),
               .rotary = objc::read(reading, _rotary, "rotary")};
  if (_keys) op.keys = objc::read(reading, _keys, "keys");
  if (_rotatedQueries) op.rotatedQueries = objc::read(reading, _rotatedQueries, "rotatedQueries");
  if (_rotatedKeys) op.rotatedKeys = objc::read(reading, _rotatedKeys, "rotatedKeys");
  op.offsets = readOffsets(reading, _offsets);
  if (reading.failed()) return reading.error();
  return objc::AnyOp(std::move(op));
}

@end

namespace mnk::objc {

RotaryPositions read(Reading &reading, MNKRotaryPositions *positions) {
  if (!reading.needed(positions, "positions")) return {};
  if (positions.tensor) return coreOf(positions.tensor);
  if (positions.cache) {
    const auto cache = read(reading, positions.cache);
    auto sequences = readSequences(reading, positions.sequences);
    auto rowCounts = readRowCounts(reading, positions.rowCounts);
    if (reading.failed()) return {};
    return cache->nextPositions(std::move(sequences), std::move(rowCounts));
  }
  if (!positions.axes) return static_cast<int64_t>(positions.first);
  std::vector<int32_t> all;
  NSUInteger count = 0;
  for (NSArray<NSNumber *> *axis in positions.axes) {
    if (!reading.isA([NSArray class], axis, "an axis of positions")) return {};
    if (all.empty()) count = axis.count;
    if (axis.count != count) {
      reading.fail("axes hold different numbers of positions", fmt::format("{} and {}", count, axis.count),
                   "one position for each token on each axis", "Give every token a position on each axis.");
      return {};
    }
    const auto numbers = reading.integers<int32_t>(axis, "a position");
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return {std::move(all), reading.narrow(positions.axes.count, "the number of axes")};
}

std::optional<RotaryStep> read(Reading &reading, MNKRotaryStep *rotary) {
  if (!rotary) return std::nullopt;
  RotaryStep step{.embedding = read(reading, rotary.embedding, "the rotary embedding")};
  if (rotary.positions) step.positions = read(reading, rotary.positions);
  step.offsets = readOffsets(reading, rotary.offsets);
  return step;
}

}  // namespace mnk::objc
