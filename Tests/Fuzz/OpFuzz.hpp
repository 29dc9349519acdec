// Fuzzes an op with cases of its own tests. A valid case must succeed and give what the tests' reference says. A
// mutated one does so too, or fails with a complete error. Memory outside of what it declares to write, and all memory
// where it fails, stays as it was.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "OpMutator.hpp"
#include "Target.hpp"

namespace mnk::fuzz {

// One call of an op in the C API, with operands in the arena.
class FuzzedCall {
 public:
  static constexpr uint64_t kUnknown = UINT64_MAX;

  virtual ~FuzzedCall() = default;
  virtual std::string text() const = 0;
  virtual bool isValid() const = 0;  // without a mutation
  virtual bool mustBeRefused() const = 0;
  virtual mnk_plan* makePlan(const mnk_device* device, mnk_error_out error) const = 0;
  virtual bool encode(mnk_encoder* encoder, mnk_error_out error) const = 0;
  // Fills what it reads. Numbers that it must not read are NaN, if it is the only one to read them.
  virtual void fill(Arena& arena, Seeded& random, bool isAlone) = 0;
  virtual std::vector<Tensor> outputs() const = 0;
  // Checks its outputs, and returns how many bytes it wrote, or kUnknown. What it reads may be any bits, or numbers
  // that were made for it.
  virtual uint64_t expect(const Arena& arena, bool areAnyBits) const = 0;
};

// `Fuzz` has the type Op, a constant kTakesAnyBits, which says whether results are known for any bits, and the
// functions
//   static Op make(Arena& arena, Seeded& random), which makes a valid op and may throw DoesNotFit,
//   static void fill(const Op& op, Arena& arena, Seeded& random, bool isAlone),
//   static std::vector<Tensor> outputs(const Op& op) and
//   static uint64_t expect(const Op& op, const Arena& arena).
template <typename Fuzz>
class FuzzedCallOf final : public FuzzedCall {
 public:
  using Op = typename Fuzz::Op;
  enum class Mutation { none, ofOp, ofStruct };

  FuzzedCallOf(Arena& arena, Seeded& random, Op op, Mutation mutation)
      : op_(std::move(op)), mutation_(mutation), given_(mutated(arena, random)) {
    text_ = fmt::format("{} {}", Op::name, isNull_ ? "NULL" : OpText::of(op_, arena));
    if (mutation_ != Mutation::ofStruct) return;
    text_ += isNull_ ? "" : " with a changed field in C";
    if (!isNull_) mutateStruct(given_, random);
  }

  std::string text() const override { return text_; }
  bool isValid() const override { return mutation_ == Mutation::none; }
  bool mustBeRefused() const override { return isNull_; }
  mnk_plan* makePlan(const mnk_device* device, mnk_error_out error) const override {
    return test::makePlan(test::cFunctionsOf<Op>().first, descriptor(), device, error);
  }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return test::cFunctionsOf<Op>().second(encoder, descriptor(), error);
  }
  void fill(Arena& arena, Seeded& random, bool isAlone) override {
    if (mutation_ == Mutation::ofStruct) return;  // what it means is not known
    Fuzz::fill(op_, arena, random, isAlone);
  }
  std::vector<Tensor> outputs() const override {
    if (mutation_ != Mutation::ofStruct) return Fuzz::outputs(op_);
    std::vector<Tensor> all;
    Op op = op_;
    for (const Tensor* tensor : tensorsOf(op)) all.push_back(*tensor);
    return all;
  }
  uint64_t expect(const Arena& arena, bool areAnyBits) const override {
    if (mutation_ == Mutation::ofStruct || (areAnyBits && !Fuzz::kTakesAnyBits)) return kUnknown;
    return Fuzz::kTakesAnyBits || !areMixed(inputs()) ? Fuzz::expect(op_, arena) : kUnknown;
  }

 private:
  auto mutated(Arena& arena, Seeded& random) {
    if (mutation_ == Mutation::ofOp) {
      for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) {
        OpMutator(arena, random).mutate(op_);
      }
    }
    makeExpressibleInC(op_);
    isNull_ = mutation_ == Mutation::ofStruct && coin(random, 1, 40);
    return structs_.of(op_);
  }
  std::vector<Tensor> inputs() const {
    Op op = op_;
    const std::vector<Tensor> written = Fuzz::outputs(op);
    std::vector<Tensor> all;
    for (const Tensor* tensor : tensorsOf(op)) {
      const bool isWritten =
          std::any_of(written.begin(), written.end(), [&](const Tensor& one) { return areSame(one, *tensor); });
      if (!isWritten) all.push_back(*tensor);
    }
    return all;
  }
  auto descriptor() const { return isNull_ ? nullptr : &given_; }

  Op op_;
  Mutation mutation_;
  bool isNull_ = false;
  test::CStructs structs_;
  decltype(std::declval<test::CStructs&>().of(std::declval<const Op&>())) given_;
  std::string text_;
};

std::unique_ptr<Case> makeOpCase(Seeded& random, std::unique_ptr<FuzzedCall> earlier, std::unique_ptr<FuzzedCall> call);

template <typename Fuzz>
std::unique_ptr<Case> makeOpCase(Arena& arena, Seeded& random) {
  using Call = FuzzedCallOf<Fuzz>;
  using Mutation = typename Call::Mutation;
  for (;;) {
    try {
      arena.restart();
      const auto op = Fuzz::make(arena, random);
      const auto mutation =
          oneOf(random, {Mutation::none, Mutation::none, Mutation::ofOp, Mutation::ofOp, Mutation::ofOp});
      const bool isOfStruct = mutation == Mutation::ofOp && coin(random, 1, 8);
      std::unique_ptr<FuzzedCall> earlier;
      if (coin(random, 1, 5)) earlier = std::make_unique<Call>(arena, random, op, Mutation::none);
      auto call = std::make_unique<Call>(arena, random, op, isOfStruct ? Mutation::ofStruct : mutation);
      return makeOpCase(random, std::move(earlier), std::move(call));
    } catch (const Arena::DoesNotFit&) {
    }
  }
}

// As many vectors elsewhere: axes nested in any order, with gaps between their entries. Where only reads see them, a
// vector may be there more than once.
HeadsView scattered(const HeadsView& view, Arena& arena, Seeded& random, bool mayRepeat);

// Places operands of a case in the arena.
inline auto placing(Arena& arena, Seeded& random) {
  return [&](std::string_view, DType dtype, const Shape& shape, uint64_t) { return arena.place(dtype, shape, random); };
}

// What errors of every op's calls say, and the rules of an op that a handle with memory can break.
std::vector<std::string_view> refusalsOf(std::initializer_list<std::string_view> ofCAPI);
template <typename... Rules>
std::vector<std::string_view> refusalsOf(std::initializer_list<std::string_view> ofCAPI, const Rules&... rules) {
  std::vector<std::string_view> all = refusalsOf(ofCAPI);
  const auto add = [&](std::string_view what) {
    // The C API refuses numbers that no enum names before an op exists.
    if (!what.ends_with("no memory") && !what.ends_with("is not known")) all.push_back(what);
  };
  (..., [&] {
    for (const auto& rule : rules) add(rule.what);
  }());
  return all;
}

}  // namespace mnk::fuzz
