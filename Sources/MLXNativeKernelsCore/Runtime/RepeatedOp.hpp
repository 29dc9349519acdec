// Ops of one form are alike but for positions and memory, as those of a layer are from token to token. The device plans
// and checks a form once, and keeps the plan. An encoder patches it for the positions of an op; further ops of that
// form at those positions, as those of a model's layers are, bind other memory to the same dispatches.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

// All that a plan depends on but positions and memory, as numbers, and the memory that its dispatches bind.
class OpForm {
 public:
  // Without initializers: a form has room for many of them, most of which stay unused.
  struct Operand {
    uint32_t index;  // of a kernel's buffer; all dispatches of a stage mean the same by it
    uint32_t stage;
    const Tensor* tensor;
    const void* space;
    uint64_t begin, end;
    bool isWritten;
  };

  // What is added from here on is of the next op of a plan that several ops make together.
  void beginStage() { addWord(++stage_); }

  template <typename Number>
  void add(Number number) {
    if constexpr (std::is_same_v<Number, float>)
      addWord(std::bit_cast<uint32_t>(number));
    else if constexpr (std::is_same_v<Number, double>)
      addWord(std::bit_cast<uint64_t>(number));
    else
      addWord(static_cast<uint64_t>(number));
  }
  void add(const HeadsView::Strides& strides);
  void add(std::string_view op);  // the name of one, which is static
  // A tensor that dispatches bind at this index. It outlives the form.
  void bind(uint32_t index, const Tensor& tensor, Access access);
  void bind(uint32_t index, const std::optional<Tensor>& tensor, Access access);
  void bind(uint32_t index, const HeadsView& view, Access access);

  // Words or operands did not fit, so that others may have the same words.
  bool isTooLarge() const { return isTooLarge_; }
  // Whether plans of this form can be kept: it is not too large, all memory is there, of this device, and what is
  // written overlaps nothing else but where it is the same tensor.
  bool isRepeatable(const Device& device) const;

  std::span<const uint64_t> words() const { return {words_.data(), count_}; }
  // The form before the words after the first `count` were added.
  OpForm first(size_t count) const;
  std::span<const Operand> operands() const { return {operands_.data(), operandCount_}; }
  uint64_t hash() const;

 private:
  void addWord(uint64_t word) {
    isTooLarge_ = isTooLarge_ || count_ == words_.size();
    if (!isTooLarge_) words_[count_++] = word;
  }

  std::array<uint64_t, 512> words_;
  std::array<Operand, 32> operands_;
  uint32_t count_ = 0;
  uint32_t operandCount_ = 0;
  uint32_t stage_ = 0;
  bool isTooLarge_ = false;
  bool lacksMemory_ = false;
  bool sharesMemory_ = false;  // something is written, and is part of another operand
};

// All that an op's choices and patches depend on besides its form.
class OpPositions {
 public:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    (addWord(static_cast<uint64_t>(numbers)), ...);
  }
  // Numbers did not fit, so that others may have the same.
  bool isTooLarge() const { return isTooLarge_; }
  std::span<const uint64_t> words() const { return {words_.data(), count_}; }

 private:
  void addWord(uint64_t word) {
    isTooLarge_ = isTooLarge_ || count_ == words_.size();
    if (!isTooLarge_) words_[count_++] = word;
  }

  std::array<uint64_t, 64> words_;  // without initializers, because most stay unused
  uint32_t count_ = 0;
  bool isTooLarge_ = false;
};

// An op as the encoder sees it.
class RepeatedOp {
 public:
  virtual std::string_view name() const = 0;
  // Checks every rule; a null device is none.
  virtual Result<Plan> plan(Device* device) const = 0;
  // False where the op's plans are not kept. Is asked of any op, whatever rules it breaks. Positions must not matter: a
  // recorded step describes a call once.
  virtual bool describe(OpForm& form) const = 0;
  virtual void addPositions(OpPositions& positions) const = 0;
  // For an op whose form has kept all other rules: checks those about positions, and adds the choices that depend on
  // them.
  virtual Result<void> refine(Device& device, OpForm& form) = 0;
  // Makes the dispatch of an op that has the same form that of this one, but for the memory bound.
  virtual void patch(size_t index, Dispatch& dispatch) const = 0;
  virtual uint32_t stageOf(size_t /*index*/) const { return 0; }

 protected:
  ~RepeatedOp() = default;
};

// Changes a structure that travels with a dispatch.
template <typename T, typename Change>
void patchInline(Dispatch& dispatch, uint32_t index, Change change) {
  static_assert(std::is_trivially_copyable_v<T>);
  for (InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index != index) continue;
    T value;
    std::memcpy(&value, inlined.bytes.data(), sizeof value);
    change(value);
    std::memcpy(inlined.bytes.data(), &value, sizeof value);
  }
}
// Replaces a list that travels with a dispatch by one that is as long.
template <typename T>
void patchList(Dispatch& dispatch, uint32_t index, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  for (InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index == index && inlined.bytes.size() == values.size() * sizeof(T))
      std::memcpy(inlined.bytes.data(), values.data(), values.size() * sizeof(T));
  }
}

// Dispatches of a form that are no longer in use, whose memory further ones take.
class DispatchPool : public std::enable_shared_from_this<DispatchPool> {
 public:
  // Equal to the model, but for what was patched in it. It comes back when its last user is done.
  std::shared_ptr<CountedDispatch> copyOf(const CountedDispatch& model);

 private:
  void giveBack(CountedDispatch* dispatch) noexcept;

  std::mutex mutex_;
  std::vector<std::unique_ptr<CountedDispatch>> free_;
};

// The plan of a form.
struct KnownPlan {
  struct Bound {
    uint32_t operand = 0;  // of the form; kScratch: the plan's scratch memory, kZeroed: its zeroed memory
    uint64_t offset = 0;   // from the start of the tensor or of that memory
    static constexpr uint32_t kScratch = UINT32_MAX, kZeroed = UINT32_MAX - 1;
  };
  struct Step {
    std::shared_ptr<const CountedDispatch> model;
    std::shared_ptr<DispatchPool> pool;
    std::vector<Bound> bound;
  };
  std::vector<uint64_t> words;
  std::vector<Step> steps;  // none of a form that is refined
  uint64_t scratchBytes = 0;
  uint64_t zeroedBytes = 0;
};

// The plans that a device knows.
class KnownPlans {
 public:
  std::shared_ptr<const KnownPlan> find(const OpForm& form) const;
  // Unless plans were cleared since `timesCleared` was read, before the plan was made.
  void keep(const OpForm& form, KnownPlan plan, uint64_t timesCleared);
  size_t count() const;
  void clear() noexcept;
  uint64_t timesCleared() const { return timesCleared_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> timesCleared_ = 0;
  struct Entry {
    std::shared_ptr<const KnownPlan> plan;
    uint64_t lastUse = 0;
  };
  void dropOldest();

  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, Entry> plans_;  // by the hash of their forms
  mutable uint64_t uses_ = 0;
};

// A known plan at certain positions.
struct PlacedPlan {
  std::shared_ptr<const KnownPlan> form;  // found before positions made further choices
  std::shared_ptr<const KnownPlan> plan;  // with these choices
  std::vector<uint64_t> positions;
  std::vector<std::shared_ptr<const CountedDispatch>> dispatches;
};

// What a call of a recorded step found when it was made last. Its op has the same form and the same memory every time.
class CallMemo {
 public:
  // Taken without waiting: a thread that finds it locked does without.
  std::mutex mutex;

  void keep(const OpForm& form, std::shared_ptr<const KnownPlan> plan);

  // Of the form alone; null: none is known.
  const KnownPlan* known() const { return known_.get(); }
  std::span<const BoundMemory> operands() const { return operands_; }

 private:
  std::shared_ptr<const KnownPlan> known_;
  std::vector<BoundMemory> operands_;
};

}  // namespace mnk
