#include "Ops/MultiRoPE/MultiRoPECase.hpp"

#include <algorithm>
#include <optional>

#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

uint64_t sequencesOf(const MultiRoPECase& rope) {
  return std::max<uint64_t>(rope.sequences, 1);
}

// Strides of one operand, its axes from the outermost to the innermost, each followed by a gap.
HeadsView::Strides gapped(const MultiRoPECase& rope, RopeMemory memory, uint64_t heads, uint64_t gap) {
  HeadsView::Strides strides{
      .sequences = sequencesOf(rope), .tokens = rope.tokens, .heads = heads, .headDim = rope.headDim, .offset = gap};
  struct Axis {
    uint64_t count;
    uint64_t* stride;
  };
  const Axis bySequence{strides.sequences, &strides.sequenceStride};
  const Axis byToken{strides.tokens, &strides.tokenStride};
  const Axis byHead{strides.heads, &strides.headStride};
  std::vector<Axis> inward{bySequence, byToken, byHead};
  if (memory == RopeMemory::headMajorGaps) inward = {bySequence, byHead, byToken};
  if (memory == RopeMemory::sequencesInside) inward = {byToken, bySequence, byHead};
  uint64_t length = rope.headDim;
  for (auto axis = inward.rbegin(); axis != inward.rend(); ++axis) {
    *axis->stride = length + gap;
    length = axis->count * *axis->stride;
  }
  return strides;
}

uint64_t lengthOf(const HeadsView::Strides& strides) {
  return strides.offset + std::max({strides.sequences * strides.sequenceStride, strides.tokens * strides.tokenStride,
                                    strides.heads * strides.headStride});
}

Shape rotaryShape(const MultiRoPECase& rope, RopeMemory memory, uint64_t heads) {
  if (memory == RopeMemory::oneToken) return REQUIRE(Shape::make({heads, rope.headDim}));
  const bool isHeadMajor = memory == RopeMemory::headMajor;
  const uint64_t outer = isHeadMajor ? heads : rope.tokens;
  const uint64_t inner = isHeadMajor ? rope.tokens : heads;
  if (rope.sequences == 0) return REQUIRE(Shape::make({outer, inner, rope.headDim}));
  return REQUIRE(Shape::make({rope.sequences, outer, inner, rope.headDim}));
}

struct Operands {
  HeadsView queries;
  std::optional<HeadsView> keys;
};

// Half of a case: what is rotated, or where it goes.
struct Side {
  RopeMemory memory;
  DType dtype;
  uint64_t gap;
  uint64_t shift;
  std::string_view queriesName;
  std::string_view keysName;

  Tensor make(std::string_view name, const Shape& shape, const MakeNamedTensor& makeTensor) const {
    return makeTensor(name, dtype, shape, shift * byteSize(dtype));
  }
};

HeadsView viewOn(const MultiRoPECase& rope, const Side& side, std::string_view name, uint64_t heads,
                 const MakeNamedTensor& makeTensor) {
  if (side.memory == RopeMemory::tokenMajor || side.memory == RopeMemory::headMajor ||
      side.memory == RopeMemory::oneToken) {
    const KVLayout layout = side.memory == RopeMemory::headMajor ? KVLayout::headMajor : KVLayout::tokenMajor;
    return {side.make(name, rotaryShape(rope, side.memory, heads), makeTensor), layout};
  }
  const auto strides = gapped(rope, side.memory, heads, side.gap);
  return {side.make(name, REQUIRE(Shape::make({lengthOf(strides)})), makeTensor), strides};
}

// gap | queries | gap | keys | gap, as often as there are copies.
uint64_t copyWidth(const MultiRoPECase& rope, uint64_t gap) {
  return 3 * gap + (rope.heads + rope.keyHeads) * rope.headDim;
}
Operands columnsOf(const MultiRoPECase& rope, const Tensor& tensor, uint64_t gap, uint64_t copy) {
  const uint64_t first = copy * copyWidth(rope, gap) + gap;
  Operands operands{.queries = REQUIRE(HeadsView::columns(tensor, first, rope.heads, rope.headDim)), .keys = {}};
  const uint64_t second = first + rope.heads * rope.headDim + gap;
  if (rope.keyHeads) operands.keys = REQUIRE(HeadsView::columns(tensor, second, rope.keyHeads, rope.headDim));
  return operands;
}

Operands operandsOn(const MultiRoPECase& rope, const Side& side, const MakeNamedTensor& makeTensor) {
  if (side.memory == RopeMemory::columns) {
    const uint64_t copies = rope.placing == RopePlacing::beside ? 2 : 1;
    const Shape shape = REQUIRE(Shape::make({rope.tokens, copies * copyWidth(rope, side.gap)}));
    return columnsOf(rope, side.make(side.queriesName, shape, makeTensor), side.gap, 0);
  }
  Operands operands{.queries = viewOn(rope, side, side.queriesName, rope.heads, makeTensor), .keys = {}};
  if (rope.keyHeads) operands.keys = viewOn(rope, side, side.keysName, rope.keyHeads, makeTensor);
  return operands;
}

// The results of a case, in the tensors of its sources or in others.
Operands resultsOf(const MultiRoPECase& rope, const Operands& from, const MakeNamedTensor& makeTensor) {
  const Side side{rope.intoMemory, rope.into, rope.intoGap, rope.intoShift, "rotated queries", "rotated keys"};
  switch (rope.placing) {
    case RopePlacing::inPlace:
    case RopePlacing::inPlaceByName:
      return from;
    case RopePlacing::apart:
      return operandsOn(rope, side, makeTensor);
    case RopePlacing::beside:
      return columnsOf(rope, from.queries.tensor, rope.fromGap, 1);
    case RopePlacing::keysStay:
      return {viewOn(rope, side, side.queriesName, rope.heads, makeTensor), from.keys};
    case RopePlacing::queriesStay:
      return {from.queries, viewOn(rope, side, side.keysName, rope.keyHeads, makeTensor)};
  }
  return from;
}

std::vector<int32_t> narrowed(const std::vector<int64_t>& numbers) {
  std::vector<int32_t> list;
  for (int64_t number : numbers) list.push_back(static_cast<int32_t>(number));
  return list;
}

DType dtypeOf(RopeNumbers numbers) {
  return numbers == RopeNumbers::u32 ? DType::u32 : DType::i32;
}

}  // namespace

std::vector<int64_t> positionsOf(const MultiRoPECase& rope) {
  std::vector<int64_t> numbers;
  // A list for a layout of one axis must be the same on all.
  const bool isText = rope.positions == RopeNumbers::list && !rope::isSectioned(rope.rotary.layout);
  for (uint64_t axis = 0; axis < rope.axes; ++axis) {
    for (uint64_t token = 0; token < rope.totalTokens(); ++token) {
      const uint64_t step = (37 * token + (isText ? 0 : 101 * axis + 11 * token * axis)) % rope.spread;
      numbers.push_back(rope.firstPosition + static_cast<int64_t>(step));
    }
  }
  return numbers;
}

std::vector<int64_t> offsetsOf(const MultiRoPECase& rope) {
  std::vector<int64_t> numbers;
  for (uint64_t sequence = 0; sequence < sequencesOf(rope); ++sequence) {
    numbers.push_back(rope.firstOffset + static_cast<int64_t>(sequence) * rope.offsetStep);
  }
  return numbers;
}

MultiRoPE makeOp(const MultiRoPECase& rope, const MakeNamedTensor& makeTensor) {
  MultiRoPE op;
  op.rotary = rope.rotary;
  const Operands from =
      operandsOn(rope, {rope.fromMemory, rope.from, rope.fromGap, rope.fromShift, "queries", "keys"}, makeTensor);
  op.queries = from.queries;
  op.keys = from.keys;
  if (rope.placing != RopePlacing::inPlace) {
    const Operands into = resultsOf(rope, from, makeTensor);
    if (rope.placing != RopePlacing::queriesStay) op.rotatedQueries = into.queries;
    if (rope.placing != RopePlacing::keysStay) op.rotatedKeys = into.keys;
  }

  if (rope.positions == RopeNumbers::first) {
    op.positions = rope.firstPosition;
  } else if (rope.positions == RopeNumbers::list) {
    op.positions = RotaryPositions(narrowed(positionsOf(rope)), static_cast<uint32_t>(rope.axes));
  } else {
    // One axis may be left out of the shape, and sequences may have one of their own.
    const bool isFlat = rope.axes == 1 && rope.positions == RopeNumbers::u32;
    const bool isDeep = rope.sequences != 0 && rope.positions == RopeNumbers::i32;
    const Shape shape = REQUIRE(isFlat   ? Shape::make({rope.totalTokens()})
                                : isDeep ? Shape::make({rope.axes, rope.sequences, rope.tokens})
                                         : Shape::make({rope.axes, rope.totalTokens()}));
    op.positions = makeTensor("positions", dtypeOf(rope.positions), shape, 0);
  }
  if (rope.offsets == RopeNumbers::list) {
    op.offsets = narrowed(offsetsOf(rope));
  } else if (rope.offsets != RopeNumbers::none) {
    op.offsets = makeTensor("offsets", dtypeOf(rope.offsets), REQUIRE(Shape::make({sequencesOf(rope)})), 0);
  }
  return op;
}

namespace rope {

bool isSectioned(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::mrope || layout == RotaryEmbedding::Layout::imrope ||
         layout == RotaryEmbedding::Layout::vision;
}

RotaryEmbedding rotaryOf(RotaryEmbedding::Layout layout, uint64_t pairs) {
  RotaryEmbedding rotary{.layout = layout};
  const auto half = static_cast<uint32_t>(pairs / 2), rest = static_cast<uint32_t>(pairs) - half;
  if (layout == RotaryEmbedding::Layout::vision) rotary.sections = {rest + half / 2, half - half / 2};
  if (layout == RotaryEmbedding::Layout::mrope)
    rotary.sections = {rest - rest / 3, rest / 3, half - half / 4, half / 4};
  if (layout == RotaryEmbedding::Layout::imrope) rotary.sections = {half, rest - rest / 3, rest / 3};
  return rotary;
}

MultiRoPECase rotated(std::string name, uint64_t headDim, RotaryEmbedding rotary) {
  MultiRoPECase rope{.name = std::move(name), .headDim = headDim, .rotary = std::move(rotary)};
  if (isSectioned(rope.rotary.layout)) {
    rope.positions = RopeNumbers::list;
    rope.axes = 4;
  }
  return rope;
}

}  // namespace rope

}  // namespace mnk::test
