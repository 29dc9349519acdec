#include "CacheModel.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace mnk::fuzz {

namespace {

constexpr std::string_view kTooFew = "a sequence has fewer positions than queries";
constexpr std::string_view kLost = "a window reaches positions that the ring has overwritten";
constexpr std::string_view kPastEnd = "the write runs past the end of a linear cache";
constexpr std::string_view kNoKernelHere = "there is no kernel for these head dims";
constexpr std::string_view kUnknown = "the sequence is not in the cache";
constexpr std::string_view kUnnamed = "the call does not say which sequence of the cache it is for";
constexpr std::string_view kRotated = "the step rotates tokens by the cache's next positions and does not append them";
constexpr std::string_view kOtherKeys = "the step rotates tokens by the cache's next positions and uses other keys";
constexpr std::string_view kOtherQueries =
    "the step rotates tokens by the cache's next positions and uses other queries";
constexpr std::string_view kMovedKeys = "keys were rotated for another token";
constexpr std::string_view kMovedQueries = "queries were rotated for another token";
constexpr std::string_view kMovedTokens = "tokens were rotated for another token";
constexpr std::string_view kTwice = "tokens are rotated twice";
constexpr std::string_view kTurnedKeys = "keys were rotated by another embedding than the step's keys";
constexpr std::string_view kTurnedQueries = "queries were rotated by another embedding than the step's keys";
constexpr std::string_view kTwoEmbeddings = "a step rotates tokens of a sequence by two embeddings";
constexpr std::string_view kListedAgain = "a sequence is listed again in attention that is not causal";

}  // namespace

std::optional<mnk_heads_view_strides> placesOf(const HeadsSpec& heads) {
  if (heads.view.has_strides) return heads.view.strides;
  const std::vector<uint64_t>& shape = heads.tensor->shape;
  const bool isHeadMajor = heads.view.layout == MNK_KV_LAYOUT_HEAD_MAJOR;
  if (shape.size() > 4 || shape.size() < (isHeadMajor ? 3 : 2)) return std::nullopt;
  std::vector<uint64_t> full(4 - shape.size(), 1);
  full.insert(full.end(), shape.begin(), shape.end());
  mnk_heads_view_strides places{};
  places.sequences = full[0];
  places.sequence_stride = full[1] * full[2] * full[3];
  places.head_dim = full[3];
  places.tokens = isHeadMajor ? full[2] : full[1];
  places.heads = isHeadMajor ? full[1] : full[2];
  places.token_stride = isHeadMajor ? full[3] : full[2] * full[3];
  places.head_stride = isHeadMajor ? full[2] * full[3] : full[3];
  return places;
}

std::vector<RowPlace> rowPlaces(const HeadsSpec& heads) {
  std::vector<RowPlace> all;
  if (!heads.tensor) return all;
  const mnk_heads_view_strides places = *placesOf(heads);
  for (uint64_t sequence = 0; sequence < places.sequences; ++sequence) {
    for (uint64_t token = 0; token < places.tokens; ++token) {
      const uint64_t element = places.offset + sequence * places.sequence_stride + token * places.token_stride;
      all.push_back({heads.tensor->region, heads.tensor->offset + element * heads.tensor->elementBytes()});
    }
  }
  return all;
}

uint64_t rowsOf(const std::vector<StepEntry>& entries) {
  return std::accumulate(entries.begin(), entries.end(), uint64_t{0},
                         [](uint64_t rows, const StepEntry& entry) { return rows + entry.rows; });
}

bool isEven(const std::vector<StepEntry>& entries) {
  return std::all_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.rows == entries[0].rows; });
}

// A row that has attended did not see tokens that are appended after it, also none at all.
std::string_view CacheModel::refusalOfOrder(const std::vector<StepEntry>& entries) const {
  for (const StepEntry& entry : entries) {
    if (!encoded_[entry.sequence].isAttendedFirst) continue;
    return "causal attention of this step has already read the sequence, without these tokens";
  }
  return {};
}

std::string_view CacheModel::refusalOfFull(const std::vector<StepEntry>& entries) const {
  if (cache_.isRing()) return {};
  std::map<uint32_t, uint64_t> added;
  for (const auto& [sequence, rows] : entries) {
    uint64_t& rowsSoFar = added[sequence];
    rowsSoFar += rows;
    if (rows == 0 || sequences_[sequence].next() + rowsSoFar <= cache_.capacity) continue;
    return entries.size() == 1 ? kPastEnd : "the sequence is full";
  }
  return {};
}

// Rows that were rotated are for their tokens, and tokens that were rotated are not left out for others. All of a
// sequence are turned as its keys are, which `angles` then has.
std::string_view CacheModel::refusalOfUse(const Tokens& tokens, const std::vector<RowPlace>& places, bool areKeys,
                                          AnglesOf& angles) const {
  for (size_t row = 0; row < tokens.size() && hasRotated_; ++row) {
    if (!tokens[row]) continue;
    if (rotated_.isMisplaced(places[row], *tokens[row])) return areKeys ? kMovedKeys : kMovedQueries;
    if (rotated_.isMissing(places[row], *tokens[row])) return areKeys ? kOtherKeys : kOtherQueries;
    const auto turned = rotated_.anglesAt(places[row]);
    if (!turned) continue;
    if (areKeys) angles.try_emplace(tokens[row]->sequence, *turned);
    const auto ofKeys = angles.find(tokens[row]->sequence);
    if (ofKeys != angles.end() && ofKeys->second != *turned) return areKeys ? kTurnedKeys : kTurnedQueries;
  }
  return {};
}

// Of a step that appends and attends.
std::string_view CacheModel::refusalOfRotation(const std::vector<StepEntry>& entries, const StepRows& rows) const {
  if (rows.next && nextPositions(*rows.next) != nextPositions(entries)) return kMovedTokens;
  const Tokens tokens = nextTokens(entries);
  AnglesOf angles = angles_;
  if (!rows.angles) {
    const std::string_view refusal = refusalOfUse(tokens, rows.keys, true, angles);
    return refusal.empty() ? refusalOfUse(tokens, rows.queries, false, angles) : refusal;
  }
  if (isRotatedOtherwise(entries, *rows.angles)) return kTwoEmbeddings;
  const auto isRotated = [&](const RowPlace& place) { return rotated_.anglesAt(place).has_value(); };
  return std::ranges::any_of(rows.queries, isRotated) || std::ranges::any_of(rows.keys, isRotated) ? kTwice : "";
}

std::string_view CacheModel::refusalOfAppend(const std::vector<StepEntry>& entries, const StepRows& rows) const {
  if (const std::string_view refusal = refusalOfOrder(entries); !refusal.empty()) return refusal;
  AnglesOf angles = angles_;
  const std::string_view refusal = refusalOfUse(nextTokens(entries), rows.keys, true, angles);
  if (!refusal.empty()) return refusal;
  return refusalOfFull(entries);
}

// Whether a row has a window in which a ring has overwritten positions.
bool CacheModel::reachesLost(const ModeledSequence& sequence, uint64_t row, const RowOptions& options) const {
  const uint64_t window = windowOf(options);
  return window != 0 && row >= cache_.pinned && !slots_.seen(sequence, row, {.window = window});
}

// Rows of a sequence that has too few positions have no tokens.
Tokens CacheModel::tokensOf(const std::vector<StepEntry>& entries, const std::vector<uint64_t>& behind) const {
  Tokens tokens;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto [sequence, rows] = entries[i];
    const uint64_t next = sequences_[sequence].next(), last = behind[i] + rows;
    for (uint64_t row = 0; row < rows; ++row) {
      tokens.push_back(last > next ? Tokens::value_type() : RotatedToken{sequence, next - last + row});
    }
  }
  return tokens;
}

std::string_view CacheModel::refusalOfWindows(const std::vector<StepEntry>& entries,
                                              const std::vector<uint64_t>& behind, const RowOptions& options) const {
  const bool needsPositions = options.isCausal || windowOf(options) != 0;
  // All attend at once: whether there are positions is checked of each before any window is.
  for (size_t i = 0; i < entries.size() && needsPositions; ++i) {
    const uint64_t next = sequences_[entries[i].sequence].next();
    if (entries[i].rows != 0 && next < behind[i] + entries[i].rows) return kTooFew;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const ModeledSequence& sequence = sequences_[entries[i].sequence];
    for (uint64_t row = behind[i] + entries[i].rows; row > behind[i]; --row) {
      if (row <= sequence.next() && reachesLost(sequence, sequence.next() - row, options)) return kLost;
    }
  }
  return {};
}

// Whether rows are of tokens that the ring has overwritten; rows that see each other, of a sequence that holds nothing.
bool CacheModel::isLost(const StepEntry& entry, uint64_t behind, const RowOptions& options) const {
  if (entry.rows == 0) return false;
  const ModeledSequence& sequence = sequences_[entry.sequence];
  if (!options.isCausal) return sequence.count() == 0;
  const uint64_t length = sequence.next() - std::min(sequence.next(), behind);
  for (uint64_t row = 1; row <= std::min(length, entry.rows); ++row) {
    if (!slots_.keeps(sequence, length - row)) return true;
  }
  return false;
}

std::string_view CacheModel::refusalOfAttend(const std::vector<StepEntry>& entries, const RowOptions& options,
                                             const StepRows& rows) const {
  std::map<uint32_t, uint64_t> rowsBehind;
  std::vector<uint64_t> behind(entries.size());
  bool hasRows = false, isAnyEmpty = false, isAnyLost = false, isListedAgain = false;
  for (size_t i = entries.size(); i-- > 0;) {
    const auto [sequence, count] = entries[i];
    behind[i] = rowsBehind[sequence];
    rowsBehind[sequence] += count;
    if (count == 0) continue;
    hasRows = true;
    isAnyEmpty = isAnyEmpty || sequences_[sequence].next() <= behind[i];
    isAnyLost = isAnyLost || isLost(entries[i], behind[i], options);
    isListedAgain = isListedAgain || (behind[i] != 0 && !options.isCausal);
  }
  const bool isList = entries.size() > 1;
  if (isList && isAnyEmpty) return kTooFew;
  if (options.isCausal) {  // other rows have no positions of their own
    AnglesOf angles = angles_;
    const std::string_view refusal = refusalOfUse(tokensOf(entries, behind), rows.queries, false, angles);
    if (!refusal.empty()) return refusal;
  }
  if (isListedAgain) return kListedAgain;
  if (cache_.is_storage_only && (hasRows || !isList)) return kNoKernelHere;
  if (isAnyEmpty) return kTooFew;
  if (const std::string_view refusal = refusalOfWindows(entries, behind, options); !refusal.empty()) return refusal;
  return isAnyLost ? "rows are of tokens that the ring has overwritten" : "";
}

// Whether this number of tokens can be stored before the first of them attends, without a loss of what it sees.
bool CacheModel::canServe(const ModeledSequence& sequence, uint64_t tokens, const RowOptions& options) const {
  if (!cache_.isRing() || tokens <= 1) return true;
  const uint64_t window = windowOf(options), next = sequence.next(), ring = cache_.capacity - cache_.pinned;
  if (window == 0) return next + tokens <= std::max<uint64_t>(sequence.highest(), cache_.capacity);
  const uint64_t first = std::max<uint64_t>(next, cache_.pinned);  // rows at pinned positions lose nothing
  return next + tokens <= std::max<uint64_t>(first + 1 - std::min(first + 1, window), cache_.pinned) + ring;
}

std::string_view CacheModel::refusalOfBoth(const std::vector<StepEntry>& entries, const RowOptions& options,
                                           bool isListed, const StepRows& rows) const {
  const bool isLatent = rows.angles && cache_.latent_dim != 0;
  const std::string_view order = refusalOfOrder(entries);
  if (!order.empty() && !(isListed && isLatent)) return order;  // views come before rows that are listed
  if (isLatent) return "a latent cache cannot rotate";
  if (const std::string_view refusal = refusalOfRotation(entries, rows); !refusal.empty()) return refusal;
  std::vector<ModeledSequence> sequences = sequences_;
  std::set<uint32_t> listed;
  for (const auto& [sequence, tokens] : entries) {
    if (tokens != 0 && !listed.insert(sequence).second && !options.isCausal) return kListedAgain;
  }
  if (const std::string_view refusal = refusalOfFull(entries); !refusal.empty()) return refusal;
  for (const auto& [sequence, tokens] : entries) {
    ModeledSequence& own = sequences[sequence];
    const bool isDivided = !canServe(own, tokens, options);
    for (uint64_t token = 0; token < tokens; ++token) {
      slots_.append(own, {});
      if (reachesLost(own, own.next() - 1, options)) {
        return windowOf(options) > cache_.capacity - cache_.pinned
                   ? "the ring is too small for the window"
                   : "the window reaches positions that the sequence has lost";
      }
      if (isDivided && !options.isCausal) return "attention that is not causal cannot be divided into chunks";
      if (cache_.is_storage_only) return kNoKernelHere;
    }
  }
  return cache_.is_storage_only && entries.size() == 1 ? kNoKernelHere
                                                       : "";  // an op also without rows, unlike in a list
}

std::string_view CacheModel::refusalOfCut(uint32_t sequence, uint64_t position) const {
  if (const std::string_view refusal = refusalOfName(sequence); !refusal.empty()) return refusal;
  const ModeledSequence& cut = sequences_[sequence == MNK_ONLY_SEQUENCE ? 0 : sequence];
  if (!slots_.servesAfterCut(cut, position, cache_.window())) return "the rollback is too long for the sliding window";
  return slots_.canCut(cut, position) ? "" : "the sequence cannot be cut there";
}

std::string_view CacheModel::refusalOfName(uint32_t sequence) const {
  if (sequence == MNK_ONLY_SEQUENCE) return sequences_.size() == 1 ? "" : kUnnamed;
  return sequence < sequences_.size() ? "" : kUnknown;
}

std::string_view CacheModel::refusalOfCopy(uint32_t source, uint32_t target) const {
  if (std::max(source, target) >= sequences_.size()) return kUnknown;
  return source != target && encoded_[target].rotatedEnd > sequences_[target].next() ? kRotated : "";
}

std::string_view CacheModel::refusalOfCommit() const {
  for (size_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    if (encoded_[sequence].rotatedEnd > sequences_[sequence].next()) return kRotated;
  }
  return {};
}

}  // namespace mnk::fuzz
