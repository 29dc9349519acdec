#import "ObjC/Core.hpp"
#include "Support/Format.hpp"

using namespace mnk;
using objc::Reading;

namespace {

constexpr std::string_view kAppend = "AttentionCache.append";
constexpr std::string_view kAttend = "AttentionCache.attend";

}  // namespace

namespace mnk::objc {

SequenceList readList(Reading &reading, NSArray<NSNumber *> *sequences, NSArray<NSNumber *> *rowCounts) {
  const bool isOnly = sequences.count == 1 && [sequences[0] isEqual:@(MNKOnlySequence)];
  SequenceList list{.sequences = {kOnlySequence}, .rowCounts = {}};
  if (!isOnly) {
    list.sequences = reading.integers<uint32_t>(sequences, "a sequence");
    for (uint32_t &sequence : list.sequences) sequence = sequenceNumber(sequence);
  }
  if (!rowCounts) return list;
  list.rowCounts = reading.integers<uint32_t>(rowCounts, "a row count");
  // To the core, an empty list means no list.
  if (list.rowCounts.empty() && !list.sequences.empty()) {
    reading.fail("the row counts do not match the listed sequences", "0 row counts",
                 fmt::format("{}, one for each sequence", list.sequences.size()),
                 "Pass a row count for each listed sequence, or nil.");
  }
  return list;
}

std::vector<CachePrefix> readPrefixes(Reading &reading, NSArray<MNKCachePrefix *> *prefixes) {
  std::vector<CachePrefix> all;
  for (MNKCachePrefix *prefix in prefixes) {
    if (!reading.isA([MNKCachePrefix class], prefix, "a prefix")) break;
    const auto cache = read(reading, prefix.cache);
    if (!cache) break;
    all.push_back({*cache, sequenceNumber(prefix.sequence)});
  }
  return all;
}

}  // namespace mnk::objc

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

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
             error:(NSError **)error {
  return [self appendKeys:keys values:values toCache:cache sequence:MNKOnlySequence error:error];
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
          sequence:(NSUInteger)sequence
             error:(NSError **)error {
  return [self appendKeysView:[[MNKHeadsView alloc] initWithTensor:keys]
                   valuesView:[[MNKHeadsView alloc] initWithTensor:values]
                      toCache:cache
                     sequence:sequence
                        error:error];
}

- (BOOL)appendKeys:(MNKTensor *)keys
            values:(MNKTensor *)values
           toCache:(MNKAttentionCache *)cache
         sequences:(NSArray<NSNumber *> *)sequences
             error:(NSError **)error {
  return [self appendKeysView:[[MNKHeadsView alloc] initWithTensor:keys]
                   valuesView:[[MNKHeadsView alloc] initWithTensor:values]
                      toCache:cache
                    sequences:sequences
                    rowCounts:nil
                        error:error];
}

- (BOOL)appendKeysView:(MNKHeadsView *)keys
            valuesView:(MNKHeadsView *)values
               toCache:(MNKAttentionCache *)cache
              sequence:(NSUInteger)sequence
                 error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading(kAppend);
    auto target = objc::read(reading, cache);
    const HeadsView newKeys = objc::read(reading, keys), newValues = objc::read(reading, values);
    const uint32_t one = objc::sequenceNumber(sequence);
    if (reading.failed()) return reading.error();
    return target->append(*self->_core, {.keys = newKeys, .values = newValues, .sequences = one});
  });
}

- (BOOL)appendKeysView:(MNKHeadsView *)keys
            valuesView:(MNKHeadsView *)values
               toCache:(MNKAttentionCache *)cache
             sequences:(NSArray<NSNumber *> *)sequences
             rowCounts:(NSArray<NSNumber *> *)rowCounts
                 error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading(kAppend);
    auto target = objc::read(reading, cache);
    const HeadsView newKeys = objc::read(reading, keys), newValues = objc::read(reading, values);
    const objc::SequenceList list = objc::readList(reading, sequences, rowCounts);
    if (reading.failed()) return reading.error();
    return target->append(*self->_core, {.keys = newKeys, .values = newValues, .sequences = list.sequences, .rowCounts = list.rowCounts});
  });
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
           intoTensor:(MNKTensor *)output
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  return [self attendQueries:queries
                   overCache:cache
                    sequence:MNKOnlySequence
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
  return [self attendQueriesView:[[MNKHeadsView alloc] initWithTensor:queries]
                       overCache:cache
                        sequence:sequence
                         results:results
                         options:options
                           error:error];
}

- (BOOL)attendQueries:(MNKTensor *)queries
            overCache:(MNKAttentionCache *)cache
            sequences:(NSArray<NSNumber *> *)sequences
              results:(MNKAttentionResults *)results
              options:(MNKAttentionOptions *)options
                error:(NSError **)error {
  return [self attendQueriesView:[[MNKHeadsView alloc] initWithTensor:queries]
                       overCache:cache
                       sequences:sequences
                       rowCounts:nil
                         results:results
                         options:options
                           error:error];
}

- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                 sequence:(NSUInteger)sequence
                  results:(MNKAttentionResults *)results
                  options:(MNKAttentionOptions *)options
                    error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading(kAttend);
    const auto source = objc::read(reading, cache);
    const HeadsView rows = objc::read(reading, queries);
    const uint32_t one = objc::sequenceNumber(sequence);
    const AttentionResults into = objc::read(reading, results);
    const AttentionOptions chosen = objc::read(reading, options);
    if (reading.failed()) return reading.error();
    return source->attend(*self->_core, {.queries = rows, .results = into, .options = chosen, .sequences = one});
  });
}

- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                sequences:(NSArray<NSNumber *> *)sequences
                rowCounts:(NSArray<NSNumber *> *)rowCounts
                  results:(MNKAttentionResults *)results
                  options:(MNKAttentionOptions *)options
                    error:(NSError **)error {
  return [self attendQueriesView:queries
                       overCache:cache
                       sequences:sequences
                       rowCounts:rowCounts
                           after:@[]
                         results:results
                         options:options
                           error:error];
}

- (BOOL)attendQueriesView:(MNKHeadsView *)queries
                overCache:(MNKAttentionCache *)cache
                sequences:(NSArray<NSNumber *> *)sequences
                rowCounts:(NSArray<NSNumber *> *)rowCounts
                    after:(NSArray<MNKCachePrefix *> *)prefixes
                  results:(MNKAttentionResults *)results
                  options:(MNKAttentionOptions *)options
                    error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading(kAttend);
    const auto source = objc::read(reading, cache);
    const HeadsView rows = objc::read(reading, queries);
    const objc::SequenceList list = objc::readList(reading, sequences, rowCounts);
    const std::vector<CachePrefix> after = objc::readPrefixes(reading, prefixes);
    const AttentionResults into = objc::read(reading, results);
    const AttentionOptions chosen = objc::read(reading, options);
    if (reading.failed()) return reading.error();
    return source->attend(*self->_core, {.queries = rows, .results = into, .options = chosen, .sequences = list.sequences, .rowCounts = list.rowCounts, .after = after});
  });
}

static BOOL appendAndAttend(MNKCommandEncoder *encoder, MNKHeadsView *queries, MNKHeadsView *keys, MNKHeadsView *values,
                            MNKRotaryStep *rotary, MNKAttentionCache *cache, NSArray<NSNumber *> *sequences,
                            NSArray<NSNumber *> *rowCounts, NSArray<MNKCachePrefix *> *prefixes,
                            MNKAttentionResults *results, MNKAttentionOptions *options, NSError **error) {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("AttentionCache.appendAndAttend");
    auto target = objc::read(reading, cache);
    CacheStep step{.queries = objc::read(reading, queries),
                         .keys = objc::read(reading, keys),
                         .values = objc::read(reading, values),
                         .rotary = objc::read(reading, rotary),
                         .results = objc::read(reading, results),
                         .options = objc::read(reading, options)};
    objc::SequenceList list = objc::readList(reading, sequences, rowCounts);
    std::vector<CachePrefix> after = objc::readPrefixes(reading, prefixes);
    if (list.sequences.empty()) {
      reading.fail("the step has no sequence", "an empty list of sequences", "at least one sequence",
                   "List the sequences that the tokens continue.");
    }
    if (reading.failed()) return reading.error();
    if (list.sequences.size() == 1)
      step.sequence = list.sequences.front();
    else
      step.sequences = std::move(list.sequences);
    step.rowCounts = std::move(list.rowCounts);
    step.after = std::move(after);
    return target->appendAndAttend(*encoder->_core, step);
  });
}

- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                     overCache:(MNKAttentionCache *)cache
                      sequence:(NSUInteger)sequence
                       results:(MNKAttentionResults *)results
                       options:(MNKAttentionOptions *)options
                         error:(NSError **)error {
  return appendAndAttend(self, queries, keys, values, nil, cache, @[ @(sequence) ], nil, @[], results, options, error);
}

- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                      sequence:(NSUInteger)sequence
                       results:(MNKAttentionResults *)results
                       options:(MNKAttentionOptions *)options
                         error:(NSError **)error {
  return appendAndAttend(self, queries, keys, values, rotary, cache, @[ @(sequence) ], nil, @[], results, options,
                         error);
}

- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                     sequences:(NSArray<NSNumber *> *)sequences
                     rowCounts:(NSArray<NSNumber *> *)rowCounts
                       results:(MNKAttentionResults *)results
                       options:(MNKAttentionOptions *)options
                         error:(NSError **)error {
  return appendAndAttend(self, queries, keys, values, rotary, cache, sequences, rowCounts, @[], results, options,
                         error);
}

- (BOOL)appendAndAttendQueries:(MNKHeadsView *)queries
                          keys:(MNKHeadsView *)keys
                        values:(MNKHeadsView *)values
                        rotary:(MNKRotaryStep *)rotary
                     overCache:(MNKAttentionCache *)cache
                     sequences:(NSArray<NSNumber *> *)sequences
                     rowCounts:(NSArray<NSNumber *> *)rowCounts
                         after:(NSArray<MNKCachePrefix *> *)prefixes
                       results:(MNKAttentionResults *)results
                       options:(MNKAttentionOptions *)options
                         error:(NSError **)error {
  return appendAndAttend(self, queries, keys, values, rotary, cache, sequences, rowCounts, prefixes, results, options,
                         error);
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
                           asStorage:(MNKQuantizedStorage *)storage
                               error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKAttentionCache *> {
    Reading reading("AttentionCache.quantized");
    const auto source = objc::read(reading, cache);
    const KVQuantizedStorage quantizedStorage = objc::read(reading, storage);
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
    const KVDomain form = objc::read(reading, domain);
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
