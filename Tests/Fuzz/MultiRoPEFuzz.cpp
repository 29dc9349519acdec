// Cases of MultiRoPE, drawn at random.
#include "OpFuzz.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::fuzz {

namespace {

struct MultiRoPEFuzz {
  using Op = MultiRoPE;
  static constexpr bool kTakesAnyBits = true;

  static Op make(Arena& arena, Seeded& random) {
    const test::MultiRoPECase rope = test::rope::drawnCase(random);
    Op op = test::makeOp(rope, placing(arena, random));
    // Views of what is only read may meet themselves; those of results may not.
    if (rope.placing != test::RopePlacing::apart) return op;
    for (HeadsView* view : {&op.queries, op.keys ? &*op.keys : nullptr}) {
      if (view && coin(random, 1, 3)) *view = scattered(*view, arena, random, true);
    }
    for (auto* view : {&op.rotatedQueries, &op.rotatedKeys}) {
      if (*view && coin(random, 1, 3)) *view = scattered(**view, arena, random, false);
    }
    return op;
  }

  static const Tensor* numbersOf(const Op& op, bool arePositions) {
    if (arePositions) return std::get_if<Tensor>(&op.positions.source);
    return op.offsets ? std::get_if<Tensor>(&*op.offsets) : nullptr;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    for (const HeadsView* view : {&op.queries, op.keys ? &*op.keys : &op.queries}) {
      const Tensor& tensor = view->tensor;
      arena.write(tensor, test::ropeElements(random, tensor.dtype(), tensor.shape().elementCount()));
    }
    for (const bool arePositions : {true, false}) {
      const Tensor* tensor = numbersOf(op, arePositions);
      if (!tensor) continue;
      std::vector<uint32_t> numbers(tensor->shape().elementCount());
      for (uint32_t& number : numbers) number = static_cast<uint32_t>(test::rope::drawPosition(random));
      arena.write(*tensor, std::as_bytes(std::span(numbers)));
    }
  }

  // What is rotated, and where it goes.
  static std::vector<std::pair<const HeadsView*, const HeadsView*>> rotatedOf(const Op& op) {
    std::vector<std::pair<const HeadsView*, const HeadsView*>> all;
    all.emplace_back(&op.queries, op.rotatedQueries ? &*op.rotatedQueries : &op.queries);
    if (op.keys) all.emplace_back(&*op.keys, op.rotatedKeys ? &*op.rotatedKeys : &*op.keys);
    return all;
  }

  // Vectors of results, each as a tensor: other vectors may lie between them.
  static std::vector<Tensor> outputs(const Op& op) {
    std::vector<Tensor> all;
    for (const auto& [from, into] : rotatedOf(op)) {
      const HeadsView::Strides s = into->resolved();
      const uint64_t bytes = byteSize(into->tensor.dtype());
      for (uint64_t vector = 0; vector < s.totalTokens() * s.heads; ++vector) {
        const uint64_t token = vector / s.heads;
        const uint64_t element = s.offset + token / s.tokens * s.sequenceStride + token % s.tokens * s.tokenStride +
                                 vector % s.heads * s.headStride;
        all.push_back(*Tensor::over(into->tensor.buffer(), into->tensor.dtype(), *Shape::make({s.headDim}),
                                    into->tensor.byteOffset() + element * bytes));
      }
    }
    return all;
  }

  static uint64_t expect(const Op& op, const Arena& arena) {
    if (op.queries.resolved().totalTokens() == 0) return 0;
    test::expectRotated(op, arena.memory());
    return FuzzedCall::kUnknown;
  }
};

}  // namespace

Target multiRoPETarget() {
  auto refusals = refusalsOf({"op is missing", "queries.tensor is missing", "the number is not a case of mnk_kv_layout",
                              "positions.list is missing", "there are too many positions", "positions.cache is missing",
                              "positions.sequences is missing", "there are several values for positions",
                              "there are several values for offsets", "offsets.list is missing",
                              "there are too many offsets", "the number is not a case of mnk_rotary_embedding_layout",
                              "the number is not a case of mnk_rotary_embedding_pairing",
                              "the number is not a case of mnk_rotary_embedding_other_axis",
                              "frequency_factors is missing", "there are too many frequency factors"},
                             multiRoPERules(), rotaryRules());
  // The C API refuses these before an op exists.
  for (const auto what : {"the list of positions is too long", "the list of offsets is too long"}) {
    std::erase(refusals, what);
  }
  return {.name = "MultiRoPE", .share = 180, .refusals = std::move(refusals), .make = makeOpCase<MultiRoPEFuzz>};
}

}  // namespace mnk::fuzz
