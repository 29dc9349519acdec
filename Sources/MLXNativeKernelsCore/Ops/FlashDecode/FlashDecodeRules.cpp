#include "Ops/FlashDecodeRules.hpp"

#include <algorithm>
#include <cmath>

#include "Ops/AttentionResultRules.hpp"
#include "Ops/CacheAddressRules.hpp"
#include "Ops/FlashDecodeShape.hpp"
#include "Ops/FlashDecodeTuning.hpp"
#include "Ops/HeadsMemory.hpp"
#include "Ops/Overlap.hpp"
#include "Ops/QuantizedKVCacheRules.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = FlashDecode;
using View = KVCacheView;

constexpr Rule<View> kCacheRules[] = {
    {"the cache has no memory", [](const View& v) { return bool(v.keys) && (!v.values || bool(*v.values)); },
     [](const View& v) { return std::string(v.keys ? "a value cache without memory" : "a key cache without memory"); },
     [](const View&) { return std::string("tensors with memory"); }, "Make the cache's tensors before using it."},

    {"the cache has no values", [](const View& v) { return v.values.has_value(); },
     [](const View&) { return std::string("keys alone"); }, [](const View&) { return std::string("keys and values"); },
     "Give the view a tensor for values."},

    {"the cache has the wrong rank",
     [](const View& v) {
       const uint32_t rank = v.keys.shape().rank();
       return (rank == 3 || rank == 4) && v.values->shape().rank() == rank;
     },
     [](const View& v) { return fmt::format("keys {}, values {}", v.keys.shape().text(), v.values->shape().text()); },
     [](const View& v) {
       return std::string(v.layout == KVLayout::headMajor
                              ? "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]"
                              : "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]");
     },
     "Reshape the cache; keys and values need the same rank."},

    {"the cache does not hold numbers of one type",
     [](const View& v) { return isFloat(v.keys.dtype()) && v.values->dtype() == v.keys.dtype(); },
     [](const View& v) {
       return fmt::format("keys of {}, values of {}", name(v.keys.dtype()), name(v.values->dtype()));
     },
     [](const View&) { return std::string("f32, f16 or bf16, the same for both"); },
     "Store keys and values as floats of one type, or pass a quantized view."},

    {"the cache has no capacity", [](const View& v) { return v.capacity() > 0; },
     [](const View& v) { return fmt::format("{} {}", layoutText(v.layout), v.keys.shape().text()); },
     [](const View&) { return std::string("at least one slot"); }, "Make a cache with a capacity of at least 1."},

    {"the value cache differs from the key cache",
     [](const View& v) {
       const View values = valuesOf(v);
       return values.heads() == v.heads() && values.capacity() == v.capacity() && values.sequences() == v.sequences();
     },
     [](const View& v) { return v.values->shape().text(); },
     [](const View& v) { return fmt::format("{}, but for headDim", v.keys.shape().text()); },
     "Make both with the same sequences, heads and capacity."},
};

uint64_t longestLength(const Op& op) {
  uint64_t longest = 0;
  for (const AttendedSequence& sequence : op.sequences) longest = std::max(longest, sequence.written());
  return longest;
}

const AttendedSequence* firstShrunk(const Op& op) {
  for (const AttendedSequence& sequence : op.sequences) {
    if (sequence.written() < sequence.length) return &sequence;
  }
  return nullptr;
}

uint64_t largestExtent(const Op& op) {
  const QueryShape queries = queryShape(op.queries);
  const View slots = slotsOf(op);
  return std::max({queries.vectors(), slots.capacity(), slots.heads(), slots.sequences()});
}

const AttendedSequence* firstUnknown(const Op& op) {
  for (const AttendedSequence& sequence : op.sequences) {
    if (sequence.sequence >= slotsOf(op).sequences()) return &sequence;
  }
  return nullptr;
}

bool needsPositions(const Op& op) {
  return op.options.isCausal || op.options.window != 0 || op.options.slopes;
}

const AttendedSequence* firstTooShort(const Op& op) {
  if (!needsPositions(op)) return nullptr;
  for (const AttendedSequence& sequence : op.sequences) {
    if (sequence.length != 0 && sequence.length < queryShape(op.queries).rows) return &sequence;
  }
  return nullptr;
}

// A position in a row's window that the ring has overwritten.
struct LostPosition {
  AttendedSequence sequence;
  uint64_t row = 0;
  uint64_t position = 0;
  AttendedKeys keys;
};

std::optional<LostPosition> firstLost(const Op& op) {
  if (op.options.window == 0) return std::nullopt;
  const uint64_t rows = queryShape(op.queries).rows;
  for (const AttendedSequence& sequence : op.sequences) {
    const AttendedKeys keys(slotsOf(op), sequence);
    if (keys.skipped == 0 || sequence.length == 0) continue;
    // Rows at pinned positions see nothing that can be lost, and the first one behind them sees furthest back.
    const uint64_t first = std::max(sequence.length - std::min(rows, sequence.length), keys.pinned);
    const uint64_t begin = std::max(first + 1 - std::min<uint64_t>(first + 1, op.options.window), keys.pinned);
    if (first >= sequence.length || begin >= keys.oldest()) continue;
    return LostPosition{sequence, first + rows - sequence.length, begin, keys};
  }
  return std::nullopt;
}

// The axes that results may have before their last.
std::vector<std::vector<uint64_t>> rowAxes(const Op& op) {
  const QueryShape queries = queryShape(op.queries);
  std::vector<std::vector<uint64_t>> axes{{queries.sequences, queries.rows, queries.heads}};
  if (queries.sequences == 1) axes.insert(axes.begin(), {queries.rows, queries.heads});
  if (queries.sequences == 1 && queries.rows == 1) axes.insert(axes.begin(), {queries.heads});
  return axes;
}

uint64_t longestKeys(const Op& op) {
  uint64_t longest = 0;
  for (const AttendedSequence& sequence : op.sequences) {
    longest = std::max(longest, AttendedKeys(slotsOf(op), sequence).keyOf(sequence.length));
  }
  return longest;
}

bool isMask(const Op& op) {
  if (!op.options.mask) return true;
  const Shape& shape = op.options.mask->shape();
  const uint32_t rank = shape.rank();
  if (!*op.options.mask || !isFloat(op.options.mask->dtype()) || rank < 2 || rank > 4) return false;
  const QueryShape queries = queryShape(op.queries);
  const uint64_t all[] = {queries.sequences, queries.heads, queries.rows};
  for (uint32_t axis = 0; axis + 1 < rank; ++axis) {
    const uint64_t extent = shape[rank - 2 - axis];
    if (extent != 1 && extent != all[2 - axis]) return false;
  }
  return shape[rank - 1] >= longestKeys(op) && shape[rank - 1] < kMaxKVExtent;
}

bool isPerHead(const Op& op, const std::optional<Tensor>& tensor) {
  return !tensor || (*tensor && tensor->dtype() == DType::f32 && isShaped(*tensor, {queryShape(op.queries).heads}));
}

std::vector<NamedRange> sourcesOf(const Op& op) {
  std::vector<NamedRange> sources{{"queries", rangeOf(op.queries)}};
  if (const QuantizedKVCacheView* quantized = quantizedOf(op)) {
    for (const QuantizedKVPlane* plane : {&quantized->keys, &*quantized->values}) {
      sources.push_back({"codes", plane->codes.range()});
      sources.push_back({"scales", plane->scales.range()});
      addFactors(sources, *plane);
    }
  } else {
    sources.push_back({"the key cache", slotsOf(op).keys.range()});
    sources.push_back({"the value cache", slotsOf(op).values->range()});
  }
  if (op.options.mask) sources.push_back({"the mask", op.options.mask->range()});
  if (op.options.slopes) sources.push_back({"slopes", op.options.slopes->range()});
  if (op.options.sinks) sources.push_back({"sinks", op.options.sinks->range()});
  return sources;
}

std::optional<Overlap> firstOverlap(const Op& op) {
  std::vector<NamedRange> targets;
  addTargets(targets, op.results);
  if (op.scratch) targets.push_back({"scratch memory", op.scratch->range()});
  return firstOverlap(sourcesOf(op), targets);
}

constexpr Rule<Op> kRules[] = {
    {"an extent is too large for the kernel", [](const Op& op) { return largestExtent(op) < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("{}", largestExtent(op)); },
     [](const Op&) { return std::string("less than 2^31 on every axis"); }, "Attend to a part at a time."},

    {"the cache has no room for its pinned slots",
     [](const Op& op) {
       const View slots = slotsOf(op);
       return slots.pinned == 0 || (slots.wrap == KVWrap::ring && slots.pinned < slots.capacity());
     },
     [](const Op& op) {
       const View slots = slotsOf(op);
       return fmt::format("{} pinned slots in a {} of {}", slots.pinned,
                          slots.wrap == KVWrap::ring ? "ring" : "linear cache", slots.capacity());
     },
     [](const Op&) { return std::string("fewer pinned slots than the ring's capacity, and none in a linear cache"); },
     "Pin fewer slots, or make the cache a larger ring."},

    {"queries have another head dim than keys",
     [](const Op& op) { return queryShape(op.queries).headDim == keyDimOf(op); },
     [](const Op& op) { return fmt::format("{}", queryShape(op.queries).headDim); },
     [](const Op& op) { return fmt::format("{}", keyDimOf(op)); }, "Pass queries of the model that filled the cache."},

    {"there is no kernel for these head dims",
     [](const Op& op) { return hasAttentionKernel(keyDimOf(op), valueDimOf(op), quantizedOf(op) != nullptr); },
     [](const Op& op) { return fmt::format("{} of keys and {} of values", keyDimOf(op), valueDimOf(op)); },
     [](const Op& op) { return attentionDimsText(quantizedOf(op) != nullptr); },
     "Pad shorter vectors with zeros to one of these, and pass the scale of the head dim that they had."},
};

constexpr Rule<Op> kSequenceRules[] = {
    {"the sequences do not match the queries",
     [](const Op& op) { return op.sequences.size() == queryShape(op.queries).sequences; },
     [](const Op& op) { return countText(op.sequences.size(), "sequence"); },
     [](const Op& op) { return fmt::format("{}, as in the queries", queryShape(op.queries).sequences); },
     "Name one sequence of the cache, and its length, for each of the queries."},

    {"the sequence is not in the cache", [](const Op& op) { return !firstUnknown(op); },
     [](const Op& op) { return fmt::format("sequence {}", firstUnknown(op)->sequence); },
     [](const Op& op) { return fmt::format("less than {}", slotsOf(op).sequences()); },
     "Pass a sequence that the cache holds."},

    {"a sequence has had fewer positions than it has", [](const Op& op) { return !firstShrunk(op); },
     [](const Op& op) {
       return fmt::format("a length of {} and a highest of {}", firstShrunk(op)->length, firstShrunk(op)->highest);
     },
     [](const Op&) { return std::string("the largest length that the sequence has had, or 0"); },
     "Pass the length before tokens were taken back, or 0 if none were."},

    {"a sequence is longer than its cache",
     [](const Op& op) { return slotsOf(op).wrap != KVWrap::linear || longestLength(op) <= slotsOf(op).capacity(); },
     [](const Op& op) { return fmt::format("a length of {}", longestLength(op)); },
     [](const Op& op) { return fmt::format("at most capacity {}", slotsOf(op).capacity()); },
     "Pass how many positions the sequence has."},

    {"a sequence has too many positions", [](const Op& op) { return longestLength(op) < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("a length of {}", longestLength(op)); },
     [](const Op&) { return std::string("at most 2^31 - 1 positions"); },
     "Start the sequence again; kernels count positions up to there."},

    {"a sequence has fewer positions than queries", [](const Op& op) { return !firstTooShort(op); },
     [](const Op& op) {
       return fmt::format("a length of {} and {} rows", firstTooShort(op)->length, queryShape(op.queries).rows);
     },
     [](const Op&) { return std::string("a length that counts the rows of the queries, or 0"); },
     "Append keys and values of the queries' tokens first, or count them in."},

};

// Times log2(e) they are still finite and normal, since GPUs take what is smaller for 0.
constexpr float kMinScale = 1e-37f, kMaxScale = 1e38f;
// A score is divided by the softcap, and the quotient multiplied by it: quotients that are taken for 0 are scores of no
// more than 1e-7.
constexpr float kMinSoftcap = 1e-30f, kMaxSoftcap = 1e30f;

bool isUnsetOrWithin(float number, float least, float most) {
  return number == 0 || (number >= least && number <= most);
}

constexpr Rule<Op> kOptionRules[] = {
    {"a result does not match the queries",
     [](const Op& op) { return !firstMisfit(op.results, rowAxes(op), valueDimOf(op)); },
     [](const Op& op) { return firstMisfit(op.results, rowAxes(op), valueDimOf(op))->got; },
     [](const Op& op) { return firstMisfit(op.results, rowAxes(op), valueDimOf(op))->expected; },
     "Give results the sequences, rows and heads of the queries, in this order, and the head dim of values."},

    {"the scale cannot be used", [](const Op& op) { return isUnsetOrWithin(op.options.scale, kMinScale, kMaxScale); },
     [](const Op& op) { return fmt::format("{}", op.options.scale); },
     [](const Op&) { return fmt::format("a number from {} to {}", kMinScale, kMaxScale); },
     "Pass a positive scale, or none for 1 / sqrt(headDim)."},

    {"the softcap cannot be used",
     [](const Op& op) { return isUnsetOrWithin(op.options.softcap, kMinSoftcap, kMaxSoftcap); },
     [](const Op& op) { return fmt::format("{}", op.options.softcap); },
     [](const Op&) { return fmt::format("a number from {} to {}", kMinSoftcap, kMaxSoftcap); },
     "Pass a positive softcap, or none."},

    {"the window is too large", [](const Op& op) { return op.options.window < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("{}", op.options.window); },
     [](const Op&) { return std::string("less than 2^31"); }, "Pass a smaller window, or none."},

    {"a window reaches positions that the ring has overwritten", [](const Op& op) { return !firstLost(op); },
     [](const Op& op) {
       const LostPosition lost = *firstLost(op);
       return fmt::format("row {} of sequence {}, whose window of {} reaches position {}, over a ring that holds {}",
                          lost.row, lost.sequence.sequence, op.options.window, lost.position,
                          heldPositionsText(lost.keys.pinned, lost.keys.oldest(), lost.sequence.length));
     },
     [](const Op& op) {
       const LostPosition lost = *firstLost(op);
       return fmt::format("a capacity of at least {}", lost.keys.pinned + lost.sequence.written() - lost.position);
     },
     "Make the ring that large, store and attend to fewer tokens at a time, or pass a smaller window."},

    {"the mask does not match the queries", [](const Op& op) { return isMask(op); },
     [](const Op& op) { return op.options.mask->text(); },
     [](const Op& op) {
       const QueryShape queries = queryShape(op.queries);
       return fmt::format("floats [rows {}, keys {}], with axes of heads {} and sequences {} before them or without",
                          queries.rows, longestKeys(op), queries.heads, queries.sequences);
     },
     "Give the mask a column for each key, oldest first; other axes may be 1."},

    {"slopes do not match the queries", [](const Op& op) { return isPerHead(op, op.options.slopes); },
     [](const Op& op) { return op.options.slopes->text(); },
     [](const Op& op) { return fmt::format("f32 [{}]", queryShape(op.queries).heads); }, "Pass a slope for each head."},

    {"sinks do not match the queries", [](const Op& op) { return isPerHead(op, op.options.sinks); },
     [](const Op& op) { return op.options.sinks->text(); },
     [](const Op& op) { return fmt::format("f32 [{}]", queryShape(op.queries).heads); }, "Pass a sink for each head."},

    {"partials cannot have sinks", [](const Op& op) { return !op.options.sinks || !op.results.partials; },
     [](const Op&) { return std::string("sinks, and partials as the target"); },
     [](const Op&) { return std::string("sinks once, where all parts are merged"); }, "Pass sinks to MergePartials."},

    {"there are too many splits", [](const Op& op) { return op.options.splits <= Op::kMaxSplits; },
     [](const Op& op) { return fmt::format("{}", op.options.splits); },
     [](const Op&) { return fmt::format("at most {}", Op::kMaxSplits); },
     "Pass fewer splits, or none for as many as the device needs."},

    {"the matrix kernel cannot attend to this",
     [](const Op& op) { return op.options.kernel != FlashDecodeKernel::matrix || canUseMatrices(op); },
     [](const Op& op) {
       const std::string storage = quantizedOf(op) ? "codes" : std::string(name(slotsOf(op).keys.dtype()));
       return fmt::format("{} with head dims {} and {}{}", storage, keyDimOf(op), valueDimOf(op),
                          op.options.mask ? ", with a mask" : "");
     },
     [](const Op&) { return std::string("f16 without a mask, or codes, with head dims of 64, 128 or 256"); },
     "Let the kernel be chosen."},

    {"scratch memory is not of bytes",
     [](const Op& op) { return !op.scratch || (*op.scratch && op.scratch->dtype() == DType::u8); },
     [](const Op& op) { return op.scratch->text(); }, [](const Op&) { return std::string("u8"); },
     "Make it as long as the plan's scratchBytes, or leave it out."},

    {"operands share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) { return firstOverlap(op)->text(); }, [](const Op&) { return std::string("separate memory"); },
     "Write results to memory of their own."},
};

constexpr Rule<QuantizedKVCacheView> kQuantizedRules[] = {
    {"the cache has no values", [](const QuantizedKVCacheView& v) { return v.values.has_value(); },
     [](const QuantizedKVCacheView&) { return std::string("keys alone"); },
     [](const QuantizedKVCacheView&) { return std::string("keys and values"); }, "Give the view a plane of values."},
};

// They ask for a cache that has kept its own rules.
std::span<const Rule<Op>> rulesBesidesQueries() {
  static const std::vector<Rule<Op>> all =
      joined<Op>({kRules, headGroupRules(), kSequenceRules, kResultRules<Op>, kOptionRules});
  return all;
}

}  // namespace

std::span<const Rule<KVCacheView>> attendedCacheRules() {
  return kCacheRules;
}
std::span<const Rule<FlashDecode>> flashDecodeRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({queryRules(), rulesBesidesQueries()});
  return all;
}

std::optional<Error> firstBroken(const FlashDecode& op) {
  if (auto error = firstBroken(queryRules(), op, Op::name)) return error;
  if (const QuantizedKVCacheView* quantized = quantizedOf(op)) {
    if (auto error = firstBroken(quantizedKVCacheRules(), *quantized, Op::name)) return error;
    if (auto error = firstBroken(std::span<const Rule<QuantizedKVCacheView>>(kQuantizedRules), *quantized, Op::name)) {
      return error;
    }
  } else if (auto error = firstBroken(attendedCacheRules(), std::get<KVCacheView>(op.over), Op::name)) {
    return error;
  }
  return firstBroken(rulesBesidesQueries(), op, Op::name);
}

bool canUseMatrices(const FlashDecode& op) {
  const uint64_t headDim = keyDimOf(op);
  if (valueDimOf(op) != headDim || (headDim != 64 && headDim != 128 && headDim != 256)) return false;
  if (quantizedOf(op)) return true;
  return slotsOf(op).keys.dtype() == DType::f16 && !op.options.mask;
}

}  // namespace mnk
