#include "CacheCall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "Arena.hpp"

namespace mnk::fuzz {

namespace {

using Kind = CacheCallKind;

std::string_view nameOf(Kind kind) {
  constexpr std::string_view kNames[] = {
      "append", "attend", "append and attend", "rotate", "copy", "truncate", "commit", "drop", "run"};
  return kNames[static_cast<size_t>(kind)];
}

bool appends(const CacheCall& call) {
  return call.kind != Kind::attend;
}
bool attends(const CacheCall& call) {
  return call.kind != Kind::append;
}

// The views that the call needs, with their names.
struct NamedHeads {
  HeadsSpec* heads;
  std::string_view name, outside;
};
std::vector<NamedHeads> viewsOf(CacheCall& call) {
  std::vector<NamedHeads> views;
  if (attends(call)) views.push_back({&call.queries, "queries", "queries lie outside of their tensor"});
  if (appends(call)) {
    constexpr std::string_view kOutside = "vectors lie outside of their tensor";
    views.push_back({&call.keys, "keys", kOutside});
    views.push_back({&call.values, "values", kOutside});
  }
  return views;
}

// What the C API refuses before it looks at the cache.
std::string mutateStruct(CacheCall& call, Seeded& random) {
  const auto views = viewsOf(call);
  const NamedHeads& view = views[random.below(views.size())];
  switch (random.below(7)) {
    case 0:
      call.hasEncoder = false;
      return "encoder is missing";
    case 1:
      call.hasCache = false;
      return "cache is missing";
    case 2:
      call.hasStep = false;
      return "mnk_cache_step is missing";
    case 3:
      if (view.heads->view.has_strides) return {};
      view.heads->view.layout = test::number<mnk_kv_layout>(static_cast<uint32_t>(3 + random.below(9)));
      return "the number is not a case of mnk_kv_layout";
    case 4:
      view.heads->tensor.reset();
      if (view.heads->view.has_strides || view.heads->view.layout != MNK_KV_LAYOUT_DEFAULT) {
        return fmt::format("{}.tensor is missing", view.name);
      }
      // Nothing says how many rows there are, so that a list would be too long.
      if (call.sequences.size() > 1) return {};
      return view.name == "queries" ? "queries have no memory" : "a source has no memory";
    case 5:
      call.hasSequences = false;
      call.sequenceCount = 1 + random.below(3);
      return "sequences is missing";
    default:
      call.isCommitted = true;
      return "the encoder is used after it was committed";
  }
}

std::string mutateLists(CacheCall& call, const CacheModel& model, Seeded& random) {
  if (!call.hasSequences || call.sequences.empty()) return {};
  uint32_t& sequence = call.sequences[random.below(call.sequences.size())];
  switch (random.below(3)) {
    case 0: {
      const auto count = static_cast<uint32_t>(model.sequences().size());
      sequence = oneOf(random, {count, count + 1, MNK_ONLY_SEQUENCE, 1u << 31});
      if (call.sequences.size() == 1) return std::string(model.refusalOfName(sequence));
      return "the sequence is not in the cache";
    }
    case 1: {
      if (!call.hasRowCounts) return {};
      uint32_t& rows = call.rowCounts[random.below(call.rowCounts.size())];
      rows += coin(random, 1, 2) ? 1 : UINT32_MAX;
      return "the rows do not match the listed sequences";
    }
    default: {
      const uint64_t rows = rowsOf(call.entries());
      if (rows != 0 && coin(random, 1, 3)) {
        call.sequences.clear();
        return "the step has no sequence";
      }
      // With row counts, some may have no rows; the list is refused before it is read.
      call.sequenceCount =
          std::max<uint64_t>(rows, call.sequences.size()) + 1 + random.below(3) + (call.hasRowCounts ? UINT16_MAX : 0);
      return "there are too many sequences";
    }
  }
}

// Vectors elsewhere, or of other extents. Views without strides would be taken for those of the other layout.
std::string mutateView(CacheCall& call, const CacheModel& model, Seeded& random) {
  const auto views = viewsOf(call);
  const NamedHeads& view = views[random.below(views.size())];
  const bool isQueries = view.heads == &call.queries, isKeys = view.heads == &call.keys;
  const bool hasStrides = view.heads->view.has_strides;
  mnk_heads_view_strides& strides = view.heads->view.strides;
  // Rows that see each other may be of any tokens.
  const bool hasTokens = appends(call) || !call.options.is_bidirectional;
  const bool areRotated = hasTokens && std::ranges::any_of(rowPlaces(*view.heads), [&](const RowPlace& place) {
                            return model.rotated().anglesAt(place).has_value();
                          });
  switch (areRotated && coin(random, 1, 2) ? 1 : random.below(5)) {
    case 4:
      // Distances below zero would lead to vectors that are inside.
      if (!hasStrides || strides.sequences != 1 || strides.tokens < 2) return {};
      strides.offset += (strides.tokens - 1) * strides.token_stride;
      strides.token_stride = -strides.token_stride;
      return std::string(view.outside);
    case 0:
      if (!hasStrides) return {};
      (coin(random, 1, 2) ? strides.offset : strides.head_stride) = edge(random, {view.heads->tensor->elements() + 2});
      // All of them must be outside, whichever part is looked at first.
      strides.offset = std::max(strides.offset, view.heads->tensor->elements());
      return std::string(view.outside);
    case 1:
      if (!hasStrides) return {};
      strides.head_dim -= 1;
      if (areRotated) {
        return fmt::format("{} were rotated with other heads than they are used with", view.name);
      }
      if (isQueries) return "queries have another head dim than keys";
      return isKeys ? "keys do not have the cache's heads and headDim"
                    : "values do not have the cache's heads and headDim";
    case 2: {
      // More tokens than there can be: of both views, so that they agree.
      // Where rows were rotated, what they were rotated for is looked at first.
      if (call.kind != Kind::append || call.sequences.size() != 1 || !model.rotated().isEmpty()) return {};
      call.hasRowCounts = false;
      const uint64_t tokens = oneOf<uint64_t>(random, {1u << 31, uint64_t{1} << 33, uint64_t{1} << 62});
      const bool isFolded = coin(random, 1, 2);
      for (HeadsSpec* heads : {&call.keys, &call.values}) {
        heads->view = {.has_strides = true, .strides = *placesOf(*heads)};
        heads->view.strides.sequences = 1, heads->view.strides.tokens = tokens;
        if (isFolded) heads->view.strides.token_stride = 0;
      }
      return isFolded ? "an extent is too large for the kernel" : "vectors lie outside of their tensor";
    }
    default:
      if (isQueries) return {};
      if (isKeys) {
        // Rows of wider elements may be those of a rotation, which is looked at first.
        if (model.cache().has_quantized || !model.rotated().isEmpty()) return {};
        call.keys.tensor->dtype = MNK_U32;
        call.keys.tensor->offset = call.keys.tensor->offset / 4 * 4;
        if (call.keys.tensor->offset + call.keys.tensor->bytes() > Arena::kRegionBytes) call.keys.tensor->offset = 0;
        if (call.keys.tensor->bytes() > Arena::kRegionBytes) return {};
        return "this pair of dtypes cannot be written";
      }
      if (call.values.tensor->dtype == MNK_F32) return {};
      call.values.tensor->dtype = call.values.tensor->dtype == MNK_F16 ? MNK_BF16 : MNK_F16;
      return "values have another dtype than keys";
  }
}

std::string mutateAttention(CacheCall& call, Seeded& random) {
  if (!attends(call)) return {};
  // Only latent caches have one, and few programs have these.
  if (call.hasOptions && call.options.scale != 0 && coin(random, 1, 2)) {
    call.options.scale = 0;
    return "attention over a latent cache has no scale";
  }
  switch (random.below(5)) {
    case 0:
      call.hasResults = coin(random, 1, 2);
      call.into.reset();
      return "attention needs exactly one target";
    case 1:
      call.into->shape.back() -= 1;
      return "a result does not match the queries";
    case 2:
      // Without a window, rows that see each other may have no positions.
      if (!call.hasOptions || call.options.is_bidirectional) return {};
      call.options.window = static_cast<uint32_t>((uint64_t{1} << 31) + random.below(1u << 31));
      return "the window is too large";
    case 3:
      if (!call.hasOptions) return {};
      call.options.scale = oneOf(random, {-1.0f, NAN, INFINITY});
      return "the scale cannot be used";
    default:
      if (call.into->dtype != call.queries.tensor->dtype) return {};
      // At the first vector, since the view may be of some rows of its tensor.
      call.into->region = call.queries.tensor->region;
      call.into->offset = rowPlaces(call.queries)[0].byte;
      return call.into->bytes() + call.into->offset <= Arena::kRegionBytes ? "operands share memory" : "";
  }
}

}  // namespace

std::vector<StepEntry> CacheCall::entries() const {
  std::vector<StepEntry> entries;
  const auto places = placesOf(kind == Kind::attend ? queries : keys);
  const uint64_t total = places->sequences * places->tokens;
  for (size_t i = 0; i < sequences.size(); ++i) {
    entries.push_back(
        {sequences[i] == MNK_ONLY_SEQUENCE ? 0 : sequences[i], hasRowCounts ? rowCounts[i] : total / sequences.size()});
  }
  return entries;
}

HeadsSpec CacheCall::queriesInto() const {
  return isInPlace ? queries : HeadsSpec{into, {.layout = MNK_KV_LAYOUT_TOKEN_MAJOR}};
}
HeadsSpec CacheCall::keysInto() const {
  return isInPlace ? keys : HeadsSpec{rotatedKeys, {.layout = MNK_KV_LAYOUT_TOKEN_MAJOR}};
}

std::string CacheCall::text() const {
  std::string text = fmt::format("\n  {}{}{}", beginsStep ? "a step: " : "",
                                 refusal.empty() ? "" : fmt::format("[{}] ", refusal), nameOf(kind));
  if (kind == Kind::truncate) return text + fmt::format(" sequence {} at {}", sequence, position);
  if (kind == Kind::copy) return text + fmt::format(" {} to {}", sequence, target);
  if (kind == Kind::runStep) return text + (isEncoded ? " with an encoder" : "");
  if (kind == Kind::commit || kind == Kind::drop) return text;
  text += fmt::format("{}{}{}{}, sequences {} [{}]", hasEncoder ? "" : " without encoder",
                      hasCache ? "" : " without cache", hasStep ? "" : " without step",
                      isCommitted ? " after a commit" : "", hasSequences ? "" : "NULL", fmt::join(sequences, ", "));
  if (hasRowCounts) text += fmt::format(", rows [{}]", fmt::join(rowCounts, ", "));
  if (isInPlace) text += ", in place";
  if (!rotation) return text;
  text += fmt::format(", positions [{}], offsets [{}]", fmt::join(rotation->positions, ", "),
                      fmt::join(rotation->offsets, ", "));
  if (!rotation->next) return text;
  return text + fmt::format(", next of [{}], rows [{}]", fmt::join(rotation->next->sequences, ", "),
                            fmt::join(rotation->next->rowCounts, ", "));
}

bool mutate(CacheCall& call, const CacheModel& model, Seeded& random) {
  const CacheCall before = call;
  if (call.rotation) {
    if (call.rotation->next && (call.kind == Kind::rotate || coin(random, 1, 2))) {
      const bool isOp = call.kind == Kind::rotate;
      call.refusal = mutateNext(*call.rotation, isOp ? "positions" : "rotary.positions", model, random);
      if (call.refusal.empty()) call = before;
      return !call.refusal.empty();
    }
    if (call.kind == Kind::rotate) return false;
    call.refusal = mutate(*call.rotation, isEven(call.entries()), random);
    // Tokens of the encoder are looked at first.
    if (model.isRotatedOtherwise(call.entries(), call.rotation->angles()))
      call.refusal = "a step rotates tokens of a sequence by two embeddings";
    return true;
  }
  const bool hasRows = rowsOf(call.entries()) != 0;
  switch (hasRows ? random.below(5) : random.below(2)) {
    case 0:
      call.refusal = mutateStruct(call, random);
      break;
    case 1:
      call.refusal = mutateLists(call, model, random);
      break;
    case 2:
      call.refusal = mutateAttention(call, random);
      break;
    default:
      call.refusal = mutateView(call, model, random);
  }
  if (!call.refusal.empty()) return true;
  call = before;
  return false;
}

CacheStep stepOf(const CacheCall& call, const mnk_cache* cache, Arena& arena, Seeded& random) {
  const auto made = [&](const HeadsSpec& heads) {
    mnk_heads_view view = heads.view;
    view.tensor = heads.tensor ? arena.make(*heads.tensor, random) : nullptr;
    return view;
  };
  mnk_rotary_step rotary{};
  if (call.rotation) {
    const CacheRotation& rotation = *call.rotation;
    rotary.embedding = rotation.embedding;
    rotary.positions.has_first = rotation.first.has_value();
    rotary.positions.first = rotation.first.value_or(0);
    if (rotation.positionsIn) {
      rotary.positions.tensor = arena.make(*rotation.positionsIn, random);
    } else if (!rotation.positions.empty()) {
      rotary.positions.list = rotation.positions.data();
      rotary.positions.list_count = rotation.positions.size();
    }
    if (rotation.next) {
      const NextSpec& next = *rotation.next;
      rotary.positions.cache = next.hasCache ? cache : nullptr;
      rotary.positions.sequences = next.hasSequences ? next.sequences.data() : nullptr;
      rotary.positions.row_counts = next.hasRowCounts ? next.rowCounts.data() : nullptr;
      rotary.positions.sequence_count = next.sequenceCount.value_or(next.hasSequences ? next.sequences.size() : 0);
    }
    if (!rotation.offsets.empty()) rotary.offsets = {rotation.offsets.data(), rotation.offsets.size(), nullptr};
  }
  static constexpr uint32_t kNone = 0;
  const uint32_t* list = call.sequences.empty() ? &kNone : call.sequences.data();
  CacheStep all;
  all.step = {.queries = made(call.queries),
              .keys = made(call.keys),
              .values = made(call.values),
              .sequences = call.hasSequences ? list : nullptr,
              .row_counts = call.hasRowCounts ? call.rowCounts.data() : nullptr,
              .sequence_count = call.sequenceCount.value_or(call.hasSequences ? call.sequences.size() : 0),
              .has_rotary = call.rotation.has_value(),
              .rotary = rotary};
  if (call.hasResults && call.into) all.step.results.output = arena.make(*call.into, random);
  if (call.hasOptions) all.step.options = call.options;
  if (call.kind != Kind::rotate) return all;
  const auto rotated = [&](const HeadsSpec& heads) { return call.isInPlace ? mnk_heads_view{} : made(heads); };
  all.rope = {.queries = all.step.queries,
              .keys = all.step.keys,
              .rotated_queries = rotated(call.queriesInto()),
              .rotated_keys = rotated(call.keysInto()),
              .positions = rotary.positions,
              .offsets = rotary.offsets,
              .rotary = rotary.embedding};
  return all;
}

}  // namespace mnk::fuzz
