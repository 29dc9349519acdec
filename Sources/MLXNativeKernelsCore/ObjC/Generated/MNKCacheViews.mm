// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKHeadsViewStrides

+ (NSArray<NSString *> *)valueKeys {
  return
      @[ @"sequences", @"tokens", @"heads", @"headDim", @"offset", @"sequenceStride", @"tokenStride", @"headStride" ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _sequences = 1;
    _tokens = 1;
    _heads = 1;
  }
  return self;
}

@end

@implementation MNKHeadsView

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"tensor", @"layout", @"strides" ];
}

- (instancetype)initWithTensor:(MNKTensor *)tensor {
  if ((self = [super init])) {
    _tensor = tensor;
    _layout = MNKKVLayoutTokenMajor;
  }
  return self;
}

@end

@implementation MNKKVCacheView

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"keys", @"values", @"layout", @"wrap", @"pinned", @"latentDim" ];
}

- (instancetype)initWithKeys:(MNKTensor *)keys values:(MNKTensor *)values {
  if ((self = [super init])) {
    _keys = keys;
    _values = values;
    _layout = MNKKVLayoutHeadMajor;
    _wrap = MNKKVWrapLinear;
  }
  return self;
}

@end

namespace mnk::objc {

mnk_kv_layout enumFrom(Reading &reading, MNKKVLayout value, std::string_view name) {
  return reading.choice<mnk_kv_layout>(value, {MNK_KV_LAYOUT_HEAD_MAJOR, MNK_KV_LAYOUT_TOKEN_MAJOR}, name,
                                       "MNKKVLayout");
}

mnk_kv_wrap enumFrom(Reading &reading, MNKKVWrap value, std::string_view name) {
  return reading.choice<mnk_kv_wrap>(value, {MNK_KV_WRAP_LINEAR, MNK_KV_WRAP_RING}, name, "MNKKVWrap");
}

mnk_heads_view_strides structFrom(Reading &reading, MNKHeadsViewStrides *object, std::string_view name) {
  mnk_heads_view_strides into{};
  if (!reading.needed(object, name) || !reading.isA([MNKHeadsViewStrides class], object, name)) return into;
  into.sequences = reading.nonzero(object.sequences, "sequences");
  into.tokens = object.tokens;
  into.heads = object.heads;
  into.head_dim = object.headDim;
  into.offset = object.offset;
  into.sequence_stride = object.sequenceStride;
  into.token_stride = object.tokenStride;
  into.head_stride = object.headStride;
  return into;
}

MNKHeadsViewStrides *objectFrom(const HeadsView::Strides &core) {
  MNKHeadsViewStrides *object = [[MNKHeadsViewStrides alloc] init];
  object.sequences = core.sequences;
  object.tokens = core.tokens;
  object.heads = core.heads;
  object.headDim = core.headDim;
  object.offset = core.offset;
  object.sequenceStride = core.sequenceStride;
  object.tokenStride = core.tokenStride;
  object.headStride = core.headStride;
  return object;
}

mnk_heads_view structFrom(Reading &reading, MNKHeadsView *object, std::string_view name) {
  mnk_heads_view into{};
  if (!reading.needed(object, name) || !reading.isA([MNKHeadsView class], object, name)) return into;
  reading.needed(object.tensor, "tensor");
  into.tensor = handleOf(reading, object.tensor, "tensor");
  into.layout = enumFrom(reading, object.layout, "layout");
  if (object.strides) {
    into.has_strides = true;
    into.strides = structFrom(reading, object.strides, "strides");
  }
  return into;
}

MNKHeadsView *objectFrom(const HeadsView &core) {
  MNKHeadsView *object = [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)tensorFrom(core.tensor)];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.strides = core.strides ? objectFrom(*core.strides) : nil;
  return object;
}

mnk_kv_cache_view structFrom(Reading &reading, MNKKVCacheView *object, std::string_view name) {
  mnk_kv_cache_view into{};
  if (!reading.needed(object, name) || !reading.isA([MNKKVCacheView class], object, name)) return into;
  reading.needed(object.keys, "keys");
  into.keys = handleOf(reading, object.keys, "keys");
  into.values = handleOf(reading, object.values, "values");
  into.layout = enumFrom(reading, object.layout, "layout");
  into.wrap = enumFrom(reading, object.wrap, "wrap");
  into.pinned = reading.narrow(object.pinned, "pinned");
  into.latent_dim = reading.narrow(object.latentDim, "latentDim");
  return into;
}

MNKKVCacheView *objectFrom(const KVCacheView &core) {
  MNKKVCacheView *object = [[MNKKVCacheView alloc] initWithKeys:(MNKTensor *_Nonnull)tensorFrom(core.keys)
                                                         values:tensorFrom(core.values)];
  object.layout = static_cast<MNKKVLayout>(c::write(core.layout));
  object.wrap = static_cast<MNKKVWrap>(c::write(core.wrap));
  object.pinned = core.pinned;
  object.latentDim = core.latentDim;
  return object;
}

}  // namespace mnk::objc
