// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKAttentionOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"scale", @"causal", @"window", @"windowSeesPinned", @"softcap", @"mask", @"slopes", @"sinks", @"splits", @"kernel",
    @"merge"
  ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _causal = YES;
    _kernel = MNKAttentionOptionsKernelAutomatic;
    _merge = MNKAttentionOptionsMergeAutomatic;
  }
  return self;
}

@end

@implementation MNKAttentionPartials

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"sums", @"stats" ];
}

- (instancetype)initWithSums:(MNKTensor *)sums stats:(MNKTensor *)stats {
  if ((self = [super init])) {
    _sums = sums;
    _stats = stats;
  }
  return self;
}

@end

@implementation MNKAttentionResults

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"output", @"partials", @"logSumExp" ];
}

@end

@implementation MNKAttendedSequence

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"sequence", @"length", @"highest", @"rows", @"position" ];
}

- (instancetype)initWithSequence:(NSUInteger)sequence
                          length:(NSUInteger)length
                         highest:(NSUInteger)highest
                            rows:(NSUInteger)rows
                        position:(NSNumber *)position {
  if ((self = [super init])) {
    _sequence = sequence;
    _length = length;
    _highest = highest;
    _rows = rows;
    _position = [position copy];
  }
  return self;
}

- (instancetype)initWithSequence:(NSUInteger)sequence length:(NSUInteger)length {
  return [self initWithSequence:sequence length:length highest:0 rows:0 position:nil];
}

- (id)copyWithZone:(NSZone *)zone {
  return self;  // immutable
}

@end

namespace mnk::objc {

mnk_attention_options_kernel enumFrom(Reading &reading, MNKAttentionOptionsKernel value, std::string_view name) {
  return reading.choice<mnk_attention_options_kernel>(
      value,
      {MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC, MNK_ATTENTION_OPTIONS_KERNEL_VECTOR,
       MNK_ATTENTION_OPTIONS_KERNEL_MATRIX},
      name, "MNKAttentionOptionsKernel");
}

mnk_attention_options_merge enumFrom(Reading &reading, MNKAttentionOptionsMerge value, std::string_view name) {
  return reading.choice<mnk_attention_options_merge>(
      value,
      {MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC, MNK_ATTENTION_OPTIONS_MERGE_SEPARATE,
       MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL},
      name, "MNKAttentionOptionsMerge");
}

mnk_attention_options structFrom(Reading &reading, MNKAttentionOptions *object, std::string_view name) {
  mnk_attention_options into{};
  if (!object || !reading.isA([MNKAttentionOptions class], object, name)) return into;
  into.scale = object.scale;
  into.is_bidirectional = object.isCausal == NO;
  into.window = reading.narrow(object.window, "window");
  into.window_sees_pinned = object.windowSeesPinned != NO;
  into.softcap = object.softcap;
  into.mask = handleOf(reading, object.mask, "mask");
  into.slopes = handleOf(reading, object.slopes, "slopes");
  into.sinks = handleOf(reading, object.sinks, "sinks");
  into.splits = reading.narrow(object.splits, "splits");
  into.kernel = enumFrom(reading, object.kernel, "kernel");
  into.merge = enumFrom(reading, object.merge, "merge");
  return into;
}

MNKAttentionOptions *objectFrom(const AttentionOptions &core) {
  MNKAttentionOptions *object = [[MNKAttentionOptions alloc] init];
  object.scale = core.scale;
  object.causal = core.isCausal;
  object.window = core.window;
  object.windowSeesPinned = core.windowSeesPinned;
  object.softcap = core.softcap;
  object.mask = tensorFrom(core.mask);
  object.slopes = tensorFrom(core.slopes);
  object.sinks = tensorFrom(core.sinks);
  object.splits = core.splits;
  object.kernel = static_cast<MNKAttentionOptionsKernel>(c::write(core.kernel));
  object.merge = static_cast<MNKAttentionOptionsMerge>(c::write(core.merge));
  return object;
}

mnk_attention_partials structFrom(Reading &reading, MNKAttentionPartials *object, std::string_view name) {
  mnk_attention_partials into{};
  if (!reading.needed(object, name) || !reading.isA([MNKAttentionPartials class], object, name)) return into;
  reading.needed(object.sums, "sums");
  into.sums = handleOf(reading, object.sums, "sums");
  reading.needed(object.stats, "stats");
  into.stats = handleOf(reading, object.stats, "stats");
  return into;
}

MNKAttentionPartials *objectFrom(const AttentionPartials &core) {
  MNKAttentionPartials *object =
      [[MNKAttentionPartials alloc] initWithSums:(MNKTensor *_Nonnull)tensorFrom(core.sums)
                                           stats:(MNKTensor *_Nonnull)tensorFrom(core.stats)];
  return object;
}

mnk_attention_results structFrom(Reading &reading, MNKAttentionResults *object, std::string_view name) {
  mnk_attention_results into{};
  if (!object || !reading.isA([MNKAttentionResults class], object, name)) return into;
  into.output = handleOf(reading, object.output, "output");
  if (object.partials) {
    into.partials = structFrom(reading, object.partials, "partials");
  }
  into.log_sum_exp = handleOf(reading, object.logSumExp, "logSumExp");
  return into;
}

MNKAttentionResults *objectFrom(const AttentionResults &core) {
  MNKAttentionResults *object = [[MNKAttentionResults alloc] init];
  object.output = tensorFrom(core.output);
  object.partials = core.partials ? objectFrom(*core.partials) : nil;
  object.logSumExp = tensorFrom(core.logSumExp);
  return object;
}

mnk_attended_sequence structFrom(Reading &reading, MNKAttendedSequence *object, std::string_view name) {
  mnk_attended_sequence into{};
  if (!reading.needed(object, name) || !reading.isA([MNKAttendedSequence class], object, name)) return into;
  into.sequence = sequenceNumber(object.sequence);
  into.length = object.length;
  into.highest = object.highest;
  into.rows = object.rows;
  if (object.position) {
    into.has_position = true;
    into.position = reading.integer<int64_t>(object.position, "position");
  }
  return into;
}

MNKAttendedSequence *objectFrom(const AttendedSequence &core) {
  MNKAttendedSequence *object = [[MNKAttendedSequence alloc] initWithSequence:sequenceFrom(core.sequence)
                                                                       length:core.length
                                                                      highest:core.highest
                                                                         rows:core.rows
                                                                     position:core.position ? @(*core.position) : nil];
  return object;
}

}  // namespace mnk::objc
