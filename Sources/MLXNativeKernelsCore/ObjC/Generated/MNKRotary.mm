// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKRotaryEmbeddingYaRN

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"originalContext", @"extensionFactor", @"attentionFactor", @"betaFast", @"betaSlow", @"roundsCorners" ];
}

- (instancetype)initWithOriginalContext:(NSUInteger)originalContext {
  if ((self = [super init])) {
    _originalContext = originalContext;
    _extensionFactor = 1;
    _attentionFactor = 1;
    _betaFast = 32;
    _betaSlow = 1;
    _roundsCorners = YES;
  }
  return self;
}

@end

@implementation MNKRotaryEmbedding

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"layout", @"sections", @"base", @"ropeDim", @"pairing", @"otherAxis", @"scale", @"frequencyFactors", @"yarn",
    @"inverse"
  ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _layout = MNKRotaryEmbeddingLayoutHalfSplit;
    _sections = @[];
    _base = 10000;
    _pairing = MNKRotaryEmbeddingPairingHalfOfRopeDim;
    _otherAxis = MNKRotaryEmbeddingOtherAxisAxis0;
    _scale = 1;
  }
  return self;
}

@end

namespace mnk::objc {

mnk_rotary_embedding_layout enumFrom(Reading &reading, MNKRotaryEmbeddingLayout value, std::string_view name) {
  return reading.choice<mnk_rotary_embedding_layout>(
      value,
      {MNK_ROTARY_EMBEDDING_LAYOUT_INTERLEAVED_PAIRS, MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT,
       MNK_ROTARY_EMBEDDING_LAYOUT_MROPE, MNK_ROTARY_EMBEDDING_LAYOUT_VISION, MNK_ROTARY_EMBEDDING_LAYOUT_IMROPE},
      name, "MNKRotaryEmbeddingLayout");
}

mnk_rotary_embedding_pairing enumFrom(Reading &reading, MNKRotaryEmbeddingPairing value, std::string_view name) {
  return reading.choice<mnk_rotary_embedding_pairing>(
      value,
      {MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_ROPE_DIM, MNK_ROTARY_EMBEDDING_PAIRING_HALF_OF_HEAD_DIM,
       MNK_ROTARY_EMBEDDING_PAIRING_NEIGHBORS},
      name, "MNKRotaryEmbeddingPairing");
}

mnk_rotary_embedding_other_axis enumFrom(Reading &reading, MNKRotaryEmbeddingOtherAxis value, std::string_view name) {
  return reading.choice<mnk_rotary_embedding_other_axis>(
      value, {MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS0, MNK_ROTARY_EMBEDDING_OTHER_AXIS_AXIS3}, name,
      "MNKRotaryEmbeddingOtherAxis");
}

mnk_rotary_embedding_yarn structFrom(Reading &reading, MNKRotaryEmbeddingYaRN *object, std::string_view name) {
  mnk_rotary_embedding_yarn into{};
  if (!reading.needed(object, name) || !reading.isA([MNKRotaryEmbeddingYaRN class], object, name)) return into;
  into.original_context = object.originalContext;
  into.extension_factor = object.extensionFactor;
  into.attention_factor = object.attentionFactor;
  into.beta_fast = object.betaFast;
  into.beta_slow = object.betaSlow;
  into.keeps_fractions = object.roundsCorners == NO;
  return into;
}

MNKRotaryEmbeddingYaRN *objectFrom(const RotaryEmbedding::YaRN &core) {
  MNKRotaryEmbeddingYaRN *object = [[MNKRotaryEmbeddingYaRN alloc] initWithOriginalContext:core.originalContext];
  object.extensionFactor = core.extensionFactor;
  object.attentionFactor = core.attentionFactor;
  object.betaFast = core.betaFast;
  object.betaSlow = core.betaSlow;
  object.roundsCorners = core.roundsCorners;
  return object;
}

mnk_rotary_embedding structFrom(Reading &reading, MNKRotaryEmbedding *object, std::string_view name) {
  mnk_rotary_embedding into{};
  if (!reading.needed(object, name) || !reading.isA([MNKRotaryEmbedding class], object, name)) return into;
  into.layout = enumFrom(reading, object.layout, "layout");
  reading.fill(into.sections, object.sections, "sections");
  into.base = object.base;
  into.rope_dim = object.ropeDim;
  into.pairing = enumFrom(reading, object.pairing, "pairing");
  into.other_axis = enumFrom(reading, object.otherAxis, "otherAxis");
  into.scale = object.scale;
  const auto &frequencyFactors = reading.keep(reading.floats(object.frequencyFactors, "frequencyFactors"));
  into.frequency_factors = frequencyFactors.empty() ? nullptr : frequencyFactors.data();
  into.frequency_factor_count = frequencyFactors.size();
  if (object.yarn) {
    into.has_yarn = true;
    into.yarn = structFrom(reading, object.yarn, "yarn");
  }
  into.is_inverse = object.isInverse != NO;
  return into;
}

MNKRotaryEmbedding *objectFrom(const RotaryEmbedding &core) {
  MNKRotaryEmbedding *object = [[MNKRotaryEmbedding alloc] init];
  object.layout = static_cast<MNKRotaryEmbeddingLayout>(c::write(core.layout));
  object.sections = numbersFrom(core.sections);
  object.base = core.base;
  object.ropeDim = core.ropeDim;
  object.pairing = static_cast<MNKRotaryEmbeddingPairing>(c::write(core.pairing));
  object.otherAxis = static_cast<MNKRotaryEmbeddingOtherAxis>(c::write(core.otherAxis));
  object.scale = core.scale;
  object.frequencyFactors = numbersFrom(core.frequencyFactors);
  object.yarn = core.yarn ? objectFrom(*core.yarn) : nil;
  object.inverse = core.isInverse;
  return object;
}

}  // namespace mnk::objc
