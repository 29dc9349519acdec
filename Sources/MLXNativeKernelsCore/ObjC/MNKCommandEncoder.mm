#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

namespace {

// Encodes a step over a cache with the function of C.
template <typename Function>
BOOL encode(MNKCommandEncoder *encoder, std::string_view op, Function &&function, MNKCacheStep *step,
            MNKAttentionCache *cache, NSError *__autoreleasing *error) {
  return objc::run(error, op, [&](Reading &reading) {
    mnk_cache *target = objc::handleOf(reading, cache, "the cache");
    const auto input = objc::structFrom(reading, step);
    return objc::call(reading, function, encoder->_handle.get(), target, &input);
  });
}

}  // namespace

@implementation MNKCommandEncoder

- (instancetype)init {
  return nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device handle:(mnk_encoder *)handle {
  if ((self = [super init])) {
    _device = device;
    _handle.reset(handle);
  }
  return self;
}

- (BOOL)append:(MNKCacheStep *)step toCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return encode(self, "AttentionCache.append", mnk_encoder_append, step, cache, error);
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error {
  return [self append:[MNKCacheStep stepWithKeys:keys values:values] toCache:cache error:error];
}

- (BOOL)attend:(MNKCacheStep *)step overCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return encode(self, "AttentionCache.attend", mnk_encoder_attend, step, cache, error);
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
  return encode(self, "AttentionCache.appendAndAttend", mnk_encoder_append_and_attend, step, cache, error);
}

- (BOOL)copySequence:(NSUInteger)source
          toSequence:(NSUInteger)target
             inCache:(MNKAttentionCache *)cache
               error:(NSError **)error {
  return objc::run(error, "AttentionCache.copy", [&](Reading &reading) {
    return objc::call(reading, mnk_encoder_copy_sequence, self->_handle.get(),
                      objc::handleOf(reading, cache, "the cache"), reading.narrow(source, "the source"),
                      reading.narrow(target, "the target"));
  });
}

- (BOOL)copySequence:(NSUInteger)source
             ofCache:(MNKAttentionCache *)cache
          toSequence:(NSUInteger)target
             ofCache:(MNKAttentionCache *)other
               error:(NSError **)error {
  return objc::run(error, "AttentionCache.copy", [&](Reading &reading) {
    return objc::call(reading, mnk_encoder_copy_sequence_to_cache, self->_handle.get(),
                      objc::handleOf(reading, cache, "the cache"), reading.narrow(source, "the source"),
                      objc::handleOf(reading, other, "the cache"), reading.narrow(target, "the target"));
  });
}

- (MNKAttentionCache *)growCache:(MNKAttentionCache *)cache toCapacity:(NSUInteger)capacity error:(NSError **)error {
  return objc::make<MNKAttentionCache>(error, "AttentionCache.grown", [&](Reading &reading) {
    return objc::call(reading, mnk_encoder_make_grown_cache, self->_handle.get(),
                      objc::handleOf(reading, cache, "the cache"), reading.narrow(capacity, "capacity"));
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
  return objc::make<MNKAttentionCache>(error, "AttentionCache.quantized", [&](Reading &reading) {
    mnk_cache *source = objc::handleOf(reading, cache, "the cache");
    const auto input = objc::structFrom(reading, storage, "the storage");
    return objc::call(reading, mnk_encoder_make_quantized_cache, self->_handle.get(), source, &input);
  });
}

- (BOOL)dequantizeCache:(MNKAttentionCache *)cache
               intoKeys:(MNKTensor *)keys
                 values:(MNKTensor *)values
               position:(NSUInteger)position
               sequence:(NSUInteger)sequence
                 domain:(MNKKVDomain)domain
                  error:(NSError **)error {
  return objc::run(error, "AttentionCache.dequantize", [&](Reading &reading) {
    return objc::call(reading, mnk_encoder_dequantize, self->_handle.get(), objc::handleOf(reading, cache, "the cache"),
                      objc::handleOf(reading, keys, "keys"), objc::handleOf(reading, values, "values"), position,
                      objc::sequenceNumber(sequence), objc::enumFrom(reading, domain, "domain"));
  });
}

- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error {
  return objc::run(error, "MNKCommandEncoder", [&](Reading &reading) -> Result<void> {
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
  return objc::make<MNKCompletion>(error, "MNKCommandEncoder", [&](Reading &reading) {
    return objc::call(reading, mnk_encoder_commit, self->_handle.get(), nullptr, nullptr);
  });
}

- (void)commitWithCompletionHandler:(void (^)(MNKSummary *, NSError *))completionHandler {
  void (^handler)(MNKSummary *, NSError *) = [completionHandler copy];
  const Result<Completion> submitted =
      guarded("MNKCommandEncoder", [&] { return self->_handle->encoder.commit(objc::finishedBy(handler)); });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

@end
