// Records repeated ops by patching the cached plan of their form, and checks what a recording repeats.
#include <algorithm>

#include "Runtime/CommandEncoderImpl.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

auto memoryOf(const CallMemo& memo) {
  return [&memo](uint32_t operand) { return memo.operands()[operand]; };
}

auto memoryOf(const OpForm& form) {
  return [&form](uint32_t operand) {
    const Tensor& tensor = *form.operands()[operand].tensor;
    return BoundMemory{tensor.buffer(), tensor.byteOffset()};
  };
}

Error fixedPositions() {
  return {.op = "RecordedStep",
          .what = "rotary positions stay as recorded, while the cache advances with every run",
          .got = "positions given as numbers, and an append to a cache",
          .expected = "positions that follow the cache, or a tensor of positions that is written before each run",
          .fix = "Use the next positions of the cache, or pass `rotary` without positions to appendAndAttend."};
}

}  // namespace

// The plan that an earlier op of this encoder patched for the same positions, or null.
template <typename IsForm>
const PatchedPlan* CommandEncoder::Impl::patchedAt(const OpPositions& positions, IsForm isForm) {
  const uint64_t cleared = device->planCache().timesCleared();
  if (std::exchange(timesCleared, cleared) != cleared) patched.clear();
  const auto found = std::find_if(patched.begin(), patched.end(), [&](const PatchedPlan& each) {
    return each.form && std::ranges::equal(each.positions, positions.words()) && isForm(each.form);
  });
  return found == patched.end() ? nullptr : &*found;
}

const PatchedPlan& CommandEncoder::Impl::patch(const RepeatedOp& op, std::shared_ptr<const CachedPlan> form,
                                               std::shared_ptr<const CachedPlan> plan, const OpPositions& positions) {
  constexpr size_t kMaxPatched = 16;  // enough for the ops of a model's layer types
  PatchedPlan entry;
  entry.plan = std::move(plan);
  for (size_t i = 0; i < entry.plan->steps.size(); ++i) {
    const auto& [model, pool, bound] = entry.plan->steps[i];
    const auto copy = pool->copyOf(*model);
    op.patch(i, copy->dispatch);
    copy->count();
    entry.dispatches.emplace_back(copy);
  }
  entry.positions.assign(positions.words().begin(), positions.words().end());
  if (!positions.isTooLarge()) entry.form = std::move(form);  // an entry without a form is never found
  if (patched.size() < kMaxPatched) return patched.emplace_back(std::move(entry));
  PatchedPlan& oldest = patched[nextPatched++ % kMaxPatched];
  std::swap(oldest, entry);
  return oldest;
}

// `memoryOf` returns the memory of an operand.
template <typename MemoryOf>
Result<void> CommandEncoder::Impl::recordPatched(const PatchedPlan& patched, MemoryOf memoryOf) {
  MNK_TRY(open());
  MNK_TRY(auto acquired, acquireFor(patched.plan->scratchBytes, patched.plan->zeroedBytes));
  for (size_t i = 0; i < patched.dispatches.size(); ++i) {
    for (const auto& [operand, offset] : patched.plan->steps[i].bound) {
      if (operand >= CachedPlan::Bound::kZeroed) {
        const ScratchRange& range = operand == CachedPlan::Bound::kZeroed ? acquired.zeroed : acquired.scratch;
        memory.push_back({*range.buffer, range.start + offset});
      } else {
        memory.push_back(memoryOf(operand));
        memory.back().offset += offset;
      }
    }
    addReady(patched.dispatches[i]);
  }
  return recordReady();
}

// Caches the plan of an op for later ops of the same form.
void CommandEncoder::Impl::keep(const RepeatedOp& op, const OpForm& form, const Plan& plan,
                                std::vector<std::shared_ptr<const CountedDispatch>> encoded, uint64_t timesCleared) {
  CachedPlan known{.words = {}, .steps = {}, .scratchBytes = plan.scratchBytes, .zeroedBytes = plan.zeroedBytes};
  const auto operands = form.operands();
  for (size_t i = 0; i < encoded.size(); ++i) {
    CachedPlan::Step step{.model = std::move(encoded[i]), .pool = std::make_shared<DispatchPool>(), .bound = {}};
    for (const Binding& binding : plan.dispatches[i].buffers) {
      if (!binding.buffer) {
        step.bound.push_back(
            {binding.isZeroed ? CachedPlan::Bound::kZeroed : CachedPlan::Bound::kScratch, binding.offset});
        continue;
      }
      const auto operand = std::find_if(operands.begin(), operands.end(), [&](const OpForm::Operand& each) {
        return each.index == binding.index && each.stage == op.stageOf(i);
      });
      // A binding that is not an operand of the form cannot be rebound.
      if (operand == operands.end() || operand->tensor->buffer() != binding.buffer ||
          binding.offset < operand->tensor->byteOffset()) {
        return;
      }
      step.bound.push_back(
          {static_cast<uint32_t>(operand - operands.begin()), binding.offset - operand->tensor->byteOffset()});
    }
    known.steps.push_back(std::move(step));
  }
  device->planCache().keep(form, std::move(known), timesCleared);
}

Result<bool> CommandEncoder::repeatAt(const OpPositions& positions) {
  return guarded("CommandEncoder", [&]() -> Result<bool> {
    if (!memo_ || !memo_->known() || impl_->isCommitted || positions.isTooLarge()) return false;
    const PatchedPlan* const patched =
        impl_->patchedAt(positions, [&](const auto& form) { return form.get() == memo_->known(); });
    if (!patched) return false;
    const Impl::ReadyScope scope{*impl_};
    MNK_TRY(impl_->recordPatched(*patched, memoryOf(*std::exchange(memo_, nullptr))));
    return true;
  });
}

Result<void> CommandEncoder::repeat(RepeatedOp& op) {
  return guarded(op.name(), [&]() -> Result<void> {
    OpPositions positions;
    op.addPositions(positions);
    MNK_TRY(const bool isRecorded, repeatAt(positions));
    if (isRecorded) return {};
    const auto& target = impl_->device;
    const Impl::ReadyScope scope{*impl_};
    CallMemo* const memo = std::exchange(memo_, nullptr);
    OpForm form;
    const bool canRepeat = target && !impl_->isCommitted && op.describe(form) && form.isRepeatable(*target);
    const PatchedPlan* patched = nullptr;
    if (canRepeat) {
      patched = impl_->patchedAt(positions,
                                 [&](const auto& known) { return std::ranges::equal(known->words, form.words()); });
    }
    const auto formPlan = patched ? patched->form : canRepeat ? target->planCache().find(form) : nullptr;
    const size_t firstChoice = form.words().size();
    if (formPlan && !patched) {
      MNK_TRY(op.refine(*target, form));
      auto known = form.words().size() == firstChoice ? formPlan : target->planCache().find(form);
      if (known) patched = &impl_->patch(op, formPlan, std::move(known), positions);
    }
    if (patched) {
      if (memo) {
        // If memory runs out, the next run searches for the plan again.
        (void)guarded(op.name(), [&]() -> Result<void> {
          memo->keep(form, formPlan);
          return {};
        });
      }
      return impl_->recordPatched(*patched, memoryOf(form));
    }
    // Read before planning: if the device's tuning changes in the meantime, the plan may not match the choices in the
    // form.
    const uint64_t timesCleared = target ? target->planCache().timesCleared() : 0;
    MNK_TRY(auto planned, op.plan(target.get()));
    MNK_TRY(impl_->makeReady(planned.dispatches, planned.scratchBytes, planned.zeroedBytes));
    const bool isKept = canRepeat && !impl_->ready.empty() && impl_->ready.size() == planned.dispatches.size();
    std::vector<std::shared_ptr<const CountedDispatch>> encoded;
    for (const Impl::Ready& each : impl_->ready) encoded.push_back(each.dispatch);
    MNK_TRY(impl_->recordReady());
    if (!isKept) return {};
    // If memory runs out, the plan is not cached.
    (void)guarded(op.name(), [&]() -> Result<void> {
      if (!formPlan) {
        // If refine adds nothing, the form alone determines the plan.
        MNK_TRY(op.refine(*target, form));
        if (form.words().size() != firstChoice) target->planCache().keep(form.first(firstChoice), {}, timesCleared);
      }
      impl_->keep(op, form, planned, std::move(encoded), timesCleared);
      return {};
    });
    return {};
  });
}

void CommandEncoder::noteFixedPositions() noexcept {
  impl_->hasFixedPositions = true;
}

void CommandEncoder::noteAppend() noexcept {
  impl_->hasAppend = true;
}

const RotatedRows* CommandEncoder::rotatedRows() const {
  return impl_->rotated.get();
}

RotatedRows* CommandEncoder::makeRotatedRows() {
  if (!impl_->rotated && !impl_->isShared) impl_->rotated = std::make_unique<RotatedRows>(impl_->touched);
  return impl_->rotated.get();
}

Result<void> CommandEncoder::checkRecorded() const {
  if (impl_->hasFixedPositions && impl_->hasAppend) return fixedPositions();
  std::lock_guard lock(EncodingParticipant::mutex());
  for (const auto& joined : impl_->participants) MNK_TRY(joined.participant->checkComplete());
  return {};
}

}  // namespace mnk
