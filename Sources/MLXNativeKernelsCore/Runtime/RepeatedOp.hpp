// Plan caching for repeated ops. Ops have the same form if they differ only in positions and memory, such as the ops of
// a layer for successive tokens. The device plans and checks a form once and caches the plan. An encoder patches the
// plan for the positions of an op. Further ops with the same form and positions, such as those of a model's other
// layers, reuse the patched dispatches with other memory.
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
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

// A list of 64-bit words of limited length, compared as a key.
class Words {
 public:
  // Whether some did not fit, so that the words identify nothing.
  bool isTooLarge() const { return isTooLarge_; }
  std::span<const uint64_t> words() const { return {words_.data(), count_}; }

 protected:
  void addWord(uint64_t word) {
    isTooLarge_ = isTooLarge_ || count_ == words_.size();
    if (!isTooLarge_) words_[count_++] = word;
  }

  std::array<uint64_t, 512> words_;  // without initializers, because most stay unused
  uint32_t count_ = 0;
  bool isTooLarge_ = false;
};

// The key of a cached plan: everything that the plan depends on except positions and memory, as words, and the operands
// that its dispatches bind.
class OpForm : public Words {
 public:
  // No initializers: a form has room for many operands, most of which stay unused.
  struct Operand {
    uint32_t index;  // of a kernel's buffer; has the same meaning in all dispatches of a stage
    uint32_t stage;
    const Tensor* tensor;
    const void* space;
    uint64_t begin, end;
    bool isWritten;
  };

  // Starts the next op of a plan that consists of several ops.
  void beginStage() { addWord(++stage_); }

  // A number, an enum, a struct whose fields the description of the API lists, or several of them.
  template <typename Value>
  void add(const Value& value) {
    if constexpr (requires { numbersOf(value); }) {
      std::apply([&](const auto&... fields) { (add(fields), ...); }, numbersOf(value));
    } else if constexpr (requires { value.has_value(); }) {
      add(value.has_value());
      if (value) add(*value);
    } else if constexpr (requires { value.size(); }) {
      add(value.size());
      for (const auto& one : value) add(one);
    } else if constexpr (std::is_same_v<Value, float>) {
      addWord(std::bit_cast<uint32_t>(value));
    } else if constexpr (std::is_same_v<Value, double>) {
      addWord(std::bit_cast<uint64_t>(value));
    } else {
      addWord(static_cast<uint64_t>(value));
    }
  }
  void add(const HeadsView::Strides& strides);
  void add(std::string_view op);  // the name of one, which is static
  void add(const std::optional<Tensor>& shapeOf);
  // Adds a tensor that dispatches bind at this index. It must outlive the form.
  void bind(uint32_t index, const Tensor& tensor, Access access);
  void bind(uint32_t index, const std::optional<Tensor>& tensor, Access access);
  void bind(uint32_t index, const HeadsView& view, Access access);

  // Whether plans of this form can be cached: the form is not too large, all tensors have memory of this device, and
  // written tensors overlap no other operand except themselves.
  bool isRepeatable(const Device& device) const;

  // The form with only its first `count` words.
  OpForm first(size_t count) const;
  std::span<const Operand> operands() const { return {operands_.data(), operandCount_}; }
  uint64_t hash() const;

 private:
  std::array<Operand, 32> operands_;  // a form with more of them is too large
  uint32_t operandCount_ = 0;
  uint32_t stage_ = 0;
  bool lacksMemory_ = false;
  bool sharesMemory_ = false;  // a written tensor overlaps another operand
};

// Everything other than the form that an op's choices and patches depend on.
class OpPositions : public Words {
 public:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    (addWord(static_cast<uint64_t>(numbers)), ...);
  }
};

// An op as the encoder sees it.
class RepeatedOp {
 public:
  virtual std::string_view name() const = 0;
  // Plans the op and checks all rules. `device` may be null.
  virtual Result<Plan> plan(Device* device) const = 0;
  // Adds the op to the form. Returns false if its plans are not cached. The op may be invalid. The result must not
  // depend on positions, because a recorded step describes a call only once.
  virtual bool describe(OpForm& form) const = 0;
  virtual void addPositions(OpPositions& positions) const = 0;
  // Checks the rules about positions, and adds the choices that depend on positions to the form. All other rules hold.
  virtual Result<void> refine(Device& device, OpForm& form) = 0;
  // Patches the dispatch of an op with the same form for this op, except for the bound memory.
  virtual void patch(size_t index, Dispatch& dispatch) const = 0;
  virtual uint32_t stageOf(size_t /*index*/) const { return 0; }

 protected:
  ~RepeatedOp() = default;
};

// Changes an inline struct of a dispatch.
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
// Replaces an inline list of a dispatch by one of the same length.
template <typename T>
void patchList(Dispatch& dispatch, uint32_t index, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  for (InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index == index && inlined.bytes.size() == values.size() * sizeof(T))
      std::memcpy(inlined.bytes.data(), values.data(), values.size() * sizeof(T));
  }
}

// Unused dispatches of a form, whose memory is reused.
class DispatchPool : public std::enable_shared_from_this<DispatchPool> {
 public:
  // A copy of the model, which may have been patched before. It returns to the pool when its last user releases it.
  std::shared_ptr<CountedDispatch> copyOf(const CountedDispatch& model);

 private:
  void giveBack(CountedDispatch* dispatch) noexcept;

  std::mutex mutex_;
  std::vector<std::unique_ptr<CountedDispatch>> free_;
};

// The plan of a form.
struct CachedPlan {
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
  std::vector<Step> steps;  // empty if the form needs `refine`
  uint64_t scratchBytes = 0;
  uint64_t zeroedBytes = 0;
};

// The plan cache of a device.
class PlanCache {
 public:
  std::shared_ptr<const CachedPlan> find(const OpForm& form) const;
  // Caches the plan, unless the cache was cleared since `timesCleared` was read. Read it before planning.
  void keep(const OpForm& form, CachedPlan plan, uint64_t timesCleared);
  size_t count() const;
  void clear() noexcept;
  uint64_t timesCleared() const { return timesCleared_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> timesCleared_ = 0;
  struct Entry {
    std::shared_ptr<const CachedPlan> plan;
    uint64_t lastUse = 0;
  };
  void dropOldest();

  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, Entry> plans_;  // by the hash of their forms
  mutable uint64_t uses_ = 0;
};

// A cached plan, patched for specific positions.
struct PatchedPlan {
  std::shared_ptr<const CachedPlan> form;  // of the form without the choices of refine
  std::shared_ptr<const CachedPlan> plan;  // with these choices
  std::vector<uint64_t> positions;
  std::vector<std::shared_ptr<const CountedDispatch>> dispatches;
};

// The plan that a call of a recorded step used in its last run. The op of the call has the same form and memory in
// every run.
class CallMemo {
 public:
  // Acquired with try_lock: if another thread holds it, the memo is not used.
  std::mutex mutex;

  void keep(const OpForm& form, std::shared_ptr<const CachedPlan> plan);

  // The plan of the form without refined choices, or null.
  const CachedPlan* known() const { return known_.get(); }
  std::span<const BoundMemory> operands() const { return operands_; }

 private:
  std::shared_ptr<const CachedPlan> known_;
  std::vector<BoundMemory> operands_;
};

}  // namespace mnk
