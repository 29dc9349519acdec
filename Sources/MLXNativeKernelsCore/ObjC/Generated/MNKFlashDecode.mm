// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKKVCacheView (MNKFlashDecodeCache)
@end

@implementation MNKQuantizedKVCacheView (MNKFlashDecodeCache)
@end

@implementation MNKFlashDecode

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"queries", @"cache", @"sequences", @"results", @"options", @"scratch" ];
}

- (instancetype)initWithQueries:(MNKHeadsView *)queries
                          cache:(id<MNKFlashDecodeCache>)cache
                      sequences:(NSArray<MNKAttendedSequence *> *)sequences
                        results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _queries = [queries copy];
    _cache = [(id)cache copy];
    _sequences = [sequences copy];
    _results = [results copy];
    _options = [[MNKAttentionOptions alloc] init];
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("FlashDecode");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_flash_decode_make_plan, &op, device);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("FlashDecode");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_flash_decode, encoder, &op);
}

@end

@implementation MNKMergePartials

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"parts", @"sinks", @"results" ];
}

- (instancetype)initWithParts:(MNKAttentionPartials *)parts results:(MNKAttentionResults *)results {
  if ((self = [super init])) {
    _parts = [parts copy];
    _results = [results copy];
  }
  return self;
}

- (Result<mnk_plan *>)planForHandle:(const mnk_device *)device {
  objc::Reading reading("MergePartials");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_merge_partials_make_plan, &op);
}

- (Result<void>)encodeWithHandle:(mnk_encoder *)encoder {
  objc::Reading reading("MergePartials");
  const auto op = objc::structFrom(reading, self, "the op");
  return objc::call(reading, mnk_encoder_merge_partials, encoder, &op);
}

@end

namespace mnk::objc {

mnk_flash_decode_cache structFrom(Reading &reading, id<MNKFlashDecodeCache> object, std::string_view name) {
  mnk_flash_decode_cache into{};
  if (!reading.needed(object, name)) return into;
  if ([object isKindOfClass:[MNKKVCacheView class]]) {
    into.dense = structFrom(reading, static_cast<MNKKVCacheView *>(object), name);
    return into;
  }
  if ([object isKindOfClass:[MNKQuantizedKVCacheView class]]) {
    into.quantized = structFrom(reading, static_cast<MNKQuantizedKVCacheView *>(object), name);
    return into;
  }
  reading.failForClass(object, name, "MNKKVCacheView or MNKQuantizedKVCacheView");
  return into;
}

mnk_flash_decode structFrom(Reading &reading, MNKFlashDecode *object, std::string_view name) {
  mnk_flash_decode into{};
  if (!reading.needed(object, name) || !reading.isA([MNKFlashDecode class], object, name)) return into;
  into.queries = structFrom(reading, object.queries, "queries");
  into.cache = structFrom(reading, object.cache, "cache");
  std::vector<mnk_attended_sequence> sequences;
  for (MNKAttendedSequence *one in object.sequences) {
    if (!reading.isA([MNKAttendedSequence class], one, "sequences")) break;
    sequences.push_back(structFrom(reading, one, "sequences"));
  }
  into.sequence_count = sequences.size();
  into.sequences = sequences.empty() ? nullptr : reading.keep(std::move(sequences)).data();
  into.results = structFrom(reading, object.results, "results");
  into.options = structFrom(reading, object.options, "options");
  into.scratch = handleOf(reading, object.scratch, "scratch");
  return into;
}

mnk_merge_partials structFrom(Reading &reading, MNKMergePartials *object, std::string_view name) {
  mnk_merge_partials into{};
  if (!reading.needed(object, name) || !reading.isA([MNKMergePartials class], object, name)) return into;
  into.parts = structFrom(reading, object.parts, "parts");
  into.sinks = handleOf(reading, object.sinks, "sinks");
  into.results = structFrom(reading, object.results, "results");
  return into;
}

}  // namespace mnk::objc
