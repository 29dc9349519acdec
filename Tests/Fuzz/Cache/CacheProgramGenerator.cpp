#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "CacheCall.hpp"
#include "Harness/SoftFloat.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Kind = CacheCallKind;
using Floats = std::vector<float>;

class Generator {
 public:
  Generator(Arena& arena, Seeded& random, const CacheNumbers& cache)
      : arena_(arena),
        random_(random),
        queryHeads_(cache.kvHeads * (1 + random.below(2))),
        model_(cache, queryHeads_),
        slack_(cache.isQuantized ? 0.08 : (cache.latentDim != 0 ? 4e-3 : 2e-5)) {}

  std::vector<CacheCall> draw() {
    const uint64_t mutated = random_.below(10);  // which call, if the program is that long
    for (uint64_t index = 0, count = 2 + random_.below(7); index < count; ++index) {
      if (!isRecording_ && coin(random_, 1, 5)) {
        drawCut();
        continue;
      }
      if (!isRecording_ && hasStep_ && coin(random_, 1, 2)) {
        drawRun();
        continue;
      }
      if (!drawRecorded(index == mutated)) break;
      if (coin(random_, 1, 2)) end(coin(random_, 1, 6) ? Kind::drop : Kind::commit);
    }
    end(coin(random_, 1, 8) ? Kind::drop : Kind::commit);
    return std::move(calls_);
  }

 private:
  void add(CacheCall call) {
    call.committed = committed_.cursors();
    calls_.push_back(std::move(call));
  }

  void end(Kind kind) {
    CacheCall call{.kind = kind};
    if (kind == Kind::drop) {
      model_ = committed_;
    } else {
      call.results = std::move(attended_);
      committed_ = model_;
      if (isRecording_ && isStep_) {
        step_ = std::move(done_);
        hasStep_ = true;
        call.runs = runs_ = 1;
      }
    }
    attended_.clear();
    done_.clear();
    isRecording_ = false;
    add(std::move(call));
  }

  // The calls of the step once more, all of them or none.
  void drawRun() {
    CacheCall call{.kind = Kind::runStep};
    if (coin(random_, 1, 4)) call.setRuns = runs_ = random_.below(5);
    call.isEncoded = coin(random_, 1, 3);
    for (const Done& done : step_) {
      if (done.call.kind == Kind::copy) {
        model_.copy(done.call.sequence, done.call.target);
        continue;
      }
      axis_ = done.axis;
      call.refusal = refusalOf(done.call, done.entries, done.options);
      if (!call.refusal.empty()) break;
      apply(done, runs_);
    }
    if (call.refusal.empty()) {
      ++runs_;
      committed_ = model_;
      call.results = std::move(attended_);
    }
    model_ = committed_;
    attended_.clear();
    call.runs = runs_;
    add(std::move(call));
  }

  uint32_t anySequence() { return static_cast<uint32_t>(random_.below(model_.cursors().size())); }

  // A step back most of the time.
  void drawCut() {
    CacheCall call{.kind = Kind::truncate, .sequence = anySequence()};
    const uint64_t next = model_.cursors()[call.sequence].next;
    call.position = coin(random_, 3, 4) ? next - std::min(next, random_.below(4)) : edge(random_, {next, next / 2});
    if (coin(random_, 1, 12)) call.sequence = static_cast<uint32_t>(edge(random_, {model_.cursors().size()}));
    call.refusal = model_.refusalOfCut(call.sequence, call.position);
    if (call.refusal.empty()) model_.cut(call.sequence, call.position);
    committed_ = model_;
    add(std::move(call));
  }

  void drawCopy() {
    CacheCall call{.kind = Kind::copy, .sequence = anySequence(), .target = anySequence()};
    if (coin(random_, 1, 8)) {
      (coin(random_, 1, 2) ? call.sequence : call.target) =
          static_cast<uint32_t>(model_.cursors().size() + random_.below(2));
      call.refusal = "the sequence is not in the cache";
    } else {
      model_.copy(call.sequence, call.target);
      done_.push_back({.call = call});
    }
    addRecorded(std::move(call));
  }

  void addRecorded(CacheCall call) {
    call.beginsStep = beginsStep_;
    beginsStep_ = false;
    add(std::move(call));
  }

  // False where there is no more memory for operands.
  bool drawRecorded(bool isMutated) {
    if (!isRecording_) isStep_ = beginsStep_ = coin(random_, 1, 3);
    isRecording_ = true;
    const uint64_t draw = random_.below(10);
    if (draw == 0) {
      drawCopy();
      return true;
    }
    CacheCall call{.kind = draw < 4 ? Kind::append : (draw < 7 ? Kind::attend : Kind::appendAndAttend)};
    const std::vector<StepEntry> entries = drawEntries(call);
    const uint64_t rows = std::accumulate(entries.begin(), entries.end(), uint64_t{0},
                                          [](uint64_t n, const auto& e) { return n + e.rows; });
    const bool isEven =
        std::all_of(entries.begin(), entries.end(), [&](const auto& e) { return e.rows == entries[0].rows; });
    // As an axis of sequences, or one after another.
    const bool needsAxis = !call.hasRowCounts && entries.size() > 1 && entries[0].rows != 1;
    axis_ = isEven && (needsAxis || coin(random_, 1, 3)) ? entries.size() : 0;
    const mnk_dtype dtype = drawFloat();
    const CacheNumbers& cache = model_.cache();
    Floats queries, keys, values;
    bool isPlaced = true;
    if (call.kind != Kind::attend) {
      isPlaced = drawVectors(call.keys, keys, dtype, {rows, cache.kvHeads, cache.headDim}) &&
                 drawVectors(call.values, values, dtype, {rows, cache.kvHeads, cache.valueHeadDim});
    }
    if (call.kind != Kind::append) {
      isPlaced = isPlaced && drawVectors(call.queries, queries, drawFloat(), {rows, queryHeads_, cache.queryDim()}) &&
                 drawInto(call, rows);
    }
    if (!isPlaced) return false;
    const RowOptions options = drawOptions(call);
    const bool canRotate = call.kind == Kind::appendAndAttend && rows != 0 && !cache.isStorageOnly;
    if (canRotate && coin(random_, 1, 2) && !drawRotary(call, rows, isEven)) return false;
    call.refusal =
        call.rotation && cache.latentDim != 0 ? "a latent cache cannot rotate" : refusalOf(call, entries, options);
    if (call.refusal.empty() && !(isMutated && mutate(call, model_, random_))) {
      done_.push_back({call, entries, options, queries, keys, values, axis_});
      apply(done_.back(), 0);
    }
    addRecorded(std::move(call));
    return true;
  }

  bool drawRotary(CacheCall& call, uint64_t rows, bool isEven) {
    call.rotation = drawRotation(random_, model_.cache().headDim, rows, call.sequences.size(), isEven);
    std::vector<int32_t>& positions = call.rotation->positions;
    if (positions.empty() || coin(random_, 1, 2)) return true;
    TensorSpec spec{.dtype = MNK_I32, .shape = {rows}};
    if (!allocate(spec)) return false;
    arena_.fill(spec, std::as_bytes(std::span(positions)));
    call.rotation->positionsIn = spec;
    return true;
  }

  std::string_view refusalOf(const CacheCall& call, const std::vector<StepEntry>& entries,
                             const RowOptions& options) const {
    uint64_t most = call.hasRowCounts ? model_.cache().sequences : 0;
    for (const StepEntry& entry : entries) most += entry.rows;
    if (entries.size() > std::max<uint64_t>({most, axis_, 1})) return "there are too many sequences";
    if (call.kind == Kind::append) return model_.refusalOfAppend(entries);
    if (call.kind == Kind::attend) return model_.refusalOfAttend(entries, options);
    return model_.refusalOfBoth(entries, options);
  }

  std::vector<StepEntry> drawEntries(CacheCall& call) {
    std::vector<StepEntry> entries{{anySequence(), random_.below(5)}};
    if (call.kind == Kind::appendAndAttend) entries[0].rows = random_.below(12);
    while (entries.size() < 5 && coin(random_, 1, 3)) {
      entries.push_back({anySequence(), coin(random_, 1, 2) ? entries[0].rows : random_.below(4)});
    }
    const bool isEven =
        std::all_of(entries.begin(), entries.end(), [&](const auto& e) { return e.rows == entries[0].rows; });
    call.hasRowCounts = !isEven || coin(random_, 1, 2);
    // Without counts there is one row for each, or an axis of sequences.
    if (!call.hasRowCounts && entries.size() > 1 && (entries[0].rows == 0 || coin(random_, 1, 2))) {
      for (StepEntry& entry : entries) entry.rows = 1;
    }
    for (const auto& [sequence, rows] : entries) {
      call.sequences.push_back(sequence);
      if (call.hasRowCounts) call.rowCounts.push_back(static_cast<uint32_t>(rows));
    }
    call.hasSequences = entries.size() != 1 || entries[0].sequence != 0 || coin(random_, 1, 2);
    return entries;
  }

  mnk_dtype drawFloat() { return oneOf(random_, {MNK_F32, MNK_F16, MNK_BF16}); }

  // Memory behind that of the operands before it.
  bool allocate(TensorSpec& spec) {
    for (uint32_t tries = 0; tries < Arena::kRegions; ++tries) {
      spec.region = (firstRegion_ + tries) % Arena::kRegions;
      uint64_t& used = used_[spec.region];
      const uint64_t begin = (used + 3) / 4 * 4 + 4 * random_.below(4);
      if (begin + spec.bytes() > Arena::kRegionBytes) continue;
      spec.offset = begin;
      used = begin + spec.bytes();
      firstRegion_ = spec.region + 1;
      return true;
    }
    return false;
  }

  // Numbers that every float type holds, of these extents [rows, heads, headDim], in one of the layouts that a model
  // may leave them in.
  bool drawVectors(HeadsSpec& heads, Floats& numbers, mnk_dtype dtype, std::array<uint64_t, 3> extents) {
    const auto [rows, headCount, dim] = extents;
    const uint64_t sequences = std::max<uint64_t>(axis_, 1), each = rows / sequences;
    for (uint64_t i = 0; i < rows * headCount * dim; ++i) {
      numbers.push_back((static_cast<float>(random_.below(129)) - 64) / 64);
    }
    mnk_heads_view view{.size = sizeof view, .layout = MNK_TOKEN_MAJOR};
    TensorSpec spec{.dtype = dtype, .shape = {each, headCount, dim}};
    if (axis_ != 0) spec.shape.insert(spec.shape.begin(), sequences);
    switch (random_.below(3)) {
      case 0:
        if (rows == 1 && axis_ == 0 && coin(random_, 1, 2)) spec.shape = {headCount, dim};
        break;
      case 1:
        view.layout = MNK_HEAD_MAJOR;
        std::swap(spec.shape[spec.shape.size() - 3], spec.shape[spec.shape.size() - 2]);
        break;
      default: {
        view.has_strides = true;
        view.sequences = sequences, view.tokens = each, view.heads = headCount, view.head_dim = dim;
        view.offset = random_.below(5);
        const uint64_t width = view.offset + headCount * dim + random_.below(5);
        view.head_stride = dim, view.token_stride = width, view.sequence_stride = each * width;
        spec.shape = {sequences * each, width};
      }
    }
    if (!allocate(spec)) return false;
    heads = {spec, view};
    store(heads, numbers, rows, headCount);
    return true;
  }

  void store(const HeadsSpec& heads, const Floats& numbers, uint64_t rows, uint64_t headCount) {
    const mnk_heads_view places = *placesOf(heads);
    const uint64_t dim = places.head_dim, size = heads.tensor->elementBytes();
    std::vector<std::byte> bytes(heads.tensor->bytes());
    for (uint64_t i = 0; i < numbers.size(); ++i) {
      const uint64_t row = i / (headCount * dim), head = i / dim % headCount, each = rows / places.sequences;
      const uint64_t element = places.offset + row / each * places.sequence_stride + row % each * places.token_stride +
                               head * places.head_stride + i % dim;
      const uint64_t bits = test::nearestBits(static_cast<DType>(heads.tensor->dtype), numbers[i]);
      std::memcpy(&bytes[element * size], &bits, size);
    }
    arena_.fill(*heads.tensor, bytes);
  }

  bool drawInto(CacheCall& call, uint64_t rows) {
    call.hasResults = true;
    call.into = TensorSpec{.dtype = drawFloat(), .shape = {rows, queryHeads_, model_.cache().valueHeadDim}};
    if (axis_ != 0) call.into->shape = {axis_, rows / axis_, queryHeads_, model_.cache().valueHeadDim};
    return allocate(*call.into);
  }

  RowOptions drawOptions(CacheCall& call) {
    RowOptions options;
    call.hasOptions = call.kind != Kind::append && (model_.cache().latentDim != 0 || coin(random_, 3, 4));
    if (!call.hasOptions) return options;
    options.window = coin(random_, 1, 2) ? 0 : 1 + random_.below(10);
    options.seesPinned = coin(random_, 1, 3);
    options.isBidirectional = coin(random_, 1, 6);
    call.options = {.size = sizeof call.options,
                    .is_bidirectional = options.isBidirectional,
                    .window = static_cast<uint32_t>(options.window),
                    .window_sees_pinned = options.seesPinned};
    // Attention over a latent cache needs a scale. This one is the default of its keys.
    if (model_.cache().latentDim != 0)
      call.options.scale = 1 / std::sqrt(static_cast<float>(model_.cache().queryDim()));
    return options;
  }

  // A call that was fine, with all that it needs to be made again.
  struct Done {
    CacheCall call;
    std::vector<StepEntry> entries{};
    RowOptions options{};
    Floats queries{}, keys{}, values{};
    uint64_t axis = 0;
  };

  // Queries and keys as the kernels see them: what they make of positions is rounded once or twice.
  void rotate(const Done& done, uint64_t runs, Floats& queries, Floats& keys) {
    const CacheNumbers& cache = model_.cache();
    const mnk_dtype queryType = done.call.queries.tensor->dtype, keyType = done.call.keys.tensor->dtype;
    std::map<uint32_t, uint64_t> next;
    uint64_t row = 0;
    for (size_t i = 0; i < done.entries.size(); ++i) {
      const auto [sequence, rows] = done.entries[i];
      uint64_t& position = next.try_emplace(sequence, model_.cursors()[sequence].next).first->second;
      for (uint64_t j = 0; j < rows; ++j, ++row, ++position) {
        const int64_t turned = done.call.rotation->position(row, i, j, rows, position, runs);
        done.call.rotation->rotate(&queries[row * queryHeads_ * cache.headDim], queryHeads_, cache.headDim, turned,
                                   queryType);
        done.call.rotation->rotate(&keys[row * cache.kvHeads * cache.headDim], cache.kvHeads, cache.headDim, turned,
                                   keyType);
      }
    }
    if (!cache.isQuantized) {
      for (float& key : keys) key = rounded(key, static_cast<mnk_dtype>(cache.dtype));
    }
    const bool isExact = queryType == MNK_F32 && keyType == MNK_F32 && (cache.isQuantized || cache.dtype == MNK_F32);
    if (!isExact) slack_ = std::max(slack_, 0.03);
  }

  void apply(const Done& done, uint64_t runs) {
    const auto& [call, entries, options, givenQueries, givenKeys, values, axis] = done;
    Floats queries = givenQueries, keys = givenKeys;
    if (call.rotation) rotate(done, runs, queries, keys);
    const CacheNumbers& cache = model_.cache();
    const uint64_t keyLength = cache.kvHeads * cache.headDim, valueLength = cache.kvHeads * cache.valueHeadDim;
    const uint64_t rowLength = queryHeads_ * cache.queryDim();
    const auto part = [](const Floats& all, uint64_t first, uint64_t count) {
      return Floats(all.begin() + static_cast<ptrdiff_t>(first), all.begin() + static_cast<ptrdiff_t>(first + count));
    };
    std::vector<double> out;
    const auto attend = [&](const StepEntry& entry, uint64_t behind, uint64_t firstRow) {
      const auto rows = model_.history().attended(part(queries, firstRow * rowLength, entry.rows * rowLength),
                                                  model_.seen(entry, behind, options), entry.sequence);
      out.insert(out.end(), rows.begin(), rows.end());
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
        if (call.kind == Kind::appendAndAttend && !options.isBidirectional) attend({sequence, 1}, 0, row);
      }
      // Rows that see each other attend when all are stored.
      if (call.kind == Kind::appendAndAttend && options.isBidirectional && rows != 0) attend(entries[i], 0, row - rows);
    }
    if (!out.empty()) attended_.push_back({*call.into, out, slack_});
  }

  Arena& arena_;
  Seeded& random_;
  uint64_t queryHeads_;
  CacheModel model_;
  CacheModel committed_ = model_;
  // Codes of 8 bits, and the 16-bit probabilities of latent caches, are near enough to tell positions apart.
  double slack_;
  bool isRecording_ = false, isStep_ = false, beginsStep_ = false, hasStep_ = false;
  std::vector<Done> done_, step_;  // since the last commit, and those of the last step
  uint64_t runs_ = 0;
  uint64_t axis_ = 0;  // sequences of the views' axis for them; 0: none
  std::vector<ExpectedNumbers> attended_;
  std::array<uint64_t, Arena::kRegions> used_{};
  uint32_t firstRegion_ = 0;
  std::vector<CacheCall> calls_;
};

}  // namespace

CacheProgramSpec drawProgram(Arena& arena, Seeded& random) {
  const CacheNumbers cache = drawCache(random);
  return {cache, Generator(arena, random, cache).draw()};
}

}  // namespace mnk::fuzz
