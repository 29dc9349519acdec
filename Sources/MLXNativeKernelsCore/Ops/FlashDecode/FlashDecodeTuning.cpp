#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <vector>

#include "FlashDecode/FlashDecodeTypes.h"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// A device uses the first row whose family is a prefix of its own; the last row matches all devices.
constexpr FlashDecodeTuning kTable[] = {
    // CPU threads: more threadgroups than cores only add overhead, and shuffles are expensive.
    {.family = "host",
     .vectorSimdgroups = 1,
     .matrixSimdgroups = 1,
     .reduceSimdgroups = 1,
     .threadgroupsPerCore = 2,
     .minSplitKeys = 256,
     .maxMatrixRows = 16,
     .denseMatrixTile = 1024,
     .quantizedMatrixTile = 4096,
     .matrixTableBits = 15,
     .minPrefillRows = UINT32_MAX,  // products of matrices are emulated
     .minLatentRows = UINT32_MAX,
     .cores = 2,
     .sharesAmongFewLanes = true},
    // An estimate: nothing has been measured on an Apple GPU. It selects kernels that fit in 128 registers when
    // compiled for another GPU: up to four rows in the vector kernel, eight rows with small tiles in the matrix kernel,
    // and no matrix kernel for head dim 256. It selects the matrix kernel if the vector kernel would read the cache
    // twice, and otherwise the vector kernel, which computes in f32. For a key and a value of 128 codes of 4 bits, the
    // vector kernel needs 126 instructions for four rows. The matrix kernel needs 48 for eight rows, and four 8x8
    // products, each of which takes as long as 16 instructions if products run at the rate of scalar ones, as they do
    // before M5: 112 together. For four rows, that is too little to make up for its 16 KiB tables, which each
    // threadgroup fills. It is also an estimate that the prefill kernel is faster than two passes.
    // Many small threadgroups: with 128 registers a thread, a core holds about 12 simdgroups at a time, so that
    // threadgroups of eight would leave a third of it unused, and three of four fill it. With eight threadgroups a
    // core, rounded up, no core waits long for the last ones. A split has at least 16 keys for each of its simdgroups,
    // so that short contexts have fewer parts to merge. Other libraries for these GPUs also run tens of small
    // threadgroups for each head. In the prefill kernel, one block of rows fits in about 128 registers.
    {.family = "apple",
     .vectorSimdgroups = 4,
     .matrixSimdgroups = 4,
     .reduceSimdgroups = 8,
     .threadgroupsPerCore = 8,
     .fillsCores = true,
     .minSplitKeys = 64,
     .denseMatrixRows = 5,
     .quantizedMatrixRows = 5,
     .maxVectorRows = 4,
     .matrixHeadDim = 128,
     .denseMatrixTile = 1024,
     .quantizedMatrixTile = 1024,
     .maxPrefillBlocks = 1,
     .cores = 10},
    // Any other device, of which only the number of cores is known: the number of threadgroups that certainly run
    // concurrently.
    // The following was measured on an H200 with the kernels translated to PTX, for 8 KV heads, 1 to 64 Ki keys and
    // head dims 64 to 512. Two threadgroups per core double the parts to merge, which takes 2 to 6 us; fewer than one
    // leave cores idle. An in-kernel merge saves 1 us for up to 16 parts and costs time beyond that. With four rows
    // over f16 and 1, 4, 16 and 64 Ki keys, the matrix kernel takes 9.6, 12.9, 24.5 and 68.7 us, and the vector kernel
    // 9.7, 13.3, 25.9 and 72.1 us; with one row, the vector kernel is faster. For quantized caches, the matrix kernel
    // is faster with any number of rows. For 64 Ki keys of 4 bits, tiles of 32 keys take 36 us instead of 44 us with 16
    // keys; for 1 Ki keys, where a simdgroup has less than one such tile, they take 11.0 us instead of 10.6 us.
    // Codebook tables with a copy for each of 32 banks take 44 us instead of 47 us for 64 Ki keys, and 12 simdgroups
    // 33 us instead of 35 us. For 16 Ki keys, two threadgroups per core take 28 instead of 34 us over f16 of head dim
    // 112 and 93 instead of 119 us of 512, but more time over f16 of 80, 96 and 192; over f16 of 256, tiles of 16 keys
    // take 45 instead of 53 us.
    {.family = "",
     .longMatrixSimdgroups = 12,
     .longVectorFactor = 2,
     .denseMatrixRows = 2,
     .quantizedMatrixRows = 1,
     .maxMatrixRows = 16,
     .quantizedMatrixTile = 4096,
     .minMatrixKeys = 16,
     .matrixTableBits = 15,
     .maxInKernelSplits = 16},
};

#define ROW(keyDim, valueDim, rows) {keyDim, valueDim, rows},
constexpr AttentionInstance kAttentionInstances[] = {MNK_FLASH_VECTOR_INSTANCES(ROW)};
constexpr AttentionInstance kFewLanesInstances[] = {MNK_FLASH_FEW_LANES_INSTANCES(ROW)};
constexpr AttentionInstance kLatentInstances[] = {MNK_FLASH_LATENT_INSTANCES(ROW)};
constexpr AttentionInstance kLatentFewLanesInstances[] = {MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW)};
#undef ROW

#define ROW(headDim, rows, keys) {headDim, rows, keys},
constexpr MatrixInstance kMatrixInstances[] = {MNK_FLASH_MATRIX_INSTANCES(ROW)};
#undef ROW

#define ROW(type, dim, rowBlocks, keys) {std::string_view(#type) == "f16", dim, 0, rowBlocks, keys, 1},
constexpr PrefillInstance kPrefillInstances[] = {MNK_FLASH_PREFILL_INSTANCES(ROW)};
#undef ROW
#define ROW(type, dim, extra, rowBlocks, keys) {std::string_view(#type) == "f16", dim, extra, rowBlocks, keys, 4},
constexpr PrefillInstance kLatentPrefillInstances[] = {MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)};
#undef ROW

// Longer instances serve vectors up to this length if no load crosses the end of a vector.
constexpr uint64_t kMaxPaddedDim = 256;
constexpr uint64_t kPaddedUnit = 8;

bool canBePadded(uint64_t headDim) {
  return headDim != 0 && headDim <= kMaxPaddedDim && headDim % kPaddedUnit == 0;
}

}  // namespace

const FlashDecodeTuning& tuningFor(const DeviceProfile& profile) {
  return *std::ranges::find_if(kTable, [&](const auto& row) { return profile.family.starts_with(row.family); });
}

bool hasAttentionKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent) {
  const KVCodec turbo;  // mlx1 adds no head dim that a kernel supports
  if (isQuantized && (!turbo.canQuantize(keyDim) || !turbo.canQuantize(valueDim))) return false;
  return vectorInstance({}, keyDim, valueDim, 1, isQuantized, isLatent).rows != 0;
}

std::string attentionDimsText(bool isQuantized, bool isLatent) {
  if (isLatent) return "64 of keys beside a latent part of 512";
  return isQuantized ? "32, 64, 80, 96, 112, 128, 192 or 256, or 512 for both"
                     : "multiples of 8 up to 256, 512, or 576 with 512";
}

AttentionInstance vectorInstance(const FlashDecodeTuning& tuning, uint64_t keyDim, uint64_t valueDim, uint64_t rows,
                                 bool isQuantized, bool isLatent) {
  using Instances = std::span<const AttentionInstance>;
  Instances instances = isLatent ? Instances(kLatentInstances) : Instances(kAttentionInstances);
  if (tuning.sharesAmongFewLanes) {
    instances = isLatent ? Instances(kLatentFewLanesInstances) : Instances(kFewLanesInstances);
  }
  rows = std::min<uint64_t>(rows, tuning.maxVectorRows);
  const bool isPaddable = !isLatent && canBePadded(keyDim) && canBePadded(valueDim);
  AttentionInstance best;
  // Instances are listed from short vectors to long ones, and from few rows to many.
  for (const AttentionInstance& instance : instances) {
    const bool isExact = instance.keyDim == keyDim && instance.valueDim == valueDim;
    const bool isLongEnough = isPaddable && instance.keyDim >= keyDim && instance.valueDim >= valueDim;
    const bool hasPowerOfTwo = instance.keyDim == instance.valueDim && std::has_single_bit(instance.keyDim);
    if ((!isExact && !isLongEnough) || (isQuantized && !isLatent && !hasPowerOfTwo)) continue;
    if (best.rows != 0 && (instance.keyDim != best.keyDim || instance.valueDim != best.valueDim)) break;
    if (best.rows == 0 || best.rows < rows) best = instance;
  }
  return best;
}

uint32_t matrixDim(uint64_t headDim, bool isQuantized) {
  uint32_t best = 0;
  for (const MatrixInstance& instance : kMatrixInstances) {
    constexpr uint64_t kMostPadding = 64;
    const bool isPadded = isQuantized && headDim > kMostPadding && instance.headDim > headDim;
    if (instance.headDim == headDim || (isPadded && best == 0)) best = instance.headDim;
  }
  return best;
}

uint32_t matrixRows(const FlashDecodeTuning& tuning, uint64_t headDim, uint64_t rows) {
  uint32_t best = 0;
  for (const MatrixInstance& instance : kMatrixInstances) {
    if (instance.headDim != headDim || instance.rows > tuning.maxMatrixRows) continue;
    if (best < rows) best = instance.rows;  // instances are listed from few rows to many
  }
  return best;
}

uint32_t matrixTileKeys(uint64_t headDim, uint32_t instanceRows, uint64_t mostKeys) {
  uint32_t best = 0;
  for (const MatrixInstance& instance : kMatrixInstances) {
    if (instance.headDim != headDim || instance.rows != instanceRows) continue;
    if (best == 0 || instance.keys <= mostKeys) best = instance.keys;  // from few keys to many
  }
  return best;
}

std::span<const MatrixInstance> matrixInstances() {
  return kMatrixInstances;
}

PrefillInstance prefillInstance(uint64_t keyDim, uint64_t valueDim, bool isHalf, bool isLatent, uint32_t maxBlocks) {
  constexpr uint64_t kMaxOfASimdgroup = 128;
  constexpr uint32_t kMaxParts = 2;
  const uint32_t denseParts = keyDim > kMaxOfASimdgroup ? kMaxParts : 1;
  PrefillInstance best;
  using Instances = std::span<const PrefillInstance>;
  for (PrefillInstance instance : isLatent ? Instances(kLatentPrefillInstances) : Instances(kPrefillInstances)) {
    if (!isLatent) instance.parts = denseParts;
    const uint64_t ofKeys = uint64_t{isLatent ? instance.extra : instance.dim} * instance.parts;
    if (instance.isHalf != isHalf || ofKeys != keyDim || uint64_t{instance.dim} * instance.parts != valueDim) continue;
    // Instances are listed from few blocks to many, then from few keys to many.
    const bool isBetter = instance.rowBlocks > best.rowBlocks || instance.parts == 1;
    if (best.parts == 0 || (instance.rowBlocks <= maxBlocks && isBetter)) best = instance;
  }
  return best;
}

uint64_t coresOf(const FlashDecodeTuning& tuning, const DeviceProfile& profile) {
  return profile.cores != 0 ? profile.cores : tuning.cores;
}

uint32_t automaticSplits(const FlashDecodeTuning& tuning, const DeviceProfile& profile, uint64_t threadgroups,
                         uint64_t longest) {
  const uint64_t cores = coresOf(tuning, profile);
  const uint64_t heads = std::max<uint64_t>(threadgroups, 1);
  const uint64_t wanted = (cores * tuning.threadgroupsPerCore + (tuning.fillsCores ? heads - 1 : 0)) / heads;
  const uint64_t most = std::clamp<uint64_t>(longest / tuning.minSplitKeys, 1, FlashDecode::kMaxSplits);
  return withoutEmptySplits(std::clamp<uint64_t>(wanted, 1, most), longest);
}

uint32_t withoutEmptySplits(uint64_t splits, uint64_t keys) {
  const uint64_t ofEach = splitKeys(keys, splits);
  return static_cast<uint32_t>(ofEach == 0 ? 1 : (keys + ofEach - 1) / ofEach);
}

uint64_t splitKeys(uint64_t keys, uint64_t splits) {
  constexpr uint64_t kUnit = 16;  // split sizes are multiples of it
  return ((keys + splits - 1) / splits + kUnit - 1) / kUnit * kUnit;
}

namespace {

constexpr std::string_view kVector = "vector", kMatrix = "matrix", kPrefill = "prefill",
                           kPrompt = "prompt:", kSeparate = "separate", kTogether = "together";
constexpr uint32_t kMaxSimdgroups = 32;
constexpr uint64_t kMaxExtent = uint64_t{1} << 32;
constexpr uint64_t kMaxPrompt = 2048;  // tokens; longer prompts take the same choice

std::string_view kernelName(const FlashDecodeChoice& choice) {
  return choice.usesMatrices ? kMatrix : choice.usesPrefill ? kPrefill : kVector;
}

std::string lineOf(const FlashDecodeWorkload& w, const FlashDecodeChoice& c) {
  return fmt::format("{} {} {} {} {}{} {} {} {} {} {} {} {} {}\n", w.storage, name(w.queries), w.keyDim, w.valueDim,
                     w.isPrompt ? kPrompt : "", w.rows, w.heads, w.keys, kernelName(c), c.rowsPerTile, c.tileKeys,
                     c.simdgroups, c.splits, c.mergesInKernel ? kTogether : kSeparate);
}

// Splits a line at each separator.
std::vector<std::string_view> words(std::string_view line, char separator = ' ') {
  std::vector<std::string_view> found;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    found.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

template <typename Number>
bool readNumber(std::string_view word, Number& into, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value > most) return false;
  into = static_cast<Number>(value);
  return true;
}

std::optional<DType> queryType(std::string_view word) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    if (word == name(type)) return type;
  }
  return std::nullopt;
}

bool canRun(const FlashDecodeWorkload& workload, const FlashDecodeChoice& choice) {
  if (choice.simdgroups == 0 || choice.splits == 0) return false;
  if (workload.isPrompt && !choice.usesPrefill) return false;
  if (choice.usesPrefill) {
    // Keys and values of one head dim are those of a cache that is not latent.
    const bool isLatent = workload.keyDim != workload.valueDim;
    const std::vector<std::string_view> planes = words(workload.storage, ':');
    const bool isHalf = workload.queries != DType::f32 && std::ranges::none_of(planes, [](std::string_view plane) {
                          return plane == name(DType::f32) || plane == name(DType::bf16);
                        });
    const auto instance = prefillInstance(workload.keyDim, workload.valueDim, isHalf, isLatent, choice.rowsPerTile / 8);
    return instance.parts != 0 && choice.rowsPerTile == 8 * instance.rowBlocks && choice.tileKeys == instance.keys &&
           !choice.mergesInKernel;
  }
  if (!choice.usesMatrices) return choice.rowsPerTile == 0 && choice.tileKeys == 0;
  if (workload.keyDim != workload.valueDim) return false;
  const bool isQuantized = workload.storage.find(':') != workload.storage.npos;
  const uint32_t headDim = matrixDim(workload.keyDim, isQuantized);
  for (const MatrixInstance& instance : matrixInstances()) {
    const bool isIt = instance.rows == choice.rowsPerTile && instance.keys == choice.tileKeys;
    if (isIt && instance.headDim == headDim) return true;
  }
  return false;
}

bool readLine(std::string_view line, FlashDecodeWorkload& w, FlashDecodeChoice& c) {
  const auto all = words(line);
  if (all.size() != 13) return false;
  const auto type = queryType(all[1]);
  if (!type) return false;
  w.storage = all[0];
  w.queries = *type;
  c.usesMatrices = all[7] == kMatrix;
  c.usesPrefill = all[7] == kPrefill;
  c.mergesInKernel = all[12] == kTogether;
  w.isPrompt = all[4].starts_with(kPrompt);
  const std::string_view rows = all[4].substr(w.isPrompt ? kPrompt.size() : 0);
  return readNumber(all[2], w.keyDim, kMaxExtent) && readNumber(all[3], w.valueDim, kMaxExtent) &&
         readNumber(rows, w.rows, kMaxExtent) && readNumber(all[5], w.heads, kMaxExtent) &&
         readNumber(all[6], w.keys, kMaxExtent) && readNumber(all[8], c.rowsPerTile, kMaxExtent - 1) &&
         readNumber(all[9], c.tileKeys, kMaxExtent - 1) && readNumber(all[10], c.simdgroups, kMaxSimdgroups) &&
         readNumber(all[11], c.splits, FlashDecode::kMaxSplits) && canRun(w, c) &&
         lineOf(w, c) == fmt::format("{}\n", line);
}

std::string storageOf(const AttentionShape& shape) {
  if (!shape.quantized) return std::string(name(*shape.denseType));
  const auto planeText = [](const QuantizedKVPlane& plane) {
    return plane.isDense() ? std::string(name(plane.codes.dtype()))
                           : fmt::format("{}{}", name(plane.codec.name), plane.codec.bits);
  };
  const QuantizedKVPlane& values = *shape.quantized->values;
  const std::string keys = planeText(shape.quantized->keys);
  return shape.denseType ? fmt::format("{}:{}", keys, planeText(values))
                         : fmt::format("{}:{}", keys, values.codec.bits);
}

// How many times more keys the one has than the other.
double distance(uint64_t a, uint64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::max<uint64_t>(std::min(a, b), 1));
}

}  // namespace

std::string FlashDecodeChoice::text() const {
  std::string kernel(kernelName(*this));
  if (usesMatrices || usesPrefill) kernel += fmt::format(" {}x{}", rowsPerTile, tileKeys);
  const std::string_view merge = splits == 1 ? "" : mergesInKernel ? ", merged together" : ", merged separately";
  return fmt::format("{}, {}, {}{}", kernel, countText(simdgroups, "simdgroup"), countText(splits, "split"), merge);
}

FlashDecodeWorkload FlashDecodeWorkload::of(const AttentionShape& shape, bool isPrompt) {
  const uint64_t tokens = isPrompt ? std::bit_ceil(std::min(shape.longestRows, kMaxPrompt))
                                   : std::min(shape.longestRows, FlashDecode::kRowsPerPass);
  FlashDecodeWorkload workload{.storage = storageOf(shape),
                               .queries = shape.queryView.tensor.dtype(),
                               .keyDim = shape.keyDim,
                               .valueDim = shape.valueDim,
                               .rows = shape.group() * tokens,
                               .isPrompt = isPrompt,
                               .heads = shape.slots.heads * shape.sequences.size()};
  for (const AttendedSequence& attended : shape.sequences) {
    const KeyRange seen = shape.keysSeen(shape.keysOf(attended, 0), attended, 0, shape.rowsOf(attended));
    workload.keys = std::max(workload.keys, seen.count());
  }
  return workload;
}

std::string FlashDecodeWorkload::text() const {
  const std::string dims = keyDim == valueDim ? fmt::format("{}", keyDim) : fmt::format("{} and {}", keyDim, valueDim);
  return fmt::format("{}, head dim {}, {}{} of {}, {}, {}", storage, dims, isPrompt ? "a prompt of " : "",
                     countText(rows, "row"), name(queries), countText(heads, "head"), countText(keys, "key"));
}

std::optional<FlashDecodeChoice> MeasuredTuning::find(const FlashDecodeWorkload& workload) const {
  const auto after = choices_.lower_bound(workload);
  std::optional<FlashDecodeChoice> best;
  double least = 2;
  const auto consider = [&](const auto& entry) {
    FlashDecodeWorkload same = workload;
    same.keys = entry.first.keys;
    const double far = distance(workload.keys, same.keys);
    if (same != entry.first || far > least || (best && far == least)) return;
    least = far;
    best = entry.second;
  };
  if (after != choices_.begin()) consider(*std::prev(after));
  if (after != choices_.end()) consider(*after);
  return best;
}

void MeasuredTuning::set(const FlashDecodeWorkload& workload, const FlashDecodeChoice& choice) {
  choices_[workload] = choice;
}

std::string MeasuredTuning::lines() const {
  std::string all;
  for (const auto& [workload, choice] : choices_) all += lineOf(workload, choice);
  return all;
}

std::optional<MeasuredTuning> MeasuredTuning::parse(std::string_view lines) {
  MeasuredTuning tuning;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == lines.npos) return std::nullopt;
    FlashDecodeWorkload workload;
    FlashDecodeChoice choice;
    if (!readLine(lines.substr(0, end), workload, choice)) return std::nullopt;
    if (!tuning.choices_.emplace(workload, choice).second) return std::nullopt;
    lines.remove_prefix(end + 1);
  }
  return tuning;
}

}  // namespace mnk
