// How an encoder records ops that repeat: what came of an op of the same form is patched.
#include <algorithm>

#include "Runtime/CommandEncoderImpl.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

// What ops of a known form have in common is there already. `memoryOf` sets the buffer of an operand, and returns where
// the operand starts.
template <typename MemoryOf>
Result<void> CommandEncoder::Impl::makeReady(const RepeatedOp& op, const KnownPlan& known, MemoryOf memoryOf) {
  MNK_TRY(open());
  MNK_TRY(auto acquired, acquireFor(known.scratchBytes, known.zeroedBytes));
  ready.clear();
  for (size_t i = 0; i < known.steps.size(); ++i) {
    const auto& [model, bound] = known.steps[i];
    ReadyDispatch& next = ready.emplace_back();
    if (!model.pool->take(next.dispatch)) next.dispatch = model.dispatch;
    next.pipeline = model.pipeline;
    next.threadgroup = model.threadgroup;
    next.pool = model.pool;
    op.patch(i, next.dispatch);
    for (size_t b = 0; b < bound.size(); ++b) {
      Binding& binding = next.dispatch.buffers[b];
      if (bound[b].operand >= KnownPlan::Bound::kZeroed) {
        const ScratchRange& memory = binding.isZeroed ? acquired.zeroed : acquired.scratch;
        binding.buffer = memory.buffer;
        binding.offset = memory.start + bound[b].offset;
      } else {
        binding.offset = memoryOf(bound[b].operand, binding.buffer) + bound[b].offset;
      }
    }
  }
  return {};
}

// Keeps what was made for an op, for others of its form.
void CommandEncoder::Impl::keep(const RepeatedOp& op, const OpForm& form, const Plan& plan,
                                std::vector<ReadyDispatch> made) {
  KnownPlan known{.words = {}, .steps = {}, .scratchBytes = plan.scratchBytes, .zeroedBytes = plan.zeroedBytes};
  const auto operands = form.operands();
  for (size_t i = 0; i < made.size(); ++i) {
    KnownPlan::Step step{.ready = std::move(made[i]), .bound = {}};
    for (const Binding& binding : plan.dispatches[i].buffers) {
      if (!binding.buffer) {
        step.bound.push_back(
            {binding.isZeroed ? KnownPlan::Bound::kZeroed : KnownPlan::Bound::kScratch, binding.offset});
        continue;
      }
      const auto operand = std::find_if(operands.begin(), operands.end(), [&](const OpForm::Operand& each) {
        return each.index == binding.index && each.stage == op.stageOf(i);
      });
      // A binding that the form does not name cannot be made again.
      if (operand == operands.end() || operand->tensor->buffer() != binding.buffer ||
          binding.offset < operand->tensor->byteOffset()) {
        return;
      }
      step.bound.push_back(
          {static_cast<uint32_t>(operand - operands.begin()), binding.offset - operand->tensor->byteOffset()});
    }
    for (Binding& binding : step.ready.dispatch.buffers) binding.buffer.reset();
    step.ready.pool = std::make_shared<DispatchPool>();
    known.steps.push_back(std::move(step));
  }
  device->knownPlans().keep(form, std::move(known));
}

Result<void> CommandEncoder::repeat(RepeatedOp& op) {
  return guarded(op.name(), [&]() -> Result<void> {
    const auto& target = impl_->device;
    const Impl::ReadyScope scope{impl_->ready};
    CallMemo* const memo = std::exchange(memo_, nullptr);
    if (memo && memo->known() && !impl_->isCommitted) {
      OpForm choices;
      MNK_TRY(op.refine(*target, choices));
      if (memo->serves(target->knownPlans(), choices)) {
        MNK_TRY(impl_->makeReady(op, *memo->known(), [&](uint32_t operand, std::shared_ptr<Buffer>& buffer) {
          buffer = memo->operands()[operand].buffer;
          return memo->operands()[operand].offset;
        }));
        return impl_->recordReady();
      }
    }
    OpForm form;
    const bool canRepeat = target && !impl_->isCommitted && op.describe(form) && form.isRepeatable(*target);
    std::shared_ptr<const KnownPlan> known = canRepeat ? target->knownPlans().find(form) : nullptr;
    const bool isKnown = known != nullptr;
    const size_t firstChoice = form.words().size();
    if (isKnown) {
      MNK_TRY(op.refine(*target, form));
      if (form.words().size() != firstChoice) known = target->knownPlans().find(form);
    }
    if (known) {
      MNK_TRY(impl_->makeReady(op, *known, [&](uint32_t operand, std::shared_ptr<Buffer>& buffer) {
        const Tensor& tensor = *form.operands()[operand].tensor;
        buffer = tensor.buffer();
        return tensor.byteOffset();
      }));
      if (memo) {
        // Without memory for it, the plan is looked for again.
        (void)guarded(op.name(), [&]() -> Result<void> {
          memo->keep(target->knownPlans(), form, firstChoice, known);
          return {};
        });
      }
      return impl_->recordReady();
    }
    MNK_TRY(auto planned, op.plan(target.get()));
    MNK_TRY(impl_->makeReady(planned.dispatches, planned.scratchBytes, planned.zeroedBytes));
    const bool isKept = canRepeat && !impl_->ready.empty() && impl_->ready.size() == planned.dispatches.size();
    auto made = isKept ? impl_->ready : std::vector<ReadyDispatch>();
    MNK_TRY(impl_->recordReady());
    if (!isKept) return {};
    // Without memory to keep it, it is planned again.
    (void)guarded(op.name(), [&]() -> Result<void> {
      if (!isKnown) {
        // Those whose form says all have no further choices to add.
        MNK_TRY(op.refine(*target, form));
        if (form.words().size() != firstChoice) target->knownPlans().keep(form.first(firstChoice), {});
      }
      impl_->keep(op, form, planned, std::move(made));
      return {};
    });
    return {};
  });
}

}  // namespace mnk
