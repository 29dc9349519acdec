#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKCommandEncoder

- (instancetype)init {
  return nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device handle:(std::unique_ptr<mnk_encoder>)handle {
  if ((self = [super init])) {
    _device = device;
    _handle = std::move(handle);
  }
  return self;
}

- (BOOL)append:(MNKCacheStep *)step toCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.append");
    mnk_cache *target = objc::handleOf(reading, cache, "the cache");
    const auto input = objc::structFrom(reading, step);
    return objc::called(
        reading, [&](mnk_error_out out) { return mnk_encoder_append(self->_handle.get(), target, &input, out); });
  });
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error {
  return [self append:[MNKCacheStep stepWithKeys:keys values:values] toCache:cache error:error];
}

- (BOOL)attend:(MNKCacheStep *)step overCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.attend");
    mnk_cache *target = objc::handleOf(reading, cache, "the cache");
    const auto input = objc::structFrom(reading, step);
    return objc::called(
        reading, [&](mnk_error_out out) { return mnk_encoder_attend(self->_handle.get(), target, &input, out); });
  });
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  MNKCacheStep *step = [MNKCacheStep stepWithQueries:queries results:[MNKAttentionResults resultsIntoTensor:output]];
  step.options = options;
  return [self attend:step overCache:cache error:error];
}

- (BOOL)appendAndAttend:(MNKCacheStep *)step overCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.appendAndAttend");
    mnk_cache *target = objc::handleOf(reading, cache, "the cache");
    const auto input = objc::structFrom(reading, step);
    return objc::called(reading, [&](mnk_error_out out) {
      return mnk_encoder_append_and_attend(self->_handle.get(), target, &input, out);
    });
  });
}

- (BOOL)copySequence:(NSUInteger)source
          toSequence:(NSUInteger)target
             inCache:(MNKAttentionCache *)cache
               error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.copy");
    auto both = objc::read(reading, cache);
    const uint32_t from = reading.narrow(source, "the source"), to = reading.narrow(target, "the target");
    if (reading.failed()) return reading.error();
    return both->copy(self->_handle->encoder, from, to);
  });
}

- (BOOL)copySequence:(NSUInteger)source
             ofCache:(MNKAttentionCache *)cache
          toSequence:(NSUInteger)target
             ofCache:(MNKAttentionCache *)other
               error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.copy");
    const auto first = objc::read(reading, cache);
    auto second = objc::read(reading, other);
    const uint32_t from = reading.narrow(source, "the source"), to = reading.narrow(target, "the target");
    if (reading.failed()) return reading.error();
    return first->copy(self->_handle->encoder, from, *second, to);
  });
}

- (MNKAttentionCache *)growCache:(MNKAttentionCache *)cache toCapacity:(NSUInteger)capacity error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKAttentionCache *> {
    Reading reading("AttentionCache.grown");
    const auto source = objc::read(reading, cache);
    const uint32_t slots = reading.narrow(capacity, "capacity");
    if (reading.failed()) return reading.error();
    auto result = source->grown(self->_handle->encoder, slots);
    if (!result) return result.error();
    return [[MNKAttentionCache alloc] initWithCore:*result];
  });
}

- (BOOL)rotateQueries:(MNKTensor *)queries
                 keys:(MNKTensor *)keys
            positions:(MNKRotaryPositions *)positions
               rotary:(MNKRotaryEmbedding *)rotary
                error:(NSError **)error {
  MNKHeadsView *keyView = keys ? [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)keys] : nil;
  MNKMultiRoPE *rope = [[MNKMultiRoPE alloc] initWithQueries:[[MNKHeadsView alloc] initWithTensor:queries]
                                                        keys:keyView
                                                   positions:positions
                                                      rotary:rotary];
  return [self encodeOperation:rope error:error];
}

- (MNKAttentionCache *)quantizeCache:(MNKAttentionCache *)cache
                           asStorage:(MNKKVQuantizedStorage *)storage
                               error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKAttentionCache *> {
    Reading reading("AttentionCache.quantized");
    const auto source = objc::read(reading, cache);
    const KVQuantizedStorage quantizedStorage = objc::read(reading, storage, "the storage");
    if (reading.failed()) return reading.error();
    auto result = source->quantized(self->_handle->encoder, quantizedStorage);
    if (!result) return result.error();
    return [[MNKAttentionCache alloc] initWithCore:*result];
  });
}

- (BOOL)dequantizeCache:(MNKAttentionCache *)cache
               intoKeys:(MNKTensor *)keys
                 values:(MNKTensor *)values
               position:(NSUInteger)position
               sequence:(NSUInteger)sequence
                 domain:(MNKKVDomain)domain
                  error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.dequantize");
    const auto source = objc::read(reading, cache);
    const uint32_t one = objc::sequenceNumber(sequence);
    const KVDomain form = objc::read(reading, domain, "domain");
    if (reading.failed()) return reading.error();
    return source->dequantize(self->_handle->encoder, objc::optionalCoreOf(keys), objc::optionalCoreOf(values),
                              position, one, form);
  });
}

- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(operation, "the operation")) return reading.error();
    return [operation encodeWithHandle:self->_handle.get()];
  });
}

- (BOOL)encodeDispatch:(MNKDispatch *)dispatch error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    auto result = objc::coreOf(dispatch);
    if (!result) return result.error();
    return self->_handle->encoder.dispatch(*result);
  });
}

- (BOOL)insertBarrierWithError:(NSError **)error {
  return objc::run(error, [&] { return self->_handle->encoder.barrier(); });
}

- (BOOL)measureOpsWithError:(NSError **)error {
  return objc::run(error, [&] { return self->_handle->encoder.measureOps(); });
}

- (MNKCompletion *)commitWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKCompletion *> {
    auto completion = self->_handle->encoder.commit();
    if (!completion) return completion.error();
    return [[MNKCompletion alloc] initWithCore:*completion];
  });
}

- (void)commitWithCompletionHandler:(void (^)(MNKSummary *, NSError *))completionHandler {
  void (^handler)(MNKSummary *, NSError *) = [completionHandler copy];
  const Result<void> submitted = guarded("MNKCommandEncoder", [&]() -> Result<void> {
    auto completion = self->_handle->encoder.commit(objc::finishedBy(handler));
    return completion ? Result<void>() : Result<void>(completion.error());
  });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

@end
