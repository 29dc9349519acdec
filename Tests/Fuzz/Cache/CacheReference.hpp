// What the calls of a cache program must do: what their errors say, where sequences stand after them, and the numbers
// that kernels write.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "CacheCall.hpp"
#include "CacheModel.hpp"

namespace mnk::fuzz {

using Floats = std::vector<float>;

// A call, with all that it needs to be made again.
struct DrawnCall {
  CacheCall call;
  std::vector<StepEntry> entries{};
  RowOptions options{};
  Floats queries{}, keys{}, values{};
  uint64_t axis = 0;                             // sequences of the views' axis for them; 0: none
  bool takesQueries = false, takesKeys = false;  // as a rotation of the encoder has left them in memory
};

// Where the rows of a call lie, and what rotates them.
inline StepRows rowsOf(const CacheCall& call) {
  StepRows rows{.queries = rowPlaces(call.queries), .keys = rowPlaces(call.keys)};
  if (call.rotation) rows.angles = call.rotation->angles();
  if (call.rotation && call.rotation->next) rows.next = call.rotation->next->entries;
  return rows;
}

class CacheReference {
 public:
  CacheReference(const CacheNumbers& cache, uint64_t queryHeads)
      : queryHeads_(queryHeads),
        model_(cache),
        slack_(cache.has_quantized ? 0.08 : (cache.latent_dim != 0 ? 4e-3 : 2e-5)) {}

  const CacheModel& model() const { return model_; }  // with the calls of the open encoder
  const CacheModel& committed() const { return committed_; }
  uint64_t queryHeads() const { return queryHeads_; }

  // What an error must say; empty where the call is fine.
  std::string_view refusalOf(const DrawnCall& drawn) const {
    const CacheCall& call = drawn.call;
    const std::vector<StepEntry>& entries = drawn.entries;
    if (call.kind == Kind::copy) return model_.refusalOfCopy(call.sequence, call.target);
    if (call.kind == Kind::rotate) return {};
    if (!call.hasSequences) {
      if (const std::string_view refusal = model_.refusalOfName(MNK_ONLY_SEQUENCE); !refusal.empty()) return refusal;
    }
    const StepRows rows = rowsOf(call);
    if (call.kind == Kind::append) return model_.refusalOfAppend(entries, rows);
    if (call.kind == Kind::attend) return model_.refusalOfAttend(entries, drawn.options, rows);
    const bool isListed = entries.size() != 1 || call.hasRowCounts;
    return model_.refusalOfBoth(entries, drawn.options, isListed, rows);
  }

  // Makes a call that is fine.
  void apply(const DrawnCall& drawn) {
    const CacheCall& call = drawn.call;
    const std::vector<StepEntry>& entries = drawn.entries;
    const RowOptions& options = drawn.options;
    const Floats& values = drawn.values;
    if (call.kind == Kind::copy) return model_.copy(call.sequence, call.target);
    Floats queries = drawn.takesQueries ? model_.rotated().read(rowPlaces(call.queries)) : drawn.queries;
    Floats keys = drawn.takesKeys ? model_.rotated().read(rowPlaces(call.keys)) : drawn.keys;
    if (call.rotation) rotate(drawn, queries, keys);
    if (call.kind == Kind::rotate) {
      for (const HeadsSpec* from : {&call.queries, &call.keys}) {
        if (call.rotation->next && !call.isInPlace) model_.rotated().leave(rowPlaces(*from));
      }
      expectRotated(call.queriesInto(), queries, *call.rotation);
      expectRotated(call.keysInto(), keys, *call.rotation);
      return;
    }
    if (call.rotation || drawn.takesQueries || drawn.takesKeys) store(call, keys);
    if (call.kind == Kind::attend)
      model_.noteAttend(entries, options);
    else
      model_.noteKeys(entries, rowsOf(call));
    const CacheNumbers& cache = model_.cache();
    const uint64_t keyLength = cache.kv_heads * cache.head_dim, valueLength = cache.kv_heads * cache.value_head_dim;
    const uint64_t rowLength = queryHeads_ * cache.queryDim();
    const auto part = [](const Floats& all, uint64_t first, uint64_t count) {
      return Floats(all.begin() + static_cast<ptrdiff_t>(first), all.begin() + static_cast<ptrdiff_t>(first + count));
    };
    std::vector<double> out;
    // Rows of an entry, from this one on, that as many newer ones of the same sequence follow.
    const auto attend = [&](const StepEntry& entry, uint64_t behind, uint64_t firstRow) {
      const uint64_t length = model_.sequences()[entry.sequence].next();
      for (uint64_t row = 0; row < entry.rows; ++row) {
        const auto query = std::span(queries).subspan((firstRow + row) * rowLength, rowLength);
        model_.attend(out, query, queryHeads_, entry.sequence, length - behind - entry.rows + row, options);
      }
    };
    uint64_t row = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto [sequence, rows] = entries[i];
      uint64_t behind = 0;
      for (size_t later = i + 1; later < entries.size(); ++later) {
        if (entries[later].sequence == sequence) behind += entries[later].rows;
      }
      if (call.kind == Kind::attend && rows != 0) attend(entries[i], behind, row);
      for (uint64_t end = row + rows; row < end; ++row) {
        if (call.kind == Kind::attend) continue;
        model_.append(sequence, part(keys, row * keyLength, keyLength), part(values, row * valueLength, valueLength));
        if (call.kind == Kind::appendAndAttend && options.isCausal) attend({sequence, 1}, 0, row);
      }
      // Rows that see each other attend when all are stored.
      if (call.kind == Kind::appendAndAttend && !options.isCausal && rows != 0) attend(entries[i], 0, row - rows);
    }
    if (!out.empty()) written_.push_back({*call.into, out, slack_});
  }

  // Cuts where no encoder is open.
  void cut(uint32_t sequence, uint64_t position) {
    model_.cut(sequence, position);
    committed_ = model_;
  }

  // Returns all that the encoder has written.
  std::vector<ExpectedNumbers> commit() {
    committed_ = model_;
    return std::exchange(written_, {});
  }

  // Another encoder begins. What was not committed is gone.
  void begin() {
    model_ = committed_;
    model_.begin();
    written_.clear();
  }

 private:
  using Kind = CacheCallKind;

  // The position of each row, by which it is rotated.
  std::vector<int64_t> turnsOf(const DrawnCall& drawn) {
    const CacheRotation& rotation = *drawn.call.rotation;
    const auto inCache = model_.nextPositions(rotation.next ? rotation.next->entries : drawn.entries);
    if (rotation.next) model_.noteRotation(rotation.next->entries);
    if (drawn.call.kind != Kind::rotate) return rotation.turns(drawn.entries, inCache);
    const uint64_t sequences = std::max<uint64_t>(drawn.axis, 1);
    return rotation.turns(std::vector<StepEntry>(sequences, {0, inCache.size() / sequences}), inCache);
  }

  // Queries and keys as the kernels see them: what they make of positions is rounded once or twice.
  void rotate(const DrawnCall& drawn, Floats& queries, Floats& keys) {
    const CacheNumbers& cache = model_.cache();
    const mnk_dtype queryType = drawn.call.queries.tensor->dtype, keyType = drawn.call.keys.tensor->dtype;
    const auto turns = turnsOf(drawn);
    for (uint64_t row = 0; row < turns.size(); ++row) {
      drawn.call.rotation->rotate(&queries[row * queryHeads_ * cache.head_dim], queryHeads_, cache.head_dim, turns[row],
                                  queryType);
      drawn.call.rotation->rotate(&keys[row * cache.kv_heads * cache.head_dim], cache.kv_heads, cache.head_dim,
                                  turns[row], keyType);
    }
  }

  // What a step makes of rotated rows, which 16 bits do not hold exactly.
  void store(const CacheCall& call, Floats& keys) {
    const CacheNumbers& cache = model_.cache();
    if (!cache.has_quantized) {
      for (float& key : keys) key = rounded(key, static_cast<mnk_dtype>(cache.dtype));
    }
    const bool isExact =
        (!call.queries.tensor || call.queries.tensor->dtype == MNK_F32) &&
        (!call.keys.tensor || (call.keys.tensor->dtype == MNK_F32 && (cache.has_quantized || cache.dtype == MNK_F32)));
    if (!isExact) slack_ = std::max(slack_, 0.03);
  }

  // Rows of a rotation as they lie in memory, for calls that follow it.
  void expectRotated(const HeadsSpec& into, const Floats& numbers, const CacheRotation& rotation) {
    const auto places = rowPlaces(into);
    const mnk_heads_view_strides view = *placesOf(into);
    auto number = numbers.begin();
    for (const RowPlace& row : places) {
      for (uint64_t head = 0; head < view.heads; ++head, number += static_cast<ptrdiff_t>(view.head_dim)) {
        TensorSpec vector{.dtype = into.tensor->dtype, .shape = {view.head_dim}, .region = row.region};
        vector.offset = row.byte + head * view.head_stride * vector.elementBytes();
        written_.push_back({vector, {number, number + static_cast<ptrdiff_t>(view.head_dim)}, 2e-5});
      }
    }
    if (rotation.next)
      model_.rotated().write(places, numbers, model_.nextTokens(rotation.next->entries), rotation.angles());
    else
      model_.rotated().write(places, numbers);
  }

  uint64_t queryHeads_;
  CacheModel model_;
  CacheModel committed_ = model_;
  // Codes of 8 bits, and the 16-bit probabilities of latent caches, are near enough to tell positions apart.
  double slack_;
  std::vector<ExpectedNumbers> written_;
};

}  // namespace mnk::fuzz
