#include <algorithm>

#import "ObjC/Core.hpp"
#include "Support/Errors.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKTensor (MNKViews)

- (MNKHeadsView *)headsView {
  return [[MNKHeadsView alloc] initWithTensor:self];
}

@end

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
    Reading reading("HeadsView");
    const mnk_tensor *handle = objc::handleOf(reading, tensor, "the tensor");
    if (reading.failed()) return reading.error();
    auto core = HeadsView::columns(handle ? handle->tensor : Tensor(), firstColumn, heads, headDim);
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

namespace mnk::objc {

namespace {

template <typename Number, typename Struct>
void fillNumbers(Reading &reading, Struct &into, MNKIntegers *numbers, std::string_view name) {
  if (!reading.needed(numbers, name) || !reading.isA([MNKIntegers class], numbers, name)) return;
  into.tensor = handleOf(reading, numbers.tensor, name);
  if (numbers.tensor) return;
  const auto &list = reading.keep(reading.integers<Number>(numbers.list, name));
  into.list = c::listOf(list);
  into.list_count = list.size();
}

void fillAxes(Reading &reading, mnk_rotary_positions &into, NSArray<NSArray<NSNumber *> *> *axes) {
  std::vector<int32_t> all;
  const NSUInteger count = [axes.firstObject isKindOfClass:[NSArray class]] ? [axes.firstObject count] : 0;
  for (NSArray<NSNumber *> *axis in axes) {
    if (!reading.isA([NSArray class], axis, "an axis of positions")) return;
    if (axis.count != count) {
      return reading.fail("axes hold different numbers of positions", fmt::format("{} and {}", count, axis.count),
                          "one position for each token on each axis", "Give every token a position on each axis.");
    }
    const auto numbers = reading.integers<int32_t>(axis, "a position");
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  const auto &list = reading.keep(std::move(all));
  into.list = c::listOf(list);
  into.list_count = list.size();
  into.list_axes = reading.narrow(axes.count, "the number of axes");
}

}  // namespace

void fill(Reading &reading, mnk_row_indices &into, MNKIntegers *numbers, std::string_view name) {
  fillNumbers<uint32_t>(reading, into, numbers, name);
}
void fill(Reading &reading, mnk_rotary_offsets &into, MNKIntegers *numbers, std::string_view name) {
  fillNumbers<int32_t>(reading, into, numbers, name);
}

void fill(Reading &reading, mnk_rotary_positions &into, MNKRotaryPositions *positions, std::string_view name) {
  if (!reading.needed(positions, name) || !reading.isA([MNKRotaryPositions class], positions, name)) return;
  if (positions.tensor) {
    into.tensor = handleOf(reading, positions.tensor, name);
  } else if (positions.cache) {
    into.cache = handleOf(reading, positions.cache, "the cache of positions");
    fillSequences(reading, into, positions.sequences, positions.rowCounts);
  } else if (positions.axes) {
    fillAxes(reading, into, positions.axes);
  } else {
    into.has_first = true;
    into.first = positions.first;
  }
}

}  // namespace mnk::objc
