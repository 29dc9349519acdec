// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKKVCacheQuantize

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"keys", @"values", @"sourceLayout", @"sourceOffset", @"tokens", @"sourceIsRing", @"destination", @"sequence",
    @"position", @"rows", @"options", @"counts", @"probe"
  ];
}

- (instancetype)initWithKeys:(MNKHeadsView *)keys
                      values:(MNKHeadsView *)values
                 destination:(MNKQuantizedKVCacheView *)destination
                    position:(NSUInteger)position {
  if ((self = [super init])) {
    _keys = [keys copy];
    _values = [values copy];
    _destination = [destination copy];
    _position = position;
    _sourceLayout = MNKKVLayoutTokenMajor;
    _sequence = MNKOnlySequence;
    _options = [[MNKKVQuantizeOptions alloc] init];
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("KVCacheQuantize");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_kv_cache_quantize_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("KVCacheQuantize");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_kv_cache_quantize, encoder, &op);
}

@end

@implementation MNKKVCacheDequantize

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"source", @"sequence", @"position", @"keys", @"values", @"layout", @"domain" ];
}

- (instancetype)initWithSource:(MNKQuantizedKVCacheView *)source
                          keys:(MNKTensor *)keys
                        values:(MNKTensor *)values
                      position:(NSUInteger)position {
  if ((self = [super init])) {
    _source = [source copy];
    _keys = keys;
    _values = values;
    _position = position;
    _sequence = MNKOnlySequence;
    _layout = MNKKVLayoutTokenMajor;
    _domain = MNKKVDomainOriginal;
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("KVCacheDequantize");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_kv_cache_dequantize_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("KVCacheDequantize");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_kv_cache_dequantize, encoder, &op);
}

@end

@implementation MNKHadamard

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"source", @"destination", @"signs", @"inverse" ];
}

- (instancetype)initWithSource:(MNKTensor *)source destination:(MNKTensor *)destination {
  if ((self = [super init])) {
    _source = source;
    _destination = destination;
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("Hadamard");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_hadamard_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("Hadamard");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_hadamard, encoder, &op);
}

@end

namespace mnk::objc {

mnk_kv_cache_quantize structFrom(Reading &reading, MNKKVCacheQuantize *object, std::string_view name) {
  mnk_kv_cache_quantize into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCacheQuantize class], object, name)) return into;
  into.keys = structFrom(reading, object.keys, "keys");
  if (object.values) {
    into.values = structFrom(reading, object.values, "values");
  }
  into.source_layout = enumFrom(reading, object.sourceLayout, "sourceLayout");
  into.source_offset = object.sourceOffset;
  if (object.tokens) {
    into.has_tokens = true;
    into.tokens = reading.integer<uint64_t>(object.tokens, "tokens");
  }
  into.source_is_ring = object.sourceIsRing != NO;
  into.into = structFrom(reading, object.destination, "destination");
  into.sequence = sequenceNumber(object.sequence);
  into.position = object.position;
  if (object.rows) {
    into.has_rows = true;
    into.rows = structFrom(reading, object.rows, "rows");
  }
  into.options = structFrom(reading, object.options, "options");
  into.counts = handleOf(reading, object.counts, "counts");
  into.probe = handleOf(reading, object.probe, "probe");
  return into;
}

mnk_kv_cache_dequantize structFrom(Reading &reading, MNKKVCacheDequantize *object, std::string_view name) {
  mnk_kv_cache_dequantize into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCacheDequantize class], object, name)) return into;
  into.from = structFrom(reading, object.source, "source");
  into.sequence = sequenceNumber(object.sequence);
  into.position = object.position;
  into.keys = handleOf(reading, object.keys, "keys");
  into.values = handleOf(reading, object.values, "values");
  into.layout = enumFrom(reading, object.layout, "layout");
  into.domain = enumFrom(reading, object.domain, "domain");
  return into;
}

mnk_hadamard structFrom(Reading &reading, MNKHadamard *object, std::string_view name) {
  mnk_hadamard into{};
  if (!reading.needed(object, name) || !reading.isA([MNKHadamard class], object, name)) return into;
  reading.needed(object.source, "source");
  into.from = handleOf(reading, object.source, "source");
  into.into = handleOf(reading, object.destination, "destination");
  if (object.signs) {
    into.has_signs = true;
    into.signs =
        enumFrom(reading, static_cast<MNKKVCodecName>(reading.integer<uint32_t>(object.signs, "signs")), "signs");
  }
  into.is_inverse = object.isInverse != NO;
  return into;
}

}  // namespace mnk::objc
