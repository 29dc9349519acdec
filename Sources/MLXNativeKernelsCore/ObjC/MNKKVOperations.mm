#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

namespace {

// Numbers that are known now, or a tensor that the kernel reads.
RowIndices readIndices(Reading &reading, MNKIntegers *indices, std::string_view name) {
  if (indices.tensor) return objc::coreOf(indices.tensor);
  return reading.integers<uint32_t>(indices.list, name);
}

// What all ops that store tokens share: a source and the destination of its tokens.
template <typename Op>
void readStore(Reading &reading, MNKKVCacheStore *input, Op &op) {
  op.keys = objc::read(reading, input.keysView, "keysView");
  if (input.valuesView) op.values = objc::read(reading, input.valuesView, "valuesView");
  op.sourceLayout = objc::read(reading, input.sourceLayout, "layout");
  op.sourceOffset = input.sourceOffset;
  if (input.tokens) op.tokens = reading.integer<uint64_t>(input.tokens, "tokens");
  op.sourceIsRing = input.sourceIsRing != NO;
  op.sequence = objc::sequenceNumber(input.sequence);
  op.position = input.position;
  if (!input.rowSequences && !input.rowPositions) return;
  if (!input.rowSequences || !input.rowPositions) {
    return reading.fail("rows have only one of sequences and positions",
                        input.rowSequences ? "rowSequences alone" : "rowPositions alone", "both, or none",
                        "Set rowSequences and rowPositions.");
  }
  op.rows = KVCacheWrite::Rows{readIndices(reading, input.rowSequences, "a row's sequence"),
                               readIndices(reading, input.rowPositions, "a row's position")};
}

template <typename Op>
Result<objc::AnyOp> readOp(const Reading &reading, const Op &op) {
  if (reading.failed()) return reading.error();
  return objc::AnyOp(std::move(op));
}

}  // namespace

@implementation MNKKVCacheWrite

+ (NSArray<NSString *> *)valueKeys {
  return [[super valueKeys] arrayByAddingObject:@"cache"];
}

- (instancetype)initWithKeys:(MNKTensor *)keys
                      values:(MNKTensor *)values
                   intoCache:(MNKKVCacheView *)cache
                    position:(NSUInteger)position {
  return [self initWithKeysView:[[MNKHeadsView alloc] initWithTensor:keys]
                     valuesView:values ? [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)values] : nil
                      intoCache:cache
                       position:position];
}

- (instancetype)initWithKeysView:(MNKHeadsView *)keys
                      valuesView:(MNKHeadsView *)values
                       intoCache:(MNKKVCacheView *)cache
                        position:(NSUInteger)position {
  if ((self = [super init])) {
    self.keysView = keys;
    self.valuesView = values;
    self.position = position;
    _cache = [cache copy];
  }
  return self;
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(KVCacheWrite::name);
  KVCacheWrite op;
  readStore(reading, self, op);
  op.into = objc::read(reading, _cache, "the cache");
  return readOp(reading, op);
}

@end

@implementation MNKKVCacheQuantize

+ (NSArray<NSString *> *)valueKeys {
  return [[super valueKeys] arrayByAddingObjectsFromArray:@[ @"cache", @"options", @"counts", @"probe" ]];
}

- (instancetype)initWithKeys:(MNKTensor *)keys
                      values:(MNKTensor *)values
                   intoCache:(MNKQuantizedKVCacheView *)cache
                    position:(NSUInteger)position {
  return [self initWithKeysView:[[MNKHeadsView alloc] initWithTensor:keys]
                     valuesView:values ? [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)values] : nil
                      intoCache:cache
                       position:position];
}

- (instancetype)initWithKeysView:(MNKHeadsView *)keys
                      valuesView:(MNKHeadsView *)values
                       intoCache:(MNKQuantizedKVCacheView *)cache
                        position:(NSUInteger)position {
  if ((self = [super init])) {
    self.keysView = keys;
    self.valuesView = values;
    self.position = position;
    _cache = [cache copy];
    _options = [[MNKKVQuantizeOptions alloc] init];
  }
  return self;
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(KVCacheQuantize::name);
  KVCacheQuantize op;
  readStore(reading, self, op);
  op.into = objc::read(reading, _cache, "the cache");
  op.options = objc::read(reading, _options, "options");
  op.counts = objc::optionalCoreOf(_counts);
  op.probe = objc::optionalCoreOf(_probe);
  return readOp(reading, op);
}

@end

@implementation MNKKVCacheDequantize

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"cache", @"sequence", @"position", @"keys", @"values", @"layout", @"domain" ];
}

- (instancetype)initWithCache:(MNKQuantizedKVCacheView *)cache
                         keys:(MNKTensor *)keys
                       values:(MNKTensor *)values
                     position:(NSUInteger)position {
  if ((self = [super init])) {
    _cache = [cache copy];
    _keys = keys;
    _values = values;
    _position = position;
    _sequence = MNKOnlySequence;
    _layout = MNKKVLayoutTokenMajor;
  }
  return self;
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(KVCacheDequantize::name);
  const KVCacheDequantize op{.from = objc::read(reading, _cache, "the cache"),
                             .sequence = objc::sequenceNumber(_sequence),
                             .position = _position,
                             .keys = objc::optionalCoreOf(_keys),
                             .values = objc::optionalCoreOf(_values),
                             .layout = objc::read(reading, _layout, "layout"),
                             .domain = objc::read(reading, _domain, "domain")};
  return readOp(reading, op);
}

@end

@implementation MNKHadamard

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"source", @"destination", @"usesSigns", @"codec", @"inverse" ];
}

- (instancetype)initWithSource:(MNKTensor *)source intoTensor:(MNKTensor *)destination {
  if ((self = [super init])) {
    _source = source;
    _destination = destination;
  }
  return self;
}

- (Result<objc::AnyOp>)coreOp {
  Reading reading(Hadamard::name);
  Hadamard op{.from = objc::coreOf(_source), .into = objc::optionalCoreOf(_destination), .isInverse = _inverse != NO};
  if (_usesSigns) op.signs = objc::read(reading, _codec, "codec");
  return readOp(reading, op);
}

@end
