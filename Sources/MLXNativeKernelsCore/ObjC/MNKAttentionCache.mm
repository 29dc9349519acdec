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

- (instancetype)initWithHandle:(mnk_cache *)handle {
  if ((self = [super init])) _handle.reset(handle);
  return self;
}

- (instancetype)initWithDevice:(MNKDevice *)device
                    descriptor:(MNKAttentionCacheDescriptor *)descriptor
                         error:(NSError **)error {
  if (!(self = [super init])) return nil;
  const BOOL succeeded = objc::run(error, "AttentionCache", [&](Reading &reading) -> Result<void> {
    mnk_device *target = objc::handleOf(reading, device);
    const auto input = objc::structFrom(reading, descriptor, "the descriptor");
    const auto cache = objc::call(reading, mnk_cache_make, target, &input);
    if (!cache) return cache.error();
    self->_handle.reset(*cache);
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
  const BOOL succeeded = objc::run(error, "AttentionCache", [&](Reading &reading) -> Result<void> {
    const auto cache = objc::call(reading, mnk_cache_make_from_path, objc::handleOf(reading, device), reading.path(url),
                                  maxBytes, reading.narrow(capacity, "capacity"));
    if (!cache) return cache.error();
    self->_handle.reset(*cache);
    return {};
  });
  return succeeded ? self : nil;
}

- (BOOL)saveToURL:(NSURL *)url error:(NSError **)error {
  return objc::run(error, "AttentionCache", [&](Reading &reading) {
    return objc::call(reading, mnk_cache_save, self->_handle.get(), reading.path(url));
  });
}

- (MNKAttentionCacheDescriptor *)descriptor {
  return objc::objectFrom(_handle->cache.descriptor());
}
- (MNKKVCacheView *)view {
  return objc::objectFrom(_handle->cache.view());
}
- (MNKQuantizedKVCacheView *)quantizedView {
  const auto view = _handle->cache.quantizedView();
  return view ? objc::objectFrom(*view) : nil;
}

- (NSString *)description {
  return objc::stringFrom(_handle->cache.text());
}

- (NSUInteger)byteCount {
  return static_cast<NSUInteger>(_handle->cache.byteCount());
}
- (NSUInteger)bytesPerToken {
  return static_cast<NSUInteger>(_handle->cache.bytesPerToken());
}
- (NSInteger)bytesSaved {
  return static_cast<NSInteger>(_handle->cache.bytesSaved());
}

- (NSUInteger)nextPosition {
  return [self nextPositionOfSequence:MNKOnlySequence];
}
- (NSUInteger)count {
  return [self countOfSequence:MNKOnlySequence];
}
- (BOOL)isSuspect {
  return _handle->cache.isSuspect() ? YES : NO;
}
- (NSUInteger)nextPositionOfSequence:(NSUInteger)sequence {
  return countOrNotFound(_handle->cache.nextPosition(objc::sequenceNumber(sequence)));
}
- (NSUInteger)countOfSequence:(NSUInteger)sequence {
  return countOrNotFound(_handle->cache.count(objc::sequenceNumber(sequence)));
}
- (BOOL)isSequenceSuspect:(NSUInteger)sequence {
  return _handle->cache.isSuspect(objc::sequenceNumber(sequence)) ? YES : NO;
}

- (BOOL)truncateToPosition:(NSUInteger)position error:(NSError **)error {
  return [self truncateToPosition:position sequence:MNKOnlySequence error:error];
}
- (BOOL)truncateToPosition:(NSUInteger)position sequence:(NSUInteger)sequence error:(NSError **)error {
  return objc::run(error, [&] { return self->_handle->cache.truncate(position, objc::sequenceNumber(sequence)); });
}
- (void)reset {
  _handle->cache.reset();
}
- (BOOL)resetSequence:(NSUInteger)sequence error:(NSError **)error {
  return objc::run(error, [&] { return self->_handle->cache.reset(objc::sequenceNumber(sequence)); });
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

mnk_cache *handleOf(Reading &reading, MNKAttentionCache *cache, std::string_view name) {
  return reading.needed(cache, name) && reading.isA([MNKAttentionCache class], cache, name) ? cache->_handle.get()
                                                                                            : nullptr;
}

}  // namespace mnk::objc
