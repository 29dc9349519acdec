#include "Harness/Check.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheWriteCase;
using Form = Case::Fused::Form;

constexpr KVLayout kLayouts[] = {KVLayout::headMajor, KVLayout::tokenMajor};

std::string_view text(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}
std::string_view text(Form form) {
  return form == Form::columns ? "columns" : (form == Form::shared ? "shared columns" : "keys and values apart");
}

// Every run of the tokens of three sequences, and every phase of a ring of them.
void addSequences(std::vector<Case>& cases) {
  for (KVLayout layout : kLayouts) {
    for (bool isLayoutOfViews : {false, true}) {
      for (bool isRing : {false, true}) {
        for (uint64_t offset = 0; offset <= 6; ++offset) {
          for (uint64_t tokens = 0; tokens <= (isRing ? 6 : 6 - offset); ++tokens) {
            cases.push_back(
                {.name = fmt::format("{} of 3 x 2 {} source tokens from {}{}{}", tokens, text(layout), offset,
                                     isRing ? " of a ring" : "", isLayoutOfViews ? ", as the views say" : ""),
                 .source = DType::f16,
                 .cache = tokens % 2 == 0 ? DType::f16 : DType::f32,
                 .sourceLayout = layout,
                 .headDim = tokens % 3 == 0 ? 3u : 4u,
                 .valueHeadDim = 8,
                 .sourceTokens = 2,
                 .sourceSequences = 3,
                 .isLayoutOfViews = isLayoutOfViews,
                 .isSourceRing = isRing,
                 .sourceOffset = offset,
                 .tokens = tokens,
                 .position = 3});
          }
        }
      }
    }
    cases.push_back({.name = fmt::format("one {} sequence with an axis for it", text(layout)),
                     .sourceLayout = layout,
                     .wrap = KVWrap::linear,
                     .sourceTokens = 3,
                     .sourceSequences = 1});
    cases.push_back({.name = fmt::format("{} sequences longer than a ring with pinned slots", text(layout)),
                     .sourceLayout = layout,
                     .pinned = 2,
                     .capacity = 5,
                     .sourceTokens = 3,
                     .sourceSequences = 5,
                     .position = 1});
    cases.push_back({.name = fmt::format("one token of each of 5 {} sequences", text(layout)),
                     .source = DType::f16,
                     .cache = DType::f16,
                     .sourceLayout = layout,
                     .headDim = 8,
                     .valueHeadDim = 8,
                     .sequences = 5,
                     .sourceSequences = 5,
                     .rows = {{{3, 1}, {0, 2}, {4, 3}, {1, 0}, {2, 3}}}});
    for (int form = 0; form < 4; ++form) {
      cases.push_back({.name = fmt::format("rows of {} sequences, sequences from a {}, positions from a {}",
                                           text(layout), form & 1 ? "tensor" : "list", form & 2 ? "tensor" : "list"),
                       .sourceLayout = layout,
                       .sequences = 3,
                       .sourceTokens = 2,
                       .sourceSequences = 3,
                       .rows = {{{0, 1}, {0, 2}, {1, 3}, {1, 0}, {2, 3}, {1, 3}}},
                       .areSequencesTensor = (form & 1) != 0,
                       .arePositionsTensor = (form & 2) != 0});
    }
  }
}

void addFused(std::vector<Case>& cases) {
  const std::pair<DType, DType> pairs[] = {
      {DType::f16, DType::f16}, {DType::f32, DType::f16}, {DType::bf16, DType::f32}, {DType::u8, DType::u8}};
  for (Form form : {Form::columns, Form::shared, Form::apart}) {
    for (const auto& [source, cache] : pairs) {
      for (const auto& [headDim, valueHeadDim] : {std::pair{16, 16}, {16, 4}, {6, 10}, {8, 0}}) {
        for (const auto& [lead, between, tail] : {std::tuple{0, 0, 0}, {32, 0, 0}, {1, 0, 0}, {3, 2, 5}, {16, 16, 4}}) {
          for (uint64_t sequences : {0, 2}) {
            if (form == Form::shared && valueHeadDim == 0) continue;
            cases.push_back(
                {.name = fmt::format("{} to {}, {}, head dims {} and {}, {} before, {} between and {} after{}",
                                     name(source), name(cache), text(form), headDim, valueHeadDim, lead, between, tail,
                                     sequences ? ", 2 sequences" : ""),
                 .source = source,
                 .cache = cache,
                 .headDim = static_cast<uint64_t>(headDim),
                 .valueHeadDim = static_cast<uint64_t>(valueHeadDim),
                 .capacity = 7,
                 .sourceTokens = 3,
                 .sourceSequences = sequences,
                 .sourceOffset = static_cast<uint64_t>(lead % 2),
                 .sourceShift = lead == 16 ? byteSize(source) : 0,
                 .fused = Case::Fused{form, static_cast<uint64_t>(lead), static_cast<uint64_t>(between),
                                      static_cast<uint64_t>(tail)},
                 .position = 4});
          }
        }
      }
    }
    cases.push_back({.name = fmt::format("rows of 2 sequences, {}", text(form)),
                     .source = DType::bf16,
                     .cache = DType::bf16,
                     .heads = 3,
                     .headDim = 8,
                     .valueHeadDim = 12,
                     .sequences = 2,
                     .sourceTokens = 2,
                     .sourceSequences = 2,
                     .fused = Case::Fused{form, 24, 1, 0},
                     .rows = {{{1, 1}, {0, 2}, {1, 3}, {0, 0}}}});
    cases.push_back({.name = fmt::format("the newest tokens of a ring, {}", text(form)),
                     .pinned = 1,
                     .headDim = 8,
                     .valueHeadDim = 8,
                     .sourceTokens = 9,
                     .fused = Case::Fused{form, 8, 0, 8}});
    cases.push_back({.name = fmt::format("one token and one head, strides of no use, {}", text(form)),
                     .source = DType::f16,
                     .cache = DType::f16,
                     .heads = 1,
                     .headDim = 16,
                     .valueHeadDim = 16,
                     .fused = Case::Fused{form, 8, 0, 3}});
  }
}

}  // namespace

std::vector<Case> sourceCases() {
  std::vector<Case> cases;
  addSequences(cases);
  addFused(cases);
  return cases;
}

}  // namespace mnk::test
