#include "CAPI/Handles.hpp"
#include "Support/Format.hpp"
#include "Support/Try.hpp"

namespace mnk::c {

namespace {

// Returned when there is no memory even for an error. Created in advance and never released.
mnk_error exhausted{outOfMemory("C API", "a failed allocation"), "C API: memory ran out."};

Error unknownNumber(std::string_view type, uint32_t got, std::string_view expected) {
  return {.op = "C API",
          .what = fmt::format("the number is not a {}", type),
          .got = fmt::format("{}", got),
          .expected = std::string(expected),
          .fix = "Use the constants of mnk.h."};
}

Error unread(std::string_view op, std::string_view field, std::string_view needed, std::string_view unset,
             std::string_view empty) {
  return {.op = std::string(op),
          .what = fmt::format("{} would be ignored", field),
          .got = fmt::format("{} while {} is {}", field, needed, unset),
          .expected = fmt::format("{} to be set, or {} to be {}", needed, field, empty),
          .fix = fmt::format("Set {}, or leave {} at {}.", needed, field, empty)};
}

// For enums without gaps.
template <typename Enum, typename Input>
Result<Enum> upTo(Enum last, Input input, std::string_view type, std::string_view expected) {
  const auto number = static_cast<uint32_t>(input);
  if (number > static_cast<uint32_t>(last)) return unknownNumber(type, number, expected);
  return static_cast<Enum>(number);
}

}  // namespace

void store(mnk_error_out out, Error error) noexcept {
  if (!out) return;
  try {
    auto stored = std::make_unique<mnk_error>();
    stored->message = error.message();
    stored->error = std::move(error);
    *out = stored.release();
  } catch (...) {
    *out = &exhausted;
  }
}

void release(mnk_error* error) noexcept {
  if (error != &exhausted) delete error;
}

Error nullArgument(std::string_view what) {
  return {.op = "C API",
          .what = fmt::format("{} is missing", what),
          .got = "NULL",
          .expected = "a pointer",
          .fix = "Pass an object; where it may be NULL, leave its count and the fields that need it at 0."};
}

Error tooMany(std::string_view op, std::string_view what, uint64_t got, uint64_t most, std::string_view fix) {
  return {.op = std::string(op),
          .what = fmt::format("there are too many {}", what),
          .got = fmt::format("{}", got),
          .expected = fmt::format("at most {}", most),
          .fix = std::string(fix)};
}

Error ignored(std::string_view op, std::string_view field, std::string_view flag, std::string_view unset) {
  return unread(op, field, flag, unset, "0");
}

Error uncounted(std::string_view op, std::string_view list, std::string_view count) {
  return unread(op, list, count, "0", "NULL");
}

Result<DType> dtype(mnk_dtype input) {
  return upTo(DType::i32, input, "dtype", "MNK_F32 to MNK_I32");
}
Result<KVLayout> layout(mnk_kv_layout input, KVLayout standard) {
  MNK_TRY(const auto given, upTo(MNK_TOKEN_MAJOR, input, "layout", "MNK_DEFAULT_LAYOUT to MNK_TOKEN_MAJOR"));
  if (given == MNK_DEFAULT_LAYOUT) return standard;
  return given == MNK_HEAD_MAJOR ? KVLayout::headMajor : KVLayout::tokenMajor;
}
Result<KVWrap> wrap(mnk_kv_wrap input) {
  return upTo(KVWrap::ring, input, "wrap", "MNK_LINEAR or MNK_RING");
}
Result<RotaryPairing> rotaryPairing(mnk_rotary_pairing input) {
  return upTo(RotaryPairing::neighbors, input, "rotary pairing", "MNK_HALF_OF_ROPE_DIM to MNK_NEIGHBORS");
}
Result<RotaryOtherAxis> rotaryOtherAxis(mnk_rotary_other_axis input) {
  return upTo(RotaryOtherAxis::axis3, input, "rotary axis", "MNK_OTHER_AXIS_0 or MNK_OTHER_AXIS_3");
}
Result<KVCodecName> codecName(mnk_kv_codec_name input) {
  return upTo(KVCodecName::mlx1Affine4, input, "codec", "MNK_TURBO to MNK_MLX1_AFFINE4");
}
Result<KVNonFinite> nonFinite(mnk_kv_non_finite input) {
  return upTo(KVNonFinite::zero, input, "treatment of NaN and infinity",
              "MNK_NON_FINITE_PROPAGATE or MNK_NON_FINITE_ZERO");
}
Result<KVDomain> domain(mnk_kv_domain input) {
  return upTo(KVDomain::rotated, input, "domain", "MNK_ORIGINAL_DOMAIN or MNK_ROTATED_DOMAIN");
}
Result<KVQuantizedPlanes> quantizedPlanes(mnk_quantized_planes input) {
  return upTo(KVQuantizedPlanes::values, input, "choice of what is quantized",
              "MNK_QUANTIZED_BOTH to MNK_QUANTIZED_VALUES");
}
Result<FlashDecodeKernel> flashDecodeKernel(mnk_flash_decode_kernel input) {
  return upTo(FlashDecodeKernel::matrix, input, "kernel of FlashDecode", "MNK_KERNEL_AUTOMATIC to MNK_KERNEL_MATRIX");
}
Result<FlashDecodeMerge> flashDecodeMerge(mnk_flash_decode_merge input) {
  return upTo(FlashDecodeMerge::inKernel, input, "way of merging", "MNK_MERGE_AUTOMATIC to MNK_MERGE_IN_KERNEL");
}

Result<Tuning> tuning(mnk_tuning input) {
  return upTo(Tuning::measure, input, "way of tuning", "MNK_TUNING_TABLE or MNK_TUNING_MEASURE");
}

Result<KVScaleRule> scaleRule(mnk_kv_scale_rule input, KVScaleRule byDefault) {
  switch (const auto number = static_cast<uint32_t>(input)) {
    case MNK_SCALE_DEFAULT:
      return byDefault;
    case MNK_SCALE_UNBIASED:
      return KVScaleRule::unbiased;
    case MNK_SCALE_LEAST_SQUARES:
      return KVScaleRule::leastSquares;
    default:
      return unknownNumber("rule for scales", number, "MNK_SCALE_DEFAULT to MNK_SCALE_LEAST_SQUARES");
  }
}

Result<RotaryLayout> rotaryLayout(mnk_rotary_layout input) {
  const auto number = static_cast<uint32_t>(input);
  switch (static_cast<RotaryLayout>(number)) {
    case RotaryLayout::interleavedPairs:
    case RotaryLayout::halfSplit:
    case RotaryLayout::mrope:
    case RotaryLayout::vision:
    case RotaryLayout::imrope:
      return static_cast<RotaryLayout>(number);
  }
  return unknownNumber("rotary layout", number,
                       "MNK_INTERLEAVED_PAIRS, MNK_HALF_SPLIT, MNK_MROPE, MNK_VISION or MNK_IMROPE");
}

Result<Shape> shape(const uint64_t* extents, size_t rank) {
  if (!extents && rank != 0) return nullArgument("shape");
  return Shape::make(std::span<const uint64_t>(extents, rank));
}

}  // namespace mnk::c

mnk_error_code mnk_error_get_code(const mnk_error* error) {
  return error ? static_cast<mnk_error_code>(error->error.code) : MNK_INVALID_ARGUMENT;
}
bool mnk_error_is_retryable(const mnk_error* error) {
  return error ? error->error.retryable : false;
}
const char* mnk_error_op(const mnk_error* error) {
  return error ? error->error.op.c_str() : "";
}
const char* mnk_error_what(const mnk_error* error) {
  return error ? error->error.what.c_str() : "";
}
const char* mnk_error_got(const mnk_error* error) {
  return error ? error->error.got.c_str() : "";
}
const char* mnk_error_expected(const mnk_error* error) {
  return error ? error->error.expected.c_str() : "";
}
const char* mnk_error_fix(const mnk_error* error) {
  return error ? error->error.fix.c_str() : "";
}
const char* mnk_error_message(const mnk_error* error) {
  return error ? error->message.c_str() : "";
}
void mnk_error_release(mnk_error* error) {
  mnk::c::release(error);
}
