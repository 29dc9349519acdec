#include "Runtime/RepeatedOp.hpp"

#include <algorithm>

#include "Runtime/CommandEncoderImpl.hpp"
#include "Support/Errors.hpp"

namespace mnk {

void OpForm::add(const HeadsView::Strides& s) {
  for (const uint64_t number :
       {s.sequences, s.tokens, s.heads, s.headDim, s.offset, s.sequenceStride, s.tokenStride, s.headStride}) {
    addWord(number);
  }
}

void OpForm::add(const std::optional<Tensor>& shapeOf) {
  addWord(shapeOf ? shapeOf->shape().rank() + 1 : 0);
  if (!shapeOf) return;
  for (const uint64_t extent : shapeOf->shape().extents()) addWord(extent);
}

void OpForm::add(std::string_view op) {
  addWord(reinterpret_cast<uintptr_t>(op.data()));
}

void OpForm::bind(uint32_t index, const Tensor& tensor, Access access) {
  if (!tensor || operandCount_ == operands_.size()) {
    lacksMemory_ = lacksMemory_ || !tensor;
    isTooLarge_ = isTooLarge_ || tensor;
    return;
  }
  const MemoryRange range = tensor.range();
  // The form includes which indices share a tensor, and alignment, because the choice of kernels depends on it.
  constexpr uint64_t kAlignment = 32;  // eight f32
  const bool isWritten = access != Access::read;
  uint64_t first = operandCount_;
  for (uint32_t i = 0; i < operandCount_; ++i) {
    const Operand& other = operands_[i];
    if (other.begin >= range.end || range.begin >= other.end || other.space != range.space) continue;
    if (other.begin == range.begin && other.end == range.end && other.tensor->buffer() == tensor.buffer()) {
      first = std::min<uint64_t>(first, i);
    } else {
      sharesMemory_ = sharesMemory_ || isWritten || other.isWritten;
    }
  }
  uint64_t word = index;
  for (const uint64_t number : {static_cast<uint64_t>(access), static_cast<uint64_t>(tensor.dtype()), first,
                                range.begin % kAlignment, uint64_t{tensor.shape().rank()}}) {
    word = word << 8 | number;  // all are small
  }
  addWord(word);
  for (const uint64_t extent : tensor.shape().extents()) addWord(extent);
  operands_[operandCount_++] = {index, stage_, &tensor, range.space, range.begin, range.end, isWritten};
}

void OpForm::bind(uint32_t index, const std::optional<Tensor>& tensor, Access access) {
  add(tensor.has_value());
  if (tensor) bind(index, *tensor, access);
}

void OpForm::bind(uint32_t index, const HeadsView& view, Access access) {
  bind(index, view.tensor, access);
  add(view.layout);
  add(view.strides.has_value());
  if (view.strides) add(*view.strides);
}

bool OpForm::isRepeatable(const Device& device) const {
  if (isTooLarge_ || lacksMemory_ || sharesMemory_) return false;
  const auto all = operands();
  return std::all_of(all.begin(), all.end(), [&](const Operand& each) { return each.tensor->buffer()->isOf(device); });
}

OpForm OpForm::first(size_t count) const {
  OpForm before = *this;
  before.count_ = static_cast<uint32_t>(count);
  return before;
}

uint64_t OpForm::hash() const {
  // Four independent products at a time, to hide the latency of multiplication.
  constexpr uint64_t kFactors[] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};
  uint64_t lanes[4] = {count_, 1, 2, 3};
  for (uint32_t i = 0; i < count_; ++i) {
    uint64_t& lane = lanes[i % 4];
    lane = (std::rotl(lane, 23) ^ words_[i]) * kFactors[i % 4];
  }
  uint64_t hash = 0;
  for (const uint64_t lane : lanes) hash = (hash ^ lane ^ lane >> 32) * kFactors[0];
  return hash;
}

std::shared_ptr<CountedDispatch> DispatchPool::copyOf(const CountedDispatch& model) {
  std::unique_ptr<CountedDispatch> copy;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      copy = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!copy) copy = std::make_unique<CountedDispatch>(model);
  return {copy.release(), [pool = shared_from_this()](CountedDispatch* done) { pool->giveBack(done); }};
}

void DispatchPool::giveBack(CountedDispatch* dispatch) noexcept {
  constexpr size_t kMaxFree = 8;  // more than most apps have in flight
  std::unique_ptr<CountedDispatch> done(dispatch);
  std::lock_guard lock(mutex_);
  if (free_.size() == kMaxFree) return;
  try {
    free_.push_back(std::move(done));
  } catch (...) {  // it is made again when it is needed
  }
}

std::shared_ptr<const CachedPlan> PlanCache::find(const OpForm& form) const {
  if (form.isTooLarge()) return nullptr;
  const uint64_t hash = form.hash();
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(hash);
  if (found == plans_.end() || !std::ranges::equal(found->second.plan->words, form.words())) return nullptr;
  found->second.lastUse = ++uses_;
  return found->second.plan;
}

void PlanCache::keep(const OpForm& form, CachedPlan plan, uint64_t timesCleared) {
  constexpr size_t kMaxPlans = 256;
  if (form.isTooLarge()) return;
  plan.words.assign(form.words().begin(), form.words().end());
  const auto kept = std::make_shared<const CachedPlan>(std::move(plan));
  std::lock_guard lock(mutex_);
  if (timesCleared_ != timesCleared) return;
  if (plans_.size() >= kMaxPlans) dropOldest();
  plans_[form.hash()] = {kept, ++uses_};
}

// Drops half of the entries, so that this happens rarely.
void PlanCache::dropOldest() {
  std::vector<uint64_t> uses;
  for (const auto& [hash, entry] : plans_) uses.push_back(entry.lastUse);
  const auto middle = uses.begin() + static_cast<int64_t>(uses.size() / 2);
  std::nth_element(uses.begin(), middle, uses.end());
  std::erase_if(plans_, [&](const auto& entry) { return entry.second.lastUse < *middle; });
}

size_t PlanCache::count() const {
  std::lock_guard lock(mutex_);
  return plans_.size();
}

void PlanCache::clear() noexcept {
  std::lock_guard lock(mutex_);
  timesCleared_.fetch_add(1, std::memory_order_release);
  plans_.clear();
}

void CallMemo::keep(const OpForm& form, std::shared_ptr<const CachedPlan> plan) {
  if (known_ == plan) return;
  known_.reset();  // so that an exception leaves nothing half updated
  operands_.clear();
  for (const OpForm::Operand& each : form.operands()) {
    operands_.push_back({each.tensor->buffer(), each.tensor->byteOffset()});
  }
  known_ = std::move(plan);
}

// Records repeated ops by patching the cached plan of their form, and checks what a recording repeats.

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
  return invalidArgument("RecordedStep", "rotary positions stay as recorded, while the cache advances with every run",
                         "positions given as numbers, and an append to a cache",
                         "positions that follow the cache, or a tensor of positions that is written before each run",
                         "Use the next positions of the cache, or pass `rotary` without positions to appendAndAttend.");
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
