// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKKVCacheWriteRows

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"sequences", @"positions" ];
}

- (instancetype)initWithSequences:(MNKIntegers *)sequences positions:(MNKIntegers *)positions {
  if ((self = [super init])) {
    _sequences = [sequences copy];
    _positions = [positions copy];
  }
  return self;
}

@end

@implementation MNKKVCacheWrite

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"keys", @"values", @"sourceLayout", @"sourceOffset", @"tokens", @"sourceIsRing", @"destination", @"sequence",
    @"position", @"rows"
  ];
}

- (instancetype)initWithKeys:(MNKHeadsView *)keys
                      values:(MNKHeadsView *)values
                 destination:(MNKKVCacheView *)destination
                    position:(NSUInteger)position {
  if ((self = [super init])) {
    _keys = [keys copy];
    _values = [values copy];
    _destination = [destination copy];
    _position = position;
    _sourceLayout = MNKKVLayoutTokenMajor;
    _sequence = MNKOnlySequence;
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("KVCacheWrite");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_kv_cache_write_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("KVCacheWrite");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_kv_cache_write, encoder, &op);
}

@end

namespace mnk::objc {

mnk_kv_cache_write_rows structFrom(Reading &reading, MNKKVCacheWriteRows *object, std::string_view name) {
  mnk_kv_cache_write_rows into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCacheWriteRows class], object, name)) return into;
  fill(reading, into.sequences, object.sequences, "sequences");
  fill(reading, into.positions, object.positions, "positions");
  return into;
}

mnk_kv_cache_write structFrom(Reading &reading, MNKKVCacheWrite *object, std::string_view name) {
  mnk_kv_cache_write into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCacheWrite class], object, name)) return into;
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
  return into;
}

}  // namespace mnk::objc
