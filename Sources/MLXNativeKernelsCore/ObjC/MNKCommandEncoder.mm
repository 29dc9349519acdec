#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKCommandEncoder

- (instancetype)init {
  return nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device core:(std::unique_ptr<CommandEncoder>)core {
  if ((self = [super init])) {
    _device = device;
    _core = std::move(core);
  }
  return self;
}

- (BOOL)append:(MNKCacheStep *)step toCache:(MNKAttentionCache *)cache error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.append");
    auto target = objc::read(reading, cache);
    const CacheStep input = objc::read(reading, step);
    if (reading.failed()) return reading.error();
    return target->append(*self->_core, input);
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
    const auto source = objc::read(reading, cache);
    const CacheStep input = objc::read(reading, step);
    if (reading.failed()) return reading.error();
    return source->attend(*self->_core, input);
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
    auto target = objc::read(reading, cache);
    const CacheStep input = objc::read(reading, step);
    if (reading.failed()) return reading.error();
    return target->appendAndAttend(*self->_core, input);
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
    return both->copy(*self->_core, from, to);
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
    return first->copy(*self->_core, from, *second, to);
  });
}

- (MNKAttentionCache *)growCache:(MNKAttentionCache *)cache toCapacity:(NSUInteger)capacity error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKAttentionCache *> {
    Reading reading("AttentionCache.grown");
    const auto source = objc::read(reading, cache);
    const uint32_t slots = reading.narrow(capacity, "capacity");
    if (reading.failed()) return reading.error();
    auto result = source->grown(*self->_core, slots);
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
    auto result = source->quantized(*self->_core, quantizedStorage);
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
    return source->dequantize(*self->_core, objc::optionalCoreOf(keys), objc::optionalCoreOf(values), position, one,
                              form);
  });
}

- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(operation, "the operation")) return reading.error();
    auto op = [operation coreOp];
    if (!op) return op.error();
    return std::visit([&](const auto &one) { return self->_core->encode(one); }, *op);
  });
}

- (BOOL)encodeDispatch:(MNKDispatch *)dispatch error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    auto result = objc::coreOf(dispatch);
    if (!result) return result.error();
    return self->_core->dispatch(*result);
  });
}

- (BOOL)insertBarrierWithError:(NSError **)error {
  return objc::run(error, [&] { return self->_core->barrier(); });
}

- (BOOL)measureOpsWithError:(NSError **)error {
  return objc::run(error, [&] { return self->_core->measureOps(); });
}

- (MNKCompletion *)commitWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKCompletion *> {
    auto completion = self->_core->commit();
    if (!completion) return completion.error();
    return [[MNKCompletion alloc] initWithCore:*completion];
  });
}

- (void)commitWithCompletionHandler:(void (^)(MNKSummary *, NSError *))completionHandler {
  void (^handler)(MNKSummary *, NSError *) = [completionHandler copy];
  const Result<void> submitted = guarded("MNKCommandEncoder", [&]() -> Result<void> {
    auto completion = self->_core->commit(objc::finishedBy(handler));
    return completion ? Result<void>() : Result<void>(completion.error());
  });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

@end
