#include "CAPI/Generated/Write.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKQuantizedStorage

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"codec", @"keyBits", @"valueBits", @"scaleFactor", @"options", @"keyMeans", @"valueMeans", @"keyChannelScales",
    @"planes"
  ];
}

- (instancetype)initWithCodec:(MNKKVCodecName)codec keyBits:(NSUInteger)keyBits valueBits:(NSUInteger)valueBits {
  if ((self = [super init])) {
    _codec = codec;
    _keyBits = keyBits;
    _valueBits = valueBits;
    _scaleFactor = 1;
    _options = [[MNKKVQuantizeOptions alloc] init];
  }
  return self;
}

@end

@implementation MNKAttentionCacheDescriptor

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"kvHeads", @"headDim", @"valueHeadDim", @"capacity", @"sequences", @"elementType", @"quantized", @"whenFull",
    @"pinned", @"slidingWindow", @"latentDim", @"storageOnly"
  ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _sequences = 1;
    _elementType = MNKElementTypeFloat16;
    _whenFull = MNKWhenFullFail;
  }
  return self;
}

+ (instancetype)descriptorWithKVHeads:(NSUInteger)kvHeads headDim:(NSUInteger)headDim capacity:(NSUInteger)capacity {
  MNKAttentionCacheDescriptor *descriptor = [[self alloc] init];
  descriptor.kvHeads = kvHeads;
  descriptor.headDim = headDim;
  descriptor.capacity = capacity;
  return descriptor;
}

@end

KVQuantizedStorage objc::read(Reading &reading, MNKQuantizedStorage *storage) {
  if (!reading.needed(storage, "the storage")) return {};
  return {.codec = objc::read(reading, storage.codec, "codec"),
          .keyBits = reading.narrow(storage.keyBits, "keyBits"),
          .valueBits = reading.narrow(storage.valueBits, "valueBits"),
          .scaleFactor = storage.scaleFactor,
          .options = objc::read(reading, storage.options, "options"),
          .keyMeans = objc::optionalCoreOf(storage.keyMeans),
          .valueMeans = objc::optionalCoreOf(storage.valueMeans),
          .keyChannelScales = objc::optionalCoreOf(storage.keyChannelScales),
          .planes = objc::read(reading, storage.planes, "planes")};
}

const NSUInteger MNKOnlySequence = NSUIntegerMax;

namespace {

Result<AttentionCacheDescriptor> coreDescriptor(MNKAttentionCacheDescriptor *input) {
  Reading reading("AttentionCache");
  if (!reading.needed(input, "the descriptor")) return reading.error();
  AttentionCacheDescriptor result{
      .kvHeads = reading.narrow(input.kvHeads, "kvHeads"),
      .headDim = reading.narrow(input.headDim, "headDim"),
      .valueHeadDim = reading.narrow(input.valueHeadDim, "valueHeadDim"),
      .capacity = reading.narrow(input.capacity, "capacity"),
      .sequences = reading.narrow(input.sequences, "sequences"),
      .dtype = objc::read(reading, input.elementType),
      .whenFull = reading.choice(input.whenFull, KVWrap::ring, "choice for a full cache", "MNKWhenFull"),
      .pinned = reading.narrow(input.pinned, "pinned"),
      .latentDim = reading.narrow(input.latentDim, "latentDim"),
      .isStorageOnly = input.isStorageOnly != NO};
  if (input.quantized) result.quantized = objc::read(reading, input.quantized);
  if (input.slidingWindow) result.slidingWindow = objc::read(reading, input.slidingWindow, "slidingWindow");
  return reading.result(result);
}

MNKQuantizedStorage *storageFrom(const KVQuantizedStorage &core) {
  MNKQuantizedStorage *storage = [[MNKQuantizedStorage alloc] initWithCodec:static_cast<MNKKVCodecName>(core.codec)
                                                                    keyBits:core.keyBits
                                                                  valueBits:core.valueBits];
  storage.scaleFactor = core.scaleFactor;
  storage.options = objc::objectFrom(core.options);
  storage.keyMeans = objc::tensorFrom(core.keyMeans);
  storage.valueMeans = objc::tensorFrom(core.valueMeans);
  storage.keyChannelScales = objc::tensorFrom(core.keyChannelScales);
  storage.planes = static_cast<MNKKVQuantizedPlanes>(core.planes);
  return storage;
}

NSUInteger countOrNotFound(const Result<uint64_t> &count) {
  return count ? static_cast<NSUInteger>(*count) : static_cast<NSUInteger>(NSNotFound);
}

}  // namespace

@implementation MNKAttentionCache

- (instancetype)init {
  return nil;
}

- (instancetype)initWithCore:(AttentionCache)core {
  if ((self = [super init])) _core = std::move(core);
  return self;
}

- (instancetype)initWithDevice:(MNKDevice *)device
                    descriptor:(MNKAttentionCacheDescriptor *)descriptor
                         error:(NSError **)error {
  if (!(self = [super init])) return nil;
  const BOOL succeeded = objc::run(error, [&]() -> Result<void> {
    auto target = objc::coreOf(device);
    if (!target) return target.error();
    auto input = coreDescriptor(descriptor);
    if (!input) return input.error();
    auto cache = AttentionCache::make(*target, *input);
    if (!cache) return cache.error();
    self->_core = *cache;
    return {};
  });
  return succeeded ? self : nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device
                 contentsOfURL:(NSURL *)url
                      maxBytes:(NSUInteger)maxBytes
                         error:(NSError **)error {
  return [self initWithDevice:device contentsOfURL:url maxBytes:maxBytes capacity:0 error:error];
}

- (instancetype)initWithDevice:(MNKDevice *)device
                 contentsOfURL:(NSURL *)url
                      maxBytes:(NSUInteger)maxBytes
                      capacity:(NSUInteger)capacity
                         error:(NSError **)error {
  if (!(self = [super init])) return nil;
  const BOOL succeeded = objc::run(error, [&]() -> Result<void> {
    auto target = objc::coreOf(device);
    if (!target) return target.error();
    auto path = objc::pathFrom(url, "AttentionCache");
    if (!path) return path.error();
    Reading reading("AttentionCache");
    const uint32_t slots = reading.narrow(capacity, "capacity");
    if (reading.failed()) return reading.error();
    auto cache = AttentionCache::load(*target, *path, maxBytes, slots);
    if (!cache) return cache.error();
    self->_core = *cache;
    return {};
  });
  return succeeded ? self : nil;
}

- (BOOL)saveToURL:(NSURL *)url error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    auto path = objc::pathFrom(url, "AttentionCache");
    if (!path) return path.error();
    return self->_core->save(*path);
  });
}

- (MNKAttentionCacheDescriptor *)descriptor {
  const AttentionCacheDescriptor &core = _core->descriptor();
  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:core.kvHeads
                                                                                       headDim:core.headDim
                                                                                      capacity:core.capacity];
  descriptor.valueHeadDim = core.valueHeadDim;
  descriptor.sequences = core.sequences;
  descriptor.elementType = static_cast<MNKElementType>(core.dtype);
  descriptor.quantized = core.quantized ? storageFrom(*core.quantized) : nil;
  descriptor.whenFull = static_cast<MNKWhenFull>(core.whenFull);
  descriptor.pinned = core.pinned;
  if (const auto &window = core.slidingWindow) descriptor.slidingWindow = objc::objectFrom(*window);
  descriptor.latentDim = core.latentDim;
  descriptor.storageOnly = core.isStorageOnly;
  return descriptor;
}
- (MNKKVCacheView *)view {
  return objc::objectFrom(_core->view());
}
- (MNKQuantizedKVCacheView *)quantizedView {
  const auto view = _core->quantizedView();
  return view ? objc::objectFrom(*view) : nil;
}

- (NSString *)description {
  return objc::stringFrom(_core->text());
}

- (NSUInteger)byteCount {
  return static_cast<NSUInteger>(_core->byteCount());
}
- (NSUInteger)bytesPerToken {
  return static_cast<NSUInteger>(_core->bytesPerToken());
}
- (NSInteger)bytesSaved {
  return static_cast<NSInteger>(_core->bytesSaved());
}

- (NSUInteger)nextPosition {
  return [self nextPositionOfSequence:MNKOnlySequence];
}
- (NSUInteger)count {
  return [self countOfSequence:MNKOnlySequence];
}
- (BOOL)isSuspect {
  return _core->isSuspect() ? YES : NO;
}
- (NSUInteger)nextPositionOfSequence:(NSUInteger)sequence {
  return countOrNotFound(_core->nextPosition(objc::sequenceNumber(sequence)));
}
- (NSUInteger)countOfSequence:(NSUInteger)sequence {
  return countOrNotFound(_core->count(objc::sequenceNumber(sequence)));
}
- (BOOL)isSequenceSuspect:(NSUInteger)sequence {
  return _core->isSuspect(objc::sequenceNumber(sequence)) ? YES : NO;
}

- (BOOL)truncateToPosition:(NSUInteger)position error:(NSError **)error {
  return [self truncateToPosition:position sequence:MNKOnlySequence error:error];
}
- (BOOL)truncateToPosition:(NSUInteger)position sequence:(NSUInteger)sequence error:(NSError **)error {
  return objc::run(error, [&] { return self->_core->truncate(position, objc::sequenceNumber(sequence)); });
}
- (void)reset {
  _core->reset();
}
- (BOOL)resetSequence:(NSUInteger)sequence error:(NSError **)error {
  return objc::run(error, [&] { return self->_core->reset(objc::sequenceNumber(sequence)); });
}

@end

@implementation MNKCachePrefix

- (instancetype)initWithCache:(MNKAttentionCache *)cache {
  return [self initWithCache:cache sequence:MNKOnlySequence];
}

- (instancetype)initWithCache:(MNKAttentionCache *)cache sequence:(NSUInteger)sequence {
  if ((self = [super init])) {
    _cache = cache;
    _sequence = sequence;
  }
  return self;
}

@end

namespace mnk::objc {

std::optional<AttentionCache> read(Reading &reading, MNKAttentionCache *cache) {
  return reading.needed(cache, "the cache") ? cache->_core : std::nullopt;
}

}  // namespace mnk::objc
