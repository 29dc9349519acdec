// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKSlidingWindow

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"window", @"maxRows", @"maxDraft" ];
}

- (instancetype)initWithWindow:(NSUInteger)window maxRows:(NSUInteger)maxRows maxDraft:(NSUInteger)maxDraft {
  if ((self = [super init])) {
    _window = window;
    _maxRows = maxRows;
    _maxDraft = maxDraft;
  }
  return self;
}

- (instancetype)initWithWindow:(NSUInteger)window {
  return [self initWithWindow:window maxRows:64 maxDraft:0];
}

@end

namespace mnk::objc {

KVQuantizedPlanes read(Reading &reading, MNKKVQuantizedPlanes value, std::string_view name) {
  KVQuantizedPlanes core = KVQuantizedPlanes::both;
  const auto from = reading.choice<mnk_kv_quantized_planes>(
      value, {MNK_KV_QUANTIZED_PLANES_BOTH, MNK_KV_QUANTIZED_PLANES_KEYS, MNK_KV_QUANTIZED_PLANES_VALUES}, name,
      "MNKKVQuantizedPlanes");
  if (!reading.failed()) reading.check(c::read(core, from));
  return core;
}

Tuning read(Reading &reading, MNKTuning value, std::string_view name) {
  Tuning core = Tuning::table;
  const auto from = reading.choice<mnk_tuning>(value, {MNK_TUNING_TABLE, MNK_TUNING_MEASURE}, name, "MNKTuning");
  if (!reading.failed()) reading.check(c::read(core, from));
  return core;
}

mnk_sliding_window structFrom(Reading &reading, MNKSlidingWindow *object, std::string_view name) {
  mnk_sliding_window into{};
  if (!reading.needed(object, name)) return into;
  into.window = reading.narrow(object.window, "window");
  into.max_rows = reading.narrow(object.maxRows, "maxRows");
  into.max_draft = reading.narrow(object.maxDraft, "maxDraft");
  return into;
}

SlidingWindow read(Reading &reading, MNKSlidingWindow *object, std::string_view name) {
  SlidingWindow core;
  const auto from = structFrom(reading, object, name);
  if (!reading.failed()) reading.check(c::read(core, from, {nullptr, name}));
  return core;
}

MNKSlidingWindow *objectFrom(const SlidingWindow &core) {
  MNKSlidingWindow *object = [[MNKSlidingWindow alloc] initWithWindow:core.window
                                                              maxRows:core.maxRows
                                                             maxDraft:core.maxDraft];
  return object;
}

}  // namespace mnk::objc
