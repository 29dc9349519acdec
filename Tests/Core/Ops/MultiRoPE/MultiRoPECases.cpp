#include <algorithm>
#include <iterator>

#include "Harness/Check.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::test::rope {

namespace {

using Case = MultiRoPECase;
using enum RopeMemory;
using Placing = RopePlacing;
using Numbers = RopeNumbers;
using Layout = RotaryLayout;

constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16};
// Those that hold sequences, and those that hold any number of tokens.
constexpr RopeMemory kSequenceMemories[] = {tokenMajor, headMajor, tokenMajorGaps, headMajorGaps, sequencesInside};
constexpr RopeMemory kMemories[] = {tokenMajor, headMajor, columns, tokenMajorGaps, headMajorGaps};
// An alignment that vectors can use, and one that they cannot.
constexpr uint64_t kGaps[] = {4, 3};

}  // namespace

std::vector<Case> dtypeCases() {
  std::vector<Case> cases;
  const auto add = [&](Case rope) {
    rope.keyHeads = cases.size() % 2;
    rope.rotary.ropeDim = cases.size() % 4 < 2 ? 16 : 8;
    rope.name =
        fmt::format("{} {} to {} {} {}, {} key heads, {} of 16 turn", text(rope.fromMemory), name(rope.from),
                    name(rope.into), text(rope.intoMemory), text(rope.placing), rope.keyHeads, *rope.rotary.ropeDim);
    cases.push_back(std::move(rope));
  };
  const auto twice = [&](const Case& rope) { add(rope), add(rope); };
  for (DType from : kDTypes) {
    for (RopeMemory memory : kMemories) {
      for (uint64_t gap : kGaps) {
        const Case base{.from = from, .into = from, .fromMemory = memory, .fromGap = gap, .intoGap = gap};
        for (Placing placing : {Placing::inPlace, Placing::inPlaceByName, Placing::beside}) {
          Case rope = base;
          rope.placing = placing;
          if (placing != Placing::beside || memory == columns) twice(rope), twice(rope);
        }
        for (DType into : kDTypes) {
          for (RopeMemory target : kMemories) {
            Case rope = base;
            rope.into = into;
            rope.placing = Placing::apart;
            rope.intoMemory = target;
            add(rope);
          }
        }
      }
    }
  }
  for (Placing placing : {Placing::keysStay, Placing::queriesStay}) {
    for (DType dtype : kDTypes) {
      for (uint64_t ropeDim : {16, 8, 6}) {
        Case rope{.name = fmt::format("{} {}, {} of 16 turn", name(dtype), text(placing), ropeDim),
                  .from = dtype,
                  .into = dtype,
                  .placing = placing,
                  .intoMemory = headMajor};
        rope.rotary.ropeDim = ropeDim;
        cases.push_back(rope);
      }
    }
  }
  return cases;
}

std::vector<Case> positionCases() {
  std::vector<Case> cases;
  constexpr int64_t kTop = int64_t{1} << 31;
  // Layouts by how many axes they use.
  const std::pair<uint64_t, RotaryEmbedding> forms[] = {
      {1, {.layout = Layout::mrope, .sections = {3, 2, 2, 1}}},
      {2, {.layout = Layout::mrope, .sections = {3, 5}}},
      {3, {.layout = Layout::imrope, .sections = {3, 3, 2}}},
      {4, {.layout = Layout::mrope, .sections = {3, 2, 2, 1}}},
      {2, {.layout = Layout::vision, .sections = {4, 4}}},
      {3, {.layout = Layout::halfSplit}},
  };
  for (const auto& [axes, rotary] : forms) {
    for (Numbers positions : {Numbers::first, Numbers::list, Numbers::i32, Numbers::u32}) {
      if (positions == Numbers::first && axes != 1) continue;
      for (Numbers offsets : {Numbers::none, Numbers::list, Numbers::i32, Numbers::u32}) {
        for (uint64_t sequences : {0, 3}) {
          for (int64_t first : {int64_t{5}, int64_t{-100}, kTop - 400, -kTop, kTop + 1000}) {
            if (positions == Numbers::u32 ? first < 0 : first > kTop) continue;
            if (offsets == Numbers::list && first == -kTop) continue;  // refused: positions known now stay in range
            cases.push_back(
                {.name = fmt::format("{} sequences at {} on {} axes from {}, offsets from {}, {}", sequences, first,
                                     axes, text(positions), text(offsets), text(rotary.layout)),
                 .sequences = sequences,
                 .tokens = sequences == 0 ? 5u : 2u,
                 .heads = 1,
                 .rotary = rotary,
                 .positions = positions,
                 .axes = axes,
                 .firstPosition = first,
                 .offsets = offsets,
                 .firstOffset = offsets == Numbers::u32 ? 4 : -6});
          }
        }
      }
    }
  }
  const auto far = [&](std::string name, Numbers numbers, int64_t position, int64_t offset) {
    cases.push_back({.name = std::move(name),
                     .positions = numbers,
                     .firstPosition = position,
                     .spread = 1,
                     .offsets = numbers,
                     .firstOffset = offset});
  };
  far("as far backwards as i32 reaches twice: 2^32, which counts as 0", Numbers::i32, -kTop, -kTop);
  far("as far as u32 reaches twice: modulo 2^32", Numbers::u32, 2 * kTop - 1, 2 * kTop - 1);
  far("just below 2^32", Numbers::u32, 2 * kTop - 2, 1);
  far("a u32 offset that i32 does not hold", Numbers::u32, 3, kTop + 5);
  far("from u32 back to where i32 would be negative", Numbers::u32, kTop, 0);
  cases.push_back({.name = "the last positions that can be counted", .tokens = 2, .firstPosition = kTop - 2});
  cases.push_back({.name = "as many positions as a list holds",
                   .tokens = 256,
                   .heads = 1,
                   .keyHeads = 0,
                   .headDim = 8,
                   .rotary = {.layout = Layout::mrope, .sections = {1, 1, 1, 1}},
                   .positions = Numbers::list,
                   .axes = 4});
  return cases;
}

std::vector<Case> memoryCases() {
  std::vector<Case> cases;
  // Sequences, in and out of every memory.
  for (RopeMemory from : kSequenceMemories) {
    for (RopeMemory into : kSequenceMemories) {
      for (uint64_t gap : kGaps) {
        Case rope{.name = fmt::format("2 sequences from {} to {}, gaps of {} and 4", text(from), text(into), gap),
                  .placing = from == into && gap == 3 ? Placing::inPlace : Placing::apart,
                  .fromMemory = from,
                  .intoMemory = into,
                  .fromGap = gap,
                  .intoGap = 4,
                  .sequences = 2,
                  .positions = Numbers::list,
                  .offsets = Numbers::list};
        rope.rotary.ropeDim = gap == 4 ? 16 : 8;
        cases.push_back(rope);
      }
    }
  }
  // Addresses that vectors cannot use, on one side and on both.
  for (DType from : kDTypes) {
    for (DType into : kDTypes) {
      for (uint64_t shift = 1; shift < 25; ++shift) {
        cases.push_back(
            {.name = fmt::format("{} shifted by {} to {} shifted by {}", name(from), shift / 5, name(into), shift % 5),
             .from = from,
             .into = into,
             .placing = Placing::apart,
             .fromShift = shift / 5,
             .intoShift = shift % 5,
             .tokens = 2,
             .headDim = 8});
      }
    }
  }
  for (uint64_t gap = 0; gap <= 8; ++gap) {
    for (RopeMemory memory : {columns, tokenMajorGaps, headMajorGaps, sequencesInside}) {
      cases.push_back({.name = fmt::format("{} with gaps of {}, in place", text(memory), gap),
                       .fromMemory = memory,
                       .fromGap = gap,
                       .headDim = 8});
    }
  }
  for (uint64_t heads : {1, 4}) {
    cases.push_back({.name = fmt::format("{} heads without a token axis", heads),
                     .fromMemory = oneToken,
                     .tokens = 1,
                     .heads = heads});
  }
  return cases;
}

std::vector<Case> headCases() {
  std::vector<Case> cases;
  for (uint64_t group : {1, 3, 5, 8, 16}) {
    for (uint64_t keyHeads : {1, 2, 3}) {
      // A thread takes one head of a few tokens, and several heads of many.
      for (uint64_t tokens : {2, 63, 64, 65}) {
        if (tokens > 2 && keyHeads * group > 10) continue;
        cases.push_back({.name = fmt::format("{} tokens, {} query heads for each of {}", tokens, group, keyHeads),
                         .placing = group % 2 == 0 ? Placing::inPlace : Placing::apart,
                         .tokens = tokens,
                         .heads = group * keyHeads,
                         .keyHeads = keyHeads,
                         .headDim = tokens == 65 ? 4u : 8u});
      }
    }
  }
  // The last thread of a token may have fewer heads than the others.
  for (uint64_t tokens : {127, 128, 200, 255, 256, 300}) {
    cases.push_back({.name = fmt::format("{} tokens, 9 query heads for 2", tokens),
                     .placing = tokens % 2 == 0 ? Placing::inPlace : Placing::apart,
                     .tokens = tokens,
                     .heads = 9,
                     .keyHeads = 2,
                     .headDim = tokens % 3 == 0 ? 8u : 4u});
  }
  for (uint64_t tokens : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 64, 130}) {
    for (uint64_t sequences : {0, 1, 2}) {
      for (uint64_t keyHeads : {0, 1}) {
        cases.push_back({.name = fmt::format("{} x {} tokens, one head, {} key heads", sequences, tokens, keyHeads),
                         .fromMemory = keyHeads ? tokenMajor : headMajor,
                         .sequences = sequences,
                         .tokens = tokens,
                         .heads = 1,
                         .keyHeads = keyHeads,
                         .headDim = 8});
      }
    }
  }
  for (Layout layout : kLayouts) {
    for (uint64_t shift : {0, 1}) {
      Case rope = rotated(fmt::format("many tokens and heads, {}, shifted by {}", text(layout), shift), 16,
                          rotaryOf(layout, 8));
      rope.fromShift = shift;
      rope.sequences = 2;
      rope.tokens = 33;
      rope.heads = 6;
      rope.keyHeads = 5;
      cases.push_back(rope);
    }
  }
  return cases;
}

std::vector<Case> crossedCases() {
  std::vector<Case> cases;
  // What is not crossed is drawn by lot, the same way every time.
  uint64_t state = 1;
  const auto draw = [&](uint64_t end) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % end;
  };
  for (Layout layout : kLayouts) {
    for (RotaryPairing pairing : kPairings) {
      for (RopeMemory memory : kSequenceMemories) {
        for (Numbers positions : {Numbers::first, Numbers::list, Numbers::i32, Numbers::u32}) {
          for (Placing placing : {Placing::inPlace, Placing::apart}) {
            const DType dtype = kDTypes[draw(3)];
            const uint64_t headDim = 8 + 4 * draw(3);
            const uint64_t ropeDim = layout == Layout::vision || draw(2) ? headDim : std::max<uint64_t>(4, headDim - 8);
            Case rope{.from = dtype,
                      .into = placing == Placing::inPlace ? dtype : kDTypes[draw(3)],
                      .placing = placing,
                      .fromMemory = memory,
                      .intoMemory = kSequenceMemories[draw(std::size(kSequenceMemories))],
                      .fromGap = draw(2) ? 4 : draw(8),
                      .intoGap = draw(2) ? 4 : draw(8),
                      .sequences = 1 + draw(2),
                      .tokens = 1 + draw(3),
                      .heads = 1 + draw(4),
                      .keyHeads = draw(3),
                      .headDim = headDim,
                      .rotary = rotaryOf(layout, ropeDim / 2),
                      .positions = positions,
                      .axes = positions == Numbers::first || draw(6) == 0 ? 1u : 4u,
                      .offsets = draw(2) ? Numbers::none : static_cast<Numbers>(2 + draw(3))};
            rope.rotary.ropeDim = ropeDim;
            rope.rotary.pairing = pairing;
            rope.rotary.isInverse = draw(4) == 0;
            rope.rotary.otherAxis = kOtherAxes[draw(2)];
            rope.name = fmt::format("{}: {} {} {}, {}, {} of {} turn, positions from {}", cases.size(), text(layout),
                                    name(dtype), text(memory), text(placing), ropeDim, headDim, text(positions));
            cases.push_back(rope);
          }
        }
      }
    }
  }
  return cases;
}

std::vector<Case> allCases() {
  std::vector<Case> all;
  for (auto make : {dtypeCases, extentCases, partialCases, sectionCases, positionCases, memoryCases, scalingCases,
                    headCases, crossedCases}) {
    const auto cases = make();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace mnk::test::rope
