#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

namespace {

template <typename T>
Result<std::span<const T>> listFrom(const T* items, size_t count, std::string_view name, std::string_view countName) {
  if (!items && count != 0) return c::nullArgument(name);
  if (items && count == 0) return c::uncounted("mnk_dispatch", name, countName);
  return std::span<const T>(items, count);
}

Result<FunctionConstant> constantFrom(const mnk_constant& input) {
  static_assert(static_cast<int>(ConstantType::boolean) == MNK_CONSTANT_BOOL &&
                static_cast<int>(ConstantType::i32) == MNK_CONSTANT_I32 &&
                static_cast<int>(ConstantType::u32) == MNK_CONSTANT_U32 &&
                static_cast<int>(ConstantType::f32) == MNK_CONSTANT_F32);
  if (static_cast<uint32_t>(input.type) <= MNK_CONSTANT_F32) {
    return FunctionConstant(input.index, static_cast<ConstantType>(input.type), input.bits);
  }
  return Error{.op = "C API",
               .what = "the type of a function constant is unknown",
               .got = fmt::format("{}", static_cast<uint32_t>(input.type)),
               .expected = "MNK_CONSTANT_BOOL to MNK_CONSTANT_F32",
               .fix = "Use the constants of mnk.h."};
}

Result<Dispatch> dispatchFrom(const mnk_dispatch* input, const DeviceLimits& limits) {
  MNK_TRY(auto d, c::descriptor("mnk_dispatch", input));
  if (!d.function) return c::nullArgument("function");
  MNK_TRY(auto buffers, listFrom(d.buffers, d.buffer_count, "buffers", "buffer_count"));
  MNK_TRY(auto inlines, listFrom(d.inlines, d.inline_count, "inlines", "inline_count"));
  MNK_TRY(auto memories,
          listFrom(d.threadgroup_memory, d.threadgroup_memory_count, "threadgroup_memory", "threadgroup_memory_count"));
  MNK_TRY(auto constants, listFrom(d.constants, d.constant_count, "constants", "constant_count"));

  Dispatch dispatch;
  dispatch.kind = d.kind ? d.kind : "Custom";
  dispatch.kernel.function = d.function;
  if (d.library) dispatch.kernel.library = d.library->library;
  for (const mnk_constant& constant : constants) {
    MNK_TRY(auto converted, constantFrom(constant));
    dispatch.kernel.constants.push_back(converted);
  }
  for (const mnk_binding& binding : buffers) {
    if (!binding.tensor) return c::nullArgument("the tensor of a binding");
    Access access{};
    MNK_TRY(c::read(access, binding.access));
    dispatch.buffers.push_back(Binding::whole(binding.index, binding.tensor->tensor, access));
  }
  for (const mnk_inline_bytes& inlined : inlines) {
    if (!inlined.bytes) return c::nullArgument("inline bytes");
    if (inlined.count > limits.maxInlineBytes)
      return c::tooMany("CommandEncoder", "inline bytes", inlined.count, limits.maxInlineBytes);
    const auto* bytes = static_cast<const std::byte*>(inlined.bytes);
    dispatch.inlines.push_back({inlined.index, {bytes, bytes + inlined.count}, inlined.is_value});
  }
  for (const mnk_threadgroup_memory& memory : memories) {
    dispatch.threadgroupMemory.push_back({memory.index, memory.bytes});
  }
  dispatch.grid.unit = d.grid_is_threadgroups ? Grid::Unit::threadgroups : Grid::Unit::threads;
  for (size_t axis = 0; axis < 3; ++axis) {
    dispatch.grid.extent[axis] = d.grid[axis];
    dispatch.grid.threadgroup[axis] = d.threadgroup[axis];
  }
  return dispatch;
}

}  // namespace

mnk_counts c::countsFrom(const Summary::Counts& counts) {
  return {counts.dispatches, counts.bytesRead, counts.bytesWritten, counts.deviceSeconds};
}
mnk_counts c::countsOf(const Summary& summary, const char* kind) {
  const auto found = summary.kinds.find(kind ? kind : "");
  return found == summary.kinds.end() ? mnk_counts{} : countsFrom(found->second);
}

CommandEncoder::Finished c::finishedBy(mnk_finished finished, void* context) {
  if (!finished) return {};
  return [finished, context](const Result<Summary>& result) {
    if (result) return finished(context, nullptr);
    mnk_error* failure = nullptr;
    c::store(&failure, result.error());
    finished(context, failure);
    mnk_error_release(failure);
  };
}

mnk_encoder* mnk_encoder_make(mnk_device* device, const char* label, mnk_error_out error) {
  return c::make<mnk_encoder>(error, {{device, "device"}}, [&]() -> Result<mnk_encoder*> {
    return new mnk_encoder{CommandEncoder(device->device, label ? label : "")};
  });
}

void mnk_encoder_release(mnk_encoder* encoder) {
  delete encoder;
}

bool mnk_encoder_dispatch(mnk_encoder* encoder, const mnk_dispatch* dispatch, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&]() -> Result<void> {
    MNK_TRY(auto converted, dispatchFrom(dispatch, encoder->encoder.device()->limits()));
    return encoder->encoder.dispatch(converted);
  });
}

bool mnk_encoder_barrier(mnk_encoder* encoder, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return encoder->encoder.barrier(); });
}

bool mnk_encoder_measure_ops(mnk_encoder* encoder, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return encoder->encoder.measureOps(); });
}

mnk_completion* mnk_encoder_commit(mnk_encoder* encoder, mnk_finished finished, void* context, mnk_error_out error) {
  return c::make<mnk_completion>(error, {{encoder, "encoder"}}, [&]() -> Result<mnk_completion*> {
    auto handle = std::make_unique<mnk_completion>();  // before the commit, after which nothing may fail
    MNK_TRY(handle->completion, encoder->encoder.commit(c::finishedBy(finished, context)));
    return handle.release();
  });
}

void mnk_completion_release(mnk_completion* completion) {
  delete completion;
}

bool mnk_completion_wait(const mnk_completion* completion, mnk_error_out error) {
  return c::run(error, {{completion, "completion"}}, [&]() -> Result<void> {
    auto result = completion->completion.wait();
    return result ? Result<void>() : Result<void>(result.error());
  });
}

bool mnk_completion_is_done(const mnk_completion* completion) {
  return completion ? completion->completion.isDone() : false;
}

mnk_summary mnk_completion_summary(const mnk_completion* completion) {
  mnk_summary summary{};
  c::run(nullptr, {{completion, "completion"}}, [&]() -> Result<void> {
    const Summary now = completion->completion.summary();
    summary = {c::countsFrom(now.total), now.barriers, now.deviceSeconds};
    return {};
  });
  return summary;
}

mnk_counts mnk_completion_counts(const mnk_completion* completion, const char* kind) {
  mnk_counts counts{};
  c::run(nullptr, {{completion, "completion"}}, [&]() -> Result<void> {
    counts = c::countsOf(completion->completion.summary(), kind);
    return {};
  });
  return counts;
}

char* mnk_completion_copy_kind(const mnk_completion* completion, size_t index) {
  const Summary now = completion ? completion->completion.summary() : Summary();
  if (index >= now.kinds.size()) return nullptr;
  return c::copyText({completion, "completion"}, [&] { return std::next(now.kinds.begin(), index)->first; });
}

char* mnk_completion_copy_text(const mnk_completion* completion) {
  return c::copyText({completion, "completion"}, [&] { return completion->completion.summary().text(); });
}

void mnk_text_release(char* text) {
  free(text);
}

void mnk_plan_release(mnk_plan* plan) {
  delete plan;
}
const char* mnk_plan_text(const mnk_plan* plan) {
  return plan ? plan->text.c_str() : "";
}
size_t mnk_plan_dispatch_count(const mnk_plan* plan) {
  return plan ? plan->plan.dispatches.size() : 0;
}
uint64_t mnk_plan_scratch_bytes(const mnk_plan* plan) {
  return plan ? plan->plan.scratchBytes : 0;
}

mnk_planned_dispatch mnk_plan_dispatch(const mnk_plan* plan, size_t index) {
  if (!plan || index >= plan->plan.dispatches.size()) return {"", {0, 0, 0}, 0, 0};
  const Dispatch& dispatch = plan->plan.dispatches[index];
  const Size3& grid = dispatch.grid.extent;
  return {dispatch.kernel.function.c_str(),
          {grid[0], grid[1], grid[2]},
          dispatch.countedBytesRead(),
          dispatch.countedBytesWritten()};
}
