#include "CAPI/Generated/Write.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKAttentionCacheDescriptor (MNKExtents)

+ (instancetype)descriptorWithKVHeads:(NSUInteger)kvHeads headDim:(NSUInteger)headDim capacity:(NSUInteger)capacity {
  return [[self alloc] initWithKVHeads:kvHeads headDim:headDim capacity:capacity];
}

@end

const NSUInteger MNKOnlySequence = NSUIntegerMax;

namespace {

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
    Reading reading("AttentionCache");
    const AttentionCacheDescriptor input = objc::read(reading, descriptor, "the descriptor");
    if (reading.failed()) return reading.error();
    auto cache = AttentionCache::make(*target, input);
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
  return objc::objectFrom(_core->descriptor());
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
