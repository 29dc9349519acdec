// Cases drawn at random, which the op's own tests, those of the bindings and the fuzzer share, and cases that a draw
// would rarely hit.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;
using Kind = AttentionKind;

constexpr int64_t kPositions = int64_t{1} << 31;
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfiniteNumber = std::numeric_limits<float>::infinity();

DType anyFloat(Seeded& random) {
  return kEveryFloat[random.below(std::size(kEveryFloat))];
}

// A codec that has this name and serves this head dim.
KVCodec anyCodec(Seeded& random, KVCodec::Name name, uint64_t headDim) {
  std::vector<KVCodec> fitting;
  for (const DrawnCoding& coding : attendedCodings()) {
    if (coding.codec.name == name && coding.headDim == headDim) fitting.push_back(coding.codec);
  }
  KVCodec codec = fitting.at(random.below(fitting.size()));
  if (headDim == 512 && (name == KVCodec::Name::mlx1 || name == KVCodec::Name::mlx1Unrotated)) {
    codec.scaleFactor = oneOf(random, {1.0f, 0.75f, 16.0f});
  }
  return codec;
}

// Codecs of one name for both planes, or for one of them.
void drawCodecs(Case& attend, Seeded& random, KVCodec::Name name) {
  attend.keyCodec = anyCodec(random, name, attend.headDim);
  attend.valueCodec = anyCodec(random, name, attend.valueHeadDim);
  const uint64_t dense = random.below(4);
  // Dense vectors need a head dim that the codec beside them has, too.
  if (dense == 0 && attend.valueCodec->canQuantize(attend.headDim)) attend.keyCodec.reset();
  if (dense == 1 && attend.keyCodec->canQuantize(attend.valueHeadDim)) attend.valueCodec.reset();
}

void drawParameters(Case& attend, Seeded& random) {
  const KVCodec* keys = attend.keyCodec ? &*attend.keyCodec : nullptr;
  const KVCodec* values = attend.valueCodec ? &*attend.valueCodec : nullptr;
  const auto isDrawn = [&](const KVCodec* codec) {
    return codec && codec->name == KVCodec::Name::turbo && coin(random, 1, 3);
  };
  attend.hasKeyMeans = isDrawn(keys), attend.hasChannelScales = isDrawn(keys), attend.hasValueMeans = isDrawn(values);
  attend.hasWideScales = coin(random, 1, 3);
}

void drawDense(Case& attend, Seeded& random, uint64_t number) {
  constexpr uint64_t kOfMatrices[] = {64, 128, 256};
  const std::span<const HeadDims> all = denseHeadDims();
  if (number % 2 == 0) {
    attend.headDim = attend.valueHeadDim = kOfMatrices[number / 2 % std::size(kOfMatrices)];
    if (coin(random, 2, 3)) attend.cache = DType::f16;
    return;
  }
  attend.headDim = all[number / 2 % all.size()].keys, attend.valueHeadDim = all[number / 2 % all.size()].values;
  attend.cache = kEveryFloat[number / 2 / all.size() % std::size(kEveryFloat)];
}

void drawQuantized(Case& attend, Seeded& random, uint64_t number) {
  const std::vector<DrawnCoding>& all = attendedCodings();
  const DrawnCoding& coding = all[number % all.size()];
  attend.headDim = attend.valueHeadDim = coding.headDim;
  if (number < all.size()) {
    attend.keyCodec = attend.valueCodec = coding.codec;
    return;
  }
  const DrawnCoding& other = all[random.below(all.size())];
  // Head dims above 256 have kernels for keys and values of one length.
  if (other.codec.name == coding.codec.name && std::max(other.headDim, coding.headDim) <= 256) {
    (coin(random, 1, 2) ? attend.headDim : attend.valueHeadDim) = other.headDim;
  }
  drawCodecs(attend, random, coding.codec.name);
}

void drawLatent(Case& attend, Seeded& random, uint64_t number) {
  attend.isLatent = true;
  attend.headDim = 64, attend.valueHeadDim = 512;
  attend.isOneTensor = number % 4 == 0;
  if (number % 4 == 2) drawCodecs(attend, random, KVCodec::Name::turbo);
  if (number % 4 == 3) drawCodecs(attend, random, coin(random, 1, 3) ? KVCodec::Name::mlx1 : KVCodec::Name::turbo);
}

void drawPrompt(Case& attend, Seeded& random, uint64_t number) {
  constexpr uint64_t kHeadDims[] = {64, 80, 96, 128, 192, 256};
  attend.headDim = attend.valueHeadDim = kHeadDims[number / 2 % std::size(kHeadDims)];
  if (number % 2 == 0) return;
  std::vector<KVCodec::Name> names{KVCodec::Name::turbo};
  if (attend.headDim != 80 && attend.headDim != 96 && attend.headDim != 192) names.push_back(KVCodec::Name::mlx1);
  if (attend.headDim == 256) names.insert(names.end(), {KVCodec::Name::mlx1Unrotated, KVCodec::Name::mlx1Affine4});
  drawCodecs(attend, random, names[random.below(names.size())]);
}

void drawStorage(Case& attend, Seeded& random, Kind kind, uint64_t number) {
  attend.cache = anyFloat(random), attend.queries = anyFloat(random), attend.into = anyFloat(random);
  attend.layout = coin(random, 1, 2) ? KVLayout::headMajor : KVLayout::tokenMajor;
  if (kind == Kind::dense) drawDense(attend, random, number);
  if (kind == Kind::quantized) drawQuantized(attend, random, number);
  if (kind == Kind::latent) drawLatent(attend, random, number);
  if (kind == Kind::prompt) drawPrompt(attend, random, number);
  if (attend.isQuantized()) drawParameters(attend, random);
}

// Bounds the products of elements of queries and keys for a dozen keys a row. Returns the number of keys allowed.
uint64_t drawRows(Case& attend, Seeded& random, Kind kind) {
  const uint64_t products = kind == Kind::prompt                          ? 50'000
                            : kind == Kind::latent || coin(random, 1, 24) ? 250'000
                                                                          : 14'000;
  const uint64_t each = attend.queryDim() + attend.valueHeadDim, most = std::max<uint64_t>(products / each / 12, 1);
  attend.kvHeads = 1 + random.below(coin(random, 1, 2) ? 1 : 3);
  attend.group = coin(random, 3, 4) ? 1 + random.below(8) : oneOf<uint64_t>(random, {1, 2, 12, 16, 32, 128});
  attend.rows = coin(random, 1, 3) ? 1 : 1 + random.below(coin(random, 1, 6) ? 20 : 8);
  if (kind == Kind::prompt) attend.rows = 9 + random.below(coin(random, 1, 6) ? 60 : 24);
  if (attend.heads() * attend.rows > most) attend.kvHeads = 1;
  attend.group = std::min(attend.group, most);
  attend.rows = std::clamp<uint64_t>(most / attend.group, kind == Kind::prompt ? 9 : 1, attend.rows);
  if (kind == Kind::prompt) attend.group = std::min(attend.group, std::max<uint64_t>(most / attend.rows, 1));
  // Some of one row have many keys.
  const bool isLong = kind == Kind::dense && coin(random, 1, 7);
  if (isLong) attend.kvHeads = attend.group = attend.rows = 1;
  return std::clamp<uint64_t>((isLong ? 250'000 : products) / each / attend.rows / attend.heads(), attend.rows + 12,
                              1100);
}

uint64_t drawLength(const Case& attend, Seeded& random, uint64_t most) {
  if (attend.wrap == KVWrap::ring) {
    if (coin(random, 1, 16)) return static_cast<uint64_t>(kPositions) - 1 - random.below(8);
    if (coin(random, 1, 6)) return attend.capacity + random.below(3) - 1;
    return random.below(3 * attend.capacity + 1);
  }
  constexpr uint64_t kTile = 16;
  // Around the ends of tiles, long ones, and any.
  if (coin(random, 1, 3)) return std::min(most, kTile * (1 + random.below(most / kTile)) + random.below(3) - 1);
  return coin(random, 1, 4) ? most - random.below(4) : random.below(most + 1);
}

void drawSequences(Case& attend, Seeded& random, uint64_t most) {
  const bool isRing = attend.wrap == KVWrap::ring;
  const bool needsPositions = attend.options.isCausal || attend.options.window != 0 || attend.hasSlopes;
  attend.cacheSequences = coin(random, 1, 2) ? 0 : 1 + random.below(5);
  const uint64_t count = coin(random, 1, 2) ? 1 : 1 + random.below(4), longest = random.below(count);
  const bool isRagged = coin(random, 1, 4);
  uint64_t written = 1;
  for (uint64_t s = 0; s < count; ++s) {
    const uint64_t rows = isRagged && s != longest ? 1 + random.below(attend.rows) : attend.rows;
    AttendedSequence each{.sequence = random.below(std::max<uint64_t>(attend.cacheSequences, 1)),
                          .length = drawLength(attend, random, s == 0 ? most : std::min<uint64_t>(most, 40))};
    if (isRagged) each.rows = rows;
    if (coin(random, 1, 6)) {
      const int64_t newest = std::min(static_cast<int64_t>(each.length), kPositions - 2000);
      each.position = coin(random, 1, 8) ? newest + 1000 : static_cast<int64_t>(random.below(20)) - 5 + newest / 2;
    }
    if (needsPositions && !each.position && each.length < rows) each.length = coin(random, 1, 3) ? 0 : rows;
    // Tokens were removed: up to all that a ring can lose, or one more, so that only pinned positions are left.
    if (coin(random, 1, 4)) {
      const uint64_t most = static_cast<uint64_t>(kPositions) - 1 - each.length;
      each.highest = each.length + std::min(random.below(isRing ? attend.capacity + 2 : 4), most);
    }
    written = std::max({written, each.length, each.highest});
    attend.sequences.push_back(each);
  }
  if (!isRing) attend.capacity = written + (coin(random, 1, 2) ? 0 : random.below(4));
}

// Whether the window of a row begins before the oldest position that a ring holds, pinned ones aside.
bool windowReachesLost(const Case& attend) {
  for (size_t s = 0; s < attend.sequences.size(); ++s) {
    const uint64_t length = attend.sequences[s].length, written = std::max(length, attend.sequences[s].highest);
    if (written <= attend.capacity) continue;
    const uint64_t rows = attend.rowsOf(s), oldest = std::min(length, written - attend.capacity + attend.pinned);
    for (uint64_t row = 0; row < rows; ++row) {
      const int64_t position = rowPosition(attend.sequences[s], rows, row);
      const int64_t begin = std::max<int64_t>(position + 1 - attend.options.window, attend.pinned);
      if (position >= attend.pinned && begin < static_cast<int64_t>(oldest)) return true;
    }
  }
  return false;
}

// The window as it is, or the widest over which the ring has lost no position, or none.
void narrowWindow(Case& attend) {
  uint32_t& window = attend.options.window;
  if (window == 0 || !windowReachesLost(attend)) return;
  window = std::min(window, static_cast<uint32_t>(attend.capacity) + 1100);
  while (window != 0 && windowReachesLost(attend)) --window;
}

void drawMask(Case& attend, Seeded& random) {
  attend.mask = MaskCase{.dtype = anyFloat(random),
                         .rank = 2 + static_cast<uint32_t>(random.below(3)),
                         .servesAllSequences = coin(random, 1, 2),
                         .servesAllHeads = coin(random, 1, 2),
                         .servesAllRows = coin(random, 1, 2),
                         .extraKeys = coin(random, 1, 3) ? 1 + random.below(5) : 0,
                         .hasHoles = coin(random, 5, 6),
                         .hasEmptyRows = coin(random, 1, 3),
                         .hasFiniteHoles = coin(random, 1, 5)};
  if (coin(random, 1, 8)) attend.mask->offset = attend.mask->dtype == DType::f16 ? -6e4f : -1e5f;
}

void drawOptions(Case& attend, Seeded& random) {
  setFloats(attend.options, &random);
  attend.options.splits = oneOf<uint32_t>(random, {0, 0, 1, 2, 3, 4, 7, 33});
  if (coin(random, 1, 4)) attend.options.merge = AttentionOptions::Merge::separate;
  attend.options.windowSeesPinned = coin(random, 1, 2);
  attend.givesPartials = coin(random, 1, 5);
  attend.givesLogSumExp = coin(random, 1, 3);
  attend.hasSinks = !attend.givesPartials && coin(random, 1, 4);
  if (coin(random, 1, 6)) attend.sinkSize = 1e4f;
  attend.hasScratch = attend.options.splits != 0 && coin(random, 1, 3);
  if (!attend.isRagged() && coin(random, 1, 4)) drawMask(attend, random);
}

void drawMemory(Case& attend, Seeded& random) {
  attend.queryPlaces = static_cast<QueryPlaces>(random.below(4));
  attend.queryGap = random.below(5);
  const bool isOneRow = attend.querySequences() == 1 && attend.queryRows() == 1;
  if (attend.querySequences() == 1) {
    attend.rank = static_cast<uint32_t>(isOneRow ? 2 + random.below(3) : 3 + random.below(2));
    attend.resultRank = static_cast<uint32_t>(isOneRow ? 2 + random.below(3) : 3 + random.below(2));
  } else {
    attend.rank = 4;
  }
  const auto shift = [&](uint64_t size) { return coin(random, 1, 4) ? size * (1 + random.below(3)) : 0; };
  attend.cacheShift = shift(attend.isQuantized() && !attend.isMixed() ? 1 : byteSize(attend.cache));
  attend.queryShift = shift(byteSize(attend.queries));
  attend.intoShift = shift(byteSize(attend.givesPartials ? DType::f32 : attend.into));
}

// A number that is none in a key or a value of one sequence, or in its scales.
void drawSpecial(Case& attend, Seeded& random) {
  const uint64_t sequence = random.below(attend.sequences.size());
  const CacheGeometry cache{
      .heads = attend.kvHeads, .capacity = attend.capacity, .wrap = attend.wrap, .pinned = attend.pinned};
  const uint64_t held = heldKeys(cache, attend.sequences[sequence]).size();
  if (held == 0) return;
  SpecialElement special{.isKey = coin(random, 1, 2), .sequence = sequence, .kvHead = random.below(attend.kvHeads)};
  special.key = random.below(held);
  const bool isCoded = (special.isKey ? attend.keyCodec : attend.valueCodec).has_value();
  // An infinite scale, or an infinite element of a key, may give a score of -inf, which has no weight.
  const bool mayBeInfinite = !isCoded && !attend.isLatent;
  special.number = mayBeInfinite ? oneOf(random, {kNotANumber, kInfiniteNumber, -kInfiniteNumber}) : kNotANumber;
  if (!isCoded && (!special.isKey || std::isnan(special.number))) {
    special.element = random.below(special.isKey ? attend.headDim : attend.valueHeadDim);
  }
  attend.specials = {special};
}

void drawContents(Case& attend, Seeded& random) {
  const uint64_t drawn = random.below(12);
  if (drawn < 2) attend.size = oneOf(random, {0.0f, 16.0f, 300.0f, 3e4f});
  if ((drawn == 2 || drawn == 3) && attend.queries != DType::f16) {
    // Of any magnitude, if the scale makes up for it: all queries, or some of them beside others, so that scores of the
    // former are those of queries of size 1.
    attend.size = oneOf<float>(random, {1e-16f, 1e-9f, 7e4f, 1e30f});
    attend.options.scale = 1 / attend.size;
    if (coin(random, 3, 4)) attend.sizes = {attend.size, 1, kNotANumber, attend.size, 0, kInfiniteNumber, attend.size};
  }
  // Where weights are far from zero, since zero times infinity is NaN.
  const bool hasUsualScores = (attend.options.scale == 0 || attend.isLatent) && attend.options.softcap == 0 &&
                              !attend.hasSlopes && !(attend.mask && attend.mask->isExtreme());
  if (drawn > 3 && drawn < 8 && hasUsualScores) drawSpecial(attend, random);
}

std::string codingText(const Case& attend, bool isKeys) {
  const auto& codec = isKeys ? attend.keyCodec : attend.valueCodec;
  return fmt::format("{} at {}", codec ? codec->text() : std::string(name(attend.cache)),
                     isKeys ? attend.headDim : attend.valueHeadDim);
}

}  // namespace

std::span<const HeadDims> denseHeadDims() {
  // Those with kernels of their own, and others, which longer kernels serve.
  static const std::vector<HeadDims> all = [] {
    std::vector<HeadDims> dims{{192, 128}, {576, 512}, {512, 512}, {96, 64},   {64, 128}, {72, 40}, {8, 256},
                               {256, 8},   {192, 64},  {200, 80},  {136, 128}, {56, 248}, {128, 96}};
    for (uint64_t dim = 8; dim <= 136; dim += 8) dims.push_back({dim, dim});
    for (const uint64_t dim : {160, 192, 200, 248, 256}) dims.push_back({dim, dim});
    return dims;
  }();
  return all;
}

const std::vector<DrawnCoding>& attendedCodings() {
  static const std::vector<DrawnCoding> all = [] {
    std::vector<DrawnCoding> codings = everyCoding();
    std::erase_if(codings, [](const DrawnCoding& coding) { return coding.headDim < 32 || coding.headDim > 512; });
    return codings;
  }();
  return all;
}

Case drawnAttention(AttentionKind kind, uint64_t number, Seeded& random) {
  Case attend{.name = "drawn", .sequences = {}, .options = {}};
  drawStorage(attend, random, kind, number);
  const uint64_t most = drawRows(attend, random, kind);
  if (attend.isLatent) attend.options.scale = 1 / std::sqrt(192.0f);
  if (coin(random, 2, 5)) {
    attend.wrap = KVWrap::ring;
    attend.capacity = 1 + random.below(coin(random, 1, 2) ? 8 : std::min<uint64_t>(most, 90));
    if (kind == Kind::prompt) attend.capacity += attend.rows;
    if (coin(random, 1, 2)) attend.pinned = static_cast<uint32_t>(random.below(attend.capacity));
  }
  attend.options.isCausal = coin(random, 4, 5);
  attend.hasSlopes = coin(random, 1, 5);
  if (coin(random, 1, 3)) attend.options.window = static_cast<uint32_t>(1 + random.below(most));
  if (coin(random, 1, 24)) attend.options.window = 0x7fffffff;
  drawSequences(attend, random, most);
  narrowWindow(attend);
  drawOptions(attend, random);
  const bool isOfGPUs = kind == Kind::latent || kind == Kind::prompt;
  if (coin(random, 1, isOfGPUs ? 10 : 2)) attend.options.kernel = AttentionOptions::Kernel::vector;
  drawMemory(attend, random);
  drawContents(attend, random);
  return attend;
}

std::vector<Case> drawnAttentions(AttentionKind kind, uint64_t rounds) {
  constexpr std::array<uint64_t, 4> kCounts{216, 180, 100, 80};
  Seeded random(236, static_cast<uint64_t>(kind));  // the same every time: together they reach every kernel
  std::vector<Case> cases;
  for (uint64_t number = 0; number < rounds * kCounts.at(static_cast<size_t>(kind)); ++number) {
    Case& attend = cases.emplace_back(drawnAttention(kind, number, random));
    attend.name = fmt::format("case {}.{}: {} rows of {} heads over {}, {} and {}{}", static_cast<int>(kind), number,
                              attend.queryRows(), attend.heads(), attend.longest(), codingText(attend, true),
                              codingText(attend, false), attend.isOneTensor ? " in one tensor" : "");
  }
  return cases;
}

std::vector<Case> rareAttentions() {
  std::vector<Case> cases;
  // Over f16, with what is changed.
  const auto add = [&](std::string name, uint64_t headDim, uint64_t length, const auto& change) {
    Case attend{.name = std::move(name),
                .cache = DType::f16,
                .headDim = headDim,
                .valueHeadDim = headDim,
                .sequences = {{0, length}},
                .givesLogSumExp = true,
                .options = {}};
    change(attend);
    cases.push_back(attend);
  };
  add("the largest number of splits, most of them empty", 32, 40,
      [](Case& c) { c.options.splits = static_cast<uint32_t>(FlashDecode::kMaxSplits); });
  // The positions of its rows are below zero, by which no window may be counted.
  add("rows of an empty sequence with the largest window", 32, 0, [](Case& c) {
    c.cache = DType::f32;
    c.cacheSequences = 2, c.rows = 5;
    c.sequences = {{0, 0}, {1, 7}};
    c.options.window = 0x7fffffff;
  });
  add("128 heads over a latent cache in splits", 64, 40, [](Case& c) {
    c.valueHeadDim = 512;
    c.isLatent = c.isOneTensor = true;
    c.queries = DType::f16;
    c.kvHeads = 1, c.group = 128;
    c.options.scale = 0.1f, c.options.splits = 3;
  });
  // Kernels for several rows differ from those for one, and of nine the last is in a pass of its own. Only some rows
  // see the first and the last key.
  for (const uint64_t rows : {1, 2, 3, 9}) {
    for (const uint64_t key : {0, 18, 19}) {
      add(fmt::format("an infinite value of key {} and {} rows", key, rows), 64, 20, [&](Case& c) {
        c.rows = rows;
        c.options.window = static_cast<uint32_t>(21 - rows), c.options.splits = 2;
        c.specials = {{.isKey = false, .key = key, .element = 5, .number = kInfiniteNumber}};
      });
    }
  }
  // A score of 3e4 is a multiple of 1/512 in f32: what is allowed follows the size of scores.
  for (const auto& [size, splits] : {std::pair{3e4f, 1u}, {3e4f, 4u}, {3e6f, 1u}, {3e6f, 4u}}) {
    add(fmt::format("scores of queries up to {} in {} splits", size, splits), 32, 17,
        [&](Case& c) { c.rows = 2, c.size = size, c.options.splits = splits; });
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    add(fmt::format("rows that the lowest {} closes", name(dtype)), 32, 60, [&](Case& c) {
      c.rows = 3, c.options.splits = 7;
      c.mask = MaskCase{.dtype = dtype, .hasEmptyRows = true, .hasFiniteHoles = true};
    });
  }
  // Windows that begin inside a tile of the matrix kernel, for one row and for several.
  for (const uint64_t rows : {1, 3, 8}) {
    add(fmt::format("windows of {} rows that begin inside a tile", rows), 64, 100, [&](Case& c) {
      c.rows = rows, c.options.window = 43, c.options.splits = 1;
      c.options.kernel = AttentionOptions::Kernel::vector;
    });
  }
  // Long tiles of the matrix kernel, for a block of rows and for two.
  for (const auto& [headDim, group] : {std::pair<uint64_t, uint64_t>{64, 1}, {128, 1}, {128, 16}}) {
    add(fmt::format("{} heads of {} over many codes", group, headDim), headDim, 530, [&](Case& c) {
      c.keyCodec = KVCodec{.bits = 4}, c.valueCodec = KVCodec{.bits = 3};
      c.queries = DType::f16;
      c.kvHeads = 1, c.group = group;
      c.options.splits = 1, c.options.kernel = AttentionOptions::Kernel::vector;
    });
  }
  // More sequences than one dispatch has room for, the longest of them in the second.
  for (const bool isRagged : {false, true}) {
    add(fmt::format("135 sequences{}", isRagged ? " with rows of their own" : ""), 32, 0, [&](Case& c) {
      c.kvHeads = c.group = 1, c.cacheSequences = 135;
      c.rows = isRagged ? 11 : 1;
      c.options.kernel = AttentionOptions::Kernel::vector;
      c.sequences.clear();
      for (uint64_t s = 0; s < 135; ++s) {
        const uint64_t rows = s < 130 ? 1 : s - 124;
        c.sequences.push_back({134 - s, isRagged ? rows + s % 6 : s % 6, 0, isRagged ? rows : 0});
      }
    });
  }
  return cases;
}

std::vector<Case> allAttentions() {
  std::vector<Case> all = rareAttentions();
  for (const AttentionKind kind : kEveryKind) {
    const std::vector<Case> drawn = drawnAttentions(kind);
    all.insert(all.end(), drawn.begin(), drawn.end());
  }
  return all;
}

}  // namespace mnk::test
