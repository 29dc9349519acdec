#include "Ops/FlashDecode/MeasuredTuning.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include "Ops/FlashDecode/AttentionShape.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
