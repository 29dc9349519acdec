// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(AttentionOptions::Kernel& into, mnk_attention_options_kernel from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC:
      into = AttentionOptions::Kernel::automatic;
      return {};
    case MNK_ATTENTION_OPTIONS_KERNEL_VECTOR:
      into = AttentionOptions::Kernel::vector;
      return {};
    case MNK_ATTENTION_OPTIONS_KERNEL_MATRIX:
      into = AttentionOptions::Kernel::matrix;
      return {};
  }
  return unknownNumber("mnk_attention_options_kernel", from,
                       "MNK_ATTENTION_OPTIONS_KERNEL_AUTOMATIC to MNK_ATTENTION_OPTIONS_KERNEL_MATRIX");
}

Result<void> read(AttentionOptions::Merge& into, mnk_attention_options_merge from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC:
      into = AttentionOptions::Merge::automatic;
      return {};
    case MNK_ATTENTION_OPTIONS_MERGE_SEPARATE:
      into = AttentionOptions::Merge::separate;
      return {};
    case MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL:
      into = AttentionOptions::Merge::inKernel;
      return {};
  }
  return unknownNumber("mnk_attention_options_merge", from,
                       "MNK_ATTENTION_OPTIONS_MERGE_AUTOMATIC to MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL");
}

Result<void> read(AttentionOptions& into, const mnk_attention_options& from, const Field&) {
  into.scale = from.scale;
  into.isCausal = !from.is_bidirectional;
  into.window = from.window;
  into.windowSeesPinned = from.window_sees_pinned;
  into.softcap = from.softcap;
  into.mask = optional(from.mask);
  into.slopes = optional(from.slopes);
  into.sinks = optional(from.sinks);
  into.splits = from.splits;
  MNK_TRY(read(into.kernel, from.kernel));
  MNK_TRY(read(into.merge, from.merge));
  return {};
}

bool isFilled(const mnk_attention_partials& from) {
  return from.sums || from.stats;
}

Result<void> read(AttentionPartials& into, const mnk_attention_partials& from, const Field& field) {
  if (!from.sums) return nullArgument(Field{&field, "sums"});
  into.sums = from.sums->tensor;
  if (!from.stats) return nullArgument(Field{&field, "stats"});
  into.stats = from.stats->tensor;
  return {};
}

Result<void> read(AttentionResults& into, const mnk_attention_results& from, const Field& field) {
  into.output = optional(from.output);
  if (isFilled(from.partials)) MNK_TRY(read(into.partials.emplace(), from.partials, {&field, "partials"}));
  into.logSumExp = optional(from.log_sum_exp);
  return {};
}

Result<void> read(AttendedSequence& into, const mnk_attended_sequence& from, const Field& field) {
  into.sequence = from.sequence;
  into.length = from.length;
  into.highest = from.highest;
  into.rows = from.rows;
  if (from.has_position) {
    into.position = from.position;
  } else if (from.position != 0) {
    return ignored("mnk_attended_sequence", Field{&field, "position"}.text(), "has_position");
  }
  return {};
}

}  // namespace mnk::c
