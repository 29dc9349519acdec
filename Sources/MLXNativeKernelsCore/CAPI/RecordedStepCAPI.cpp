#include "CAPI/Handles.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

mnk_encoder* mnk_encoder_make_recording(mnk_device* device, const char* label, mnk_error_out error) {
  return c::make<mnk_encoder>(error, {{device, "device"}}, [&]() -> Result<mnk_encoder*> {
    std::unique_ptr<mnk_encoder> result(new mnk_encoder{CommandEncoder(device->device, label ? label : "")});
    StepRecording::begin(result->encoder);
    return result.release();
  });
}

mnk_recorded_step* mnk_recorded_step_make(mnk_encoder* encoder, mnk_error_out error) {
  return c::make<mnk_recorded_step>(error, {{encoder, "encoder"}}, [&]() -> Result<mnk_recorded_step*> {
    auto handle = std::make_unique<mnk_recorded_step>();  // before the recording ends, which happens once
    MNK_TRY(handle->step, StepRecording::end(encoder->encoder));
    return handle.release();
  });
}

void mnk_recorded_step_release(mnk_recorded_step* step) {
  delete step;
}

mnk_completion* mnk_recorded_step_run(const mnk_recorded_step* step, mnk_finished finished, void* context,
                                      mnk_error_out error) {
  return c::make<mnk_completion>(error, {{step, "step"}}, [&]() -> Result<mnk_completion*> {
    auto handle = std::make_unique<mnk_completion>();  // before the commit, after which nothing may fail
    MNK_TRY(handle->completion, step->step.run(c::finishedBy(finished, context)));
    return handle.release();
  });
}

bool mnk_encoder_encode_step(mnk_encoder* encoder, const mnk_recorded_step* step, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {step, "step"}}, [&] { return step->step.encode(encoder->encoder); });
}

bool mnk_encoder_encode_plan(mnk_encoder* encoder, const mnk_plan* plan, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}, {plan, "plan"}}, [&] { return encoder->encoder.encode(plan->plan); });
}

mnk_summary mnk_recorded_step_summary(const mnk_recorded_step* step) {
  if (!step) return {};
  const Summary& summary = step->step.summary();
  return {c::countsFrom(summary.total), summary.barriers, 0};
}
mnk_counts mnk_recorded_step_counts(const mnk_recorded_step* step, const char* kind) {
  mnk_counts counts{};
  c::run(nullptr, {{step, "step"}}, [&]() -> Result<void> {
    counts = c::countsOf(step->step.summary(), kind);
    return {};
  });
  return counts;
}
char* mnk_recorded_step_copy_kind(const mnk_recorded_step* step, size_t index) {
  if (!step || index >= step->step.summary().kinds.size()) return nullptr;
  return c::copyText({step, "step"}, [&] { return std::next(step->step.summary().kinds.begin(), index)->first; });
}
char* mnk_recorded_step_copy_text(const mnk_recorded_step* step) {
  return c::copyText({step, "step"}, [&] { return step->step.summary().text(); });
}
