// Steps that are recorded once and run many times. CommandEncoder.hpp defines what advances from run to run.
#ifndef MNK_RECORDED_STEP_H
#define MNK_RECORDED_STEP_H

#include "MLXNativeKernels/mnk_core.h"

MNK_HEADER_BEGIN

typedef struct mnk_recorded_step mnk_recorded_step;

// An encoder whose calls a step keeps. It checks every rule, runs nothing, and cannot be committed.
mnk_encoder* MNK_NULLABLE mnk_encoder_make_recording(mnk_device* device, const char* MNK_NULLABLE label,
                                                     mnk_error_out error);
// The step that such an encoder recorded. It ends the encoder.
mnk_recorded_step* MNK_NULLABLE mnk_recorded_step_make(mnk_encoder* encoder, mnk_error_out error);
void mnk_recorded_step_release(mnk_recorded_step* MNK_NULLABLE step);

// Encodes the step again and commits it, with the rules of mnk_encoder_commit. Fails with a retryable error if another
// thread ran it, or changed a cache that it uses, meanwhile.
mnk_completion* MNK_NULLABLE mnk_recorded_step_run(const mnk_recorded_step* step, mnk_finished MNK_NULLABLE finished,
                                                   void* MNK_NULLABLE context, mnk_error_out error);
// Encodes the step together with the other work of this encoder. It counts as a run once the encoder is committed. If a
// later call of the step is refused, the encoder cannot be committed.
bool mnk_encoder_encode_step(mnk_encoder* encoder, const mnk_recorded_step* step, mnk_error_out error);
// Encodes a plan that was made before, for the encoder's device.
bool mnk_encoder_encode_plan(mnk_encoder* encoder, const mnk_plan* plan, mnk_error_out error);

// What was recorded. Later runs may differ, as more keys are divided among more threadgroups.
mnk_summary mnk_recorded_step_summary(const mnk_recorded_step* step);
mnk_counts mnk_recorded_step_counts(const mnk_recorded_step* step, const char* kind);  // zeros for an unknown kind
// As mnk_completion_copy_kind and mnk_completion_copy_text. The caller releases it with mnk_text_release.
char* MNK_NULLABLE mnk_recorded_step_copy_kind(const mnk_recorded_step* step, size_t index);
char* MNK_NULLABLE mnk_recorded_step_copy_text(const mnk_recorded_step* step);

MNK_HEADER_END

#endif
