#include "Runtime/RepeatedOp.hpp"

#include <algorithm>

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

}  // namespace mnk
