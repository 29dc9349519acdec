#include <span>

#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKCommandEncoder {
  std::unique_ptr<CommandEncoder> _core;
}

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

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error {
  return [self appendKeys:keys values:values toCache:cache sequence:0 error:error];
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
          sequence:(NSUInteger)sequence
             error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache");
    const uint32_t one = reading.narrow(sequence, "sequence");
    auto target = objc::coreOf(cache);
    if (!target) return target.error();
    if (reading.failed()) return reading.error();
    return target->append(*self->_core, objc::coreOf(keys), objc::coreOf(values), one);
  });
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
         sequences:(NSArray<NSNumber *> *)sequences
             error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache");
    const auto list = reading.integers<uint32_t>(sequences, "a sequence");
    auto target = objc::coreOf(cache);
    if (!target) return target.error();
    if (reading.failed()) return reading.error();
    return target->append(*self->_core, objc::coreOf(keys), objc::coreOf(values), list);
  });
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  return [self attendQueries:queries
                   overCache:cache
                    sequence:0
                     results:[MNKAttentionResults resultsIntoTensor:output]
                     options:options
                       error:error];
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
             sequence:(NSUInteger)sequence
              results:(MNKAttentionResults *)results
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache");
    const uint32_t one = reading.narrow(sequence, "sequence");
    const AttentionResults into = objc::read(reading, results);
    const AttentionOptions how = objc::read(reading, options);
    auto source = objc::coreOf(cache);
    if (!source) return source.error();
    if (reading.failed()) return reading.error();
    return source->attend(*self->_core, objc::coreOf(queries), into, how, one);
  });
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
            sequences:(NSArray<NSNumber *> *)sequences
              results:(MNKAttentionResults *)results
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache");
    const auto list = reading.integers<uint32_t>(sequences, "a sequence");
    const AttentionResults into = objc::read(reading, results);
    const AttentionOptions how = objc::read(reading, options);
    auto source = objc::coreOf(cache);
    if (!source) return source.error();
    if (reading.failed()) return reading.error();
    return source->attend(*self->_core, objc::coreOf(queries), into, how, std::span<const uint32_t>(list));
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

- (BOOL)dequantizeCache:(MNKAttentionCache *)cache
               intoKeys:(MNKTensor *)keys
                 values:(MNKTensor *)values
               position:(NSUInteger)position
               sequence:(NSUInteger)sequence
                 domain:(MNKKVDomain)domain
                  error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache");
    const uint32_t one = reading.narrow(sequence, "sequence");
    const KVDomain how = objc::read(reading, domain);
    auto source = objc::coreOf(cache);
    if (!source) return source.error();
    if (reading.failed()) return reading.error();
    return source->dequantize(*self->_core, objc::optionalCoreOf(keys), objc::optionalCoreOf(values), position, one,
                              how);
  });
}

- (BOOL)encodeOperation:(MNKOperation *)operation error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(operation, "the operation")) return reading.error();
    return self->_core->encode([operation corePlanOn:self->_core->device().get()]);
  });
}

- (BOOL)encodeDispatch:(MNKDispatch *)dispatch error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    auto made = objc::coreOf(dispatch);
    if (!made) return made.error();
    return self->_core->dispatch(*made);
  });
}

- (BOOL)insertBarrierWithError:(NSError **)error {
  return objc::run(error, [&] { return self->_core->barrier(); });
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
    // Threads of a device have no pool of their own.
    auto completion = self->_core->commit([handler](const Result<Summary> &outcome) {
      @autoreleasepool {
        if (!handler) return;
        if (outcome) {
          handler([[MNKSummary alloc] initWithCore:*outcome], nil);
        } else {
          handler(nil, objc::errorFrom(outcome.error()));
        }
      }
    });
    return completion ? Result<void>() : Result<void>(completion.error());
  });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

@end
