// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKRotaryStep

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"embedding", @"positions", @"offsets" ];
}

- (instancetype)initWithEmbedding:(MNKRotaryEmbedding *)embedding {
  if ((self = [super init])) {
    _embedding = [embedding copy];
  }
  return self;
}

@end

@implementation MNKMultiRoPE

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"queries", @"keys", @"rotatedQueries", @"rotatedKeys", @"positions", @"offsets", @"rotary" ];
}

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                           keys:(MNKHeadsView *)keys
                      positions:(MNKRotaryPositions *)positions
                         rotary:(MNKRotaryEmbedding *)rotary {
  if ((self = [super init])) {
    _queries = [queries copy];
    _keys = [keys copy];
    _positions = [positions copy];
    _rotary = [rotary copy];
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("MultiRoPE");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_multi_rope_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("MultiRoPE");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_multi_rope, encoder, &op);
}

@end

namespace mnk::objc {

mnk_rotary_step structFrom(Reading &reading, MNKRotaryStep *object, std::string_view name) {
  mnk_rotary_step into{};
  if (!reading.needed(object, name) || !reading.isA([MNKRotaryStep class], object, name)) return into;
  into.embedding = structFrom(reading, object.embedding, "embedding");
  if (object.positions) fill(reading, into.positions, object.positions, "positions");
  if (object.offsets) fill(reading, into.offsets, object.offsets, "offsets");
  return into;
}

mnk_multi_rope structFrom(Reading &reading, MNKMultiRoPE *object, std::string_view name) {
  mnk_multi_rope into{};
  if (!reading.needed(object, name) || !reading.isA([MNKMultiRoPE class], object, name)) return into;
  into.queries = structFrom(reading, object.queries, "queries");
  if (object.keys) {
    into.keys = structFrom(reading, object.keys, "keys");
  }
  if (object.rotatedQueries) {
    into.rotated_queries = structFrom(reading, object.rotatedQueries, "rotatedQueries");
  }
  if (object.rotatedKeys) {
    into.rotated_keys = structFrom(reading, object.rotatedKeys, "rotatedKeys");
  }
  fill(reading, into.positions, object.positions, "positions");
  if (object.offsets) fill(reading, into.offsets, object.offsets, "offsets");
  into.rotary = structFrom(reading, object.rotary, "rotary");
  return into;
}

}  // namespace mnk::objc
