#include <algorithm>
#include <cmath>

#include "CacheCall.hpp"
#include "CacheOperands.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Kind = CacheCallKind;
using Entries = std::vector<StepEntry>;

class Generator {
 public:
  Generator(Arena& arena, Seeded& random, const CacheNumbers& cache)
      : random_(random),
        operands_(arena, random),
        queryHeads_(cache.kvHeads * (1 + random.below(2))),
        model_(cache, queryHeads_),
        slack_(cache.isQuantized ? 0.08 : (cache.latentDim != 0 ? 4e-3 : 2e-5)) {}

  std::vector<CacheCall> draw() {
    const uint64_t mutated = random_.below(10);  // which call, if the program is that long
    for (uint64_t index = 0, count = 2 + random_.below(7); index < count || (owed_ && coin(random_, 5, 6)); ++index) {
      if (!isRecording_ && coin(random_, 1, 5)) {
        drawCut();
        continue;
      }
      if (!isRecording_ && hasStep_ && coin(random_, 1, 2)) {
        drawRun();
        continue;
      }
      if (!drawRecorded(index == mutated)) break;
      if (coin(random_, 1, owed_ ? 9 : 2)) end(coin(random_, 1, 6) ? Kind::drop : Kind::commit);
    }
    end(coin(random_, 1, 8) ? Kind::drop : Kind::commit);
    return std::move(calls_);
  }

 private:
  // A call that was fine, with all that it needs to be made again.
  struct Done {
    CacheCall call;
    Entries entries{};
    RowOptions options{};
    Floats queries{}, keys{}, values{};
    uint64_t axis = 0;
  };

  void add(CacheCall call) {
    call.committed = committed_.cursors();
    calls_.push_back(std::move(call));
  }

  void end(Kind kind) {
    CacheCall call{.kind = kind};
    const bool isStep = isRecording_ && isStep_;
    if (kind == Kind::commit) call.refusal = refusalOfCommit(isStep);
    if (kind == Kind::commit && call.refusal.empty()) {
      call.results = std::move(attended_);
      committed_ = model_;
      if (isStep) {
        step_ = std::move(done_);
        hasStep_ = true;
      }
    }
    isRecording_ = false;
    beginEncoder();
    add(std::move(call));
  }

  void beginEncoder() {
    model_ = committed_;
    model_.begin();
    attended_.clear();
    done_.clear();
    owed_.reset();
  }

  std::string_view refusalOfCommit(bool isStep) const {
    const bool hasNumbers = std::any_of(done_.begin(), done_.end(),
                                        [](const Done& d) { return d.call.rotation && d.call.rotation->hasNumbers(); });
    const bool appends = std::any_of(done_.begin(), done_.end(), [](const Done& d) {
      return d.call.kind == Kind::append || d.call.kind == Kind::appendAndAttend;
    });
    if (!isStep || !hasNumbers || !appends) return model_.refusalOfCommit();
    return "rotary positions stay as recorded, while the cache advances with every run";
  }

  // The calls of the step once more, all of them or none.
  void drawRun() {
    CacheCall call{.kind = Kind::runStep};
    call.isEncoded = coin(random_, 1, 3);
    beginEncoder();
    for (const Done& done : step_) {
      axis_ = done.axis;
      call.refusal = refusalOf(done.call, done.entries, done.options);
      if (!call.refusal.empty()) break;
      apply(done);
    }
    if (call.refusal.empty()) {
      committed_ = model_;
      call.results = std::move(attended_);
    }
    beginEncoder();
    add(std::move(call));
  }

  uint32_t anySequence() { return static_cast<uint32_t>(random_.below(model_.cursors().size())); }

  // A step back most of the time.
  void drawCut() {
    CacheCall call{.kind = Kind::truncate, .sequence = anySequence()};
    const uint64_t next = model_.cursors()[call.sequence].next;
    call.position = coin(random_, 3, 4) ? next - std::min(next, random_.below(4)) : edge(random_, {next, next / 2});
    const uint32_t sequence = call.sequence;
    if (coin(random_, 1, 12)) call.sequence = static_cast<uint32_t>(edge(random_, {model_.cursors().size()}));
    if (sequence == 0 && coin(random_, 1, 6)) call.sequence = MNK_ONLY_SEQUENCE;
    call.refusal = model_.refusalOfCut(call.sequence, call.position);
    if (call.refusal.empty()) model_.cut(call.sequence == MNK_ONLY_SEQUENCE ? 0 : call.sequence, call.position);
    committed_ = model_;
    add(std::move(call));
  }

  void drawCopy() {
    CacheCall call{.kind = Kind::copy, .sequence = anySequence(), .target = anySequence()};
    if (coin(random_, 1, 8)) {
      (coin(random_, 1, 2) ? call.sequence : call.target) =
          static_cast<uint32_t>(model_.cursors().size() + random_.below(2));
    }
    call.refusal = model_.refusalOfCopy(call.sequence, call.target);
    if (call.refusal.empty()) {
      done_.push_back({.call = call});
      apply(done_.back());
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
    const uint64_t draw = random_.below(12);
    // Most of the time, rows that were rotated are then appended.
    const bool paysOwed = owed_ && coin(random_, 5, 6);
    if (draw == 0 && !paysOwed) {
      drawCopy();
      return true;
    }
    constexpr Kind kKinds[] = {Kind::append, Kind::attend, Kind::rotate, Kind::appendAndAttend};
    CacheCall call{.kind = paysOwed ? (draw < 6 ? Kind::append : Kind::appendAndAttend) : kKinds[draw / 3]};
    const CacheNumbers& cache = model_.cache();
    const bool isEmpty = std::all_of(model_.cursors().begin(), model_.cursors().end(),
                                     [](const auto& cursor) { return cursor.next == 0; });
    if (call.kind == Kind::attend && isEmpty && coin(random_, 9, 10)) call.kind = Kind::append;
    const Entries entries = drawEntries(call, paysOwed);
    const uint64_t rows = rowsOf(entries);
    if (call.kind == Kind::rotate && (rows == 0 || cache.headDim % 2 != 0)) call.kind = Kind::append;
    // As an axis of sequences, or one after another.
    const bool needsAxis = !call.hasRowCounts && entries.size() > 1 && entries[0].rows != 1;
    axis_ = isEven(entries) && (needsAxis || coin(random_, 1, 3)) ? entries.size() : 0;
    const mnk_dtype dtype = operands_.drawFloat();
    Floats queries, keys, values;
    bool isPlaced = true;
    if (call.kind != Kind::attend) {
      isPlaced = operands_.draw(call.keys, keys, dtype, {rows, cache.kvHeads, cache.headDim}, axis_);
    }
    if (call.kind == Kind::append || call.kind == Kind::appendAndAttend) {
      isPlaced =
          isPlaced && operands_.draw(call.values, values, dtype, {rows, cache.kvHeads, cache.valueHeadDim}, axis_);
    }
    if (call.kind != Kind::append) {
      const uint64_t queryDim = call.kind == Kind::rotate ? cache.headDim : cache.queryDim();
      isPlaced = isPlaced &&
                 operands_.draw(call.queries, queries, operands_.drawFloat(), {rows, queryHeads_, queryDim}, axis_) &&
                 drawInto(call, rows);
    }
    if (!isPlaced) return false;
    const RowOptions options = drawOptions(call);
    const bool mayRotate = call.kind == Kind::appendAndAttend && rows != 0 && !cache.isStorageOnly;
    const bool rotates = call.kind == Kind::rotate || (mayRotate && coin(random_, 1, 2));
    if (rotates && !drawRotary(call, entries, rows)) return false;
    call.refusal = refusalOf(call, entries, options);
    if (call.refusal.empty() && !(isMutated && mutate(call, model_, random_))) {
      done_.push_back({call, entries, options, queries, keys, values, axis_});
      apply(done_.back());
      owed_.reset();
      if (call.kind == Kind::rotate && call.rotation->next) owed_ = done_.back();
    }
    addRecorded(std::move(call));
    return true;
  }

  bool drawRotary(CacheCall& call, const Entries& entries, uint64_t rows) {
    const bool isAlone = call.kind == Kind::rotate;
    const uint64_t sequences = isAlone ? std::max<uint64_t>(axis_, 1) : entries.size();
    CacheRotation rotation = drawRotation(random_, model_.cache().headDim, rows, sequences, isAlone || isEven(entries));
    // Where numbers would be refused with the whole step, few are left.
    const bool mayBeNumbers = !isStep_ || coin(random_, 1, 8);
    if (!mayBeNumbers) rotation.first.reset();
    const bool isFollowing = !rotation.first && rotation.positions.empty();
    if (isFollowing && (isAlone || coin(random_, 1, 2))) {
      rotation.next = drawNext(entries, call.hasRowCounts, axis_ > 1, model_, random_);
    }
    call.rotation = rotation;
    if (rotation.positions.empty() || (mayBeNumbers && coin(random_, 1, 2))) return true;
    TensorSpec spec{.dtype = MNK_I32, .shape = {rows}};
    if (!operands_.allocate(spec)) return false;
    operands_.fill(spec, std::as_bytes(std::span(rotation.positions)));
    call.rotation->positionsIn = spec;
    return true;
  }

  std::string_view refusalOf(const CacheCall& call, const Entries& entries, const RowOptions& options) const {
    if (call.kind == Kind::copy) return model_.refusalOfCopy(call.sequence, call.target);
    if (call.kind == Kind::rotate) return {};
    if (!call.hasSequences) {
      if (const std::string_view refusal = model_.refusalOfName(MNK_ONLY_SEQUENCE); !refusal.empty()) return refusal;
    }
    const uint64_t most = rowsOf(entries) + (call.hasRowCounts ? model_.cache().sequences : 0);
    if (entries.size() > std::max<uint64_t>({most, axis_, 1})) return "there are too many sequences";
    if (call.kind == Kind::append) return model_.refusalOfAppend(entries);
    const bool isListed = entries.size() != 1 || call.hasRowCounts;
    if (call.kind == Kind::attend) return model_.refusalOfAttend(entries, options, isListed);
    if (call.rotation && model_.cache().latentDim != 0) {
      const std::string_view refusal = model_.refusalOfOrder(entries);
      return refusal.empty() ? "a latent cache cannot rotate" : refusal;
    }
    return model_.refusalOfBoth(entries, options);
  }

  Entries drawEntries(CacheCall& call, bool paysOwed) {
    if (paysOwed) {
      const CacheCall& rotated = owed_->call;
      call.sequences = rotated.sequences, call.rowCounts = rotated.rowCounts;
      call.hasSequences = rotated.hasSequences, call.hasRowCounts = rotated.hasRowCounts;
      return owed_->entries;
    }
    Entries entries{{anySequence(), random_.below(5)}};
    if (call.kind == Kind::attend && coin(random_, 9, 10)) {  // to what is there, if it is
      for (int tries = 0; tries < 9 && model_.cursors()[entries[0].sequence].next == 0; ++tries) {
        entries[0].sequence = anySequence();
      }
      entries[0].rows = std::min(entries[0].rows, model_.cursors()[entries[0].sequence].next);
    }
    if (call.kind == Kind::appendAndAttend) entries[0].rows = random_.below(12);
    while (entries.size() < 5 && coin(random_, 1, 3)) {
      entries.push_back({anySequence(), coin(random_, 1, 2) ? entries[0].rows : random_.below(4)});
    }
    call.hasRowCounts = !isEven(entries) || coin(random_, 1, 2);
    // Without counts there is one row for each, or an axis of sequences.
    if (!call.hasRowCounts && entries.size() > 1 && (entries[0].rows == 0 || coin(random_, 1, 2))) {
      for (StepEntry& entry : entries) entry.rows = 1;
    }
    for (const auto& [sequence, rows] : entries) {
      call.sequences.push_back(sequence);
      if (call.hasRowCounts) call.rowCounts.push_back(static_cast<uint32_t>(rows));
    }
    if (entries.size() != 1 || entries[0].sequence != 0) return entries;
    // Not named, which a cache of several sequences refuses.
    call.hasSequences = coin(random_, 3, 4) || (model_.cache().sequences != 1 && coin(random_, 3, 4));
    if (model_.cache().sequences == 1 && coin(random_, 1, 4)) call.sequences[0] = MNK_ONLY_SEQUENCE;
    return entries;
  }

  bool drawInto(CacheCall& call, uint64_t rows) {
    call.hasResults = true;
    const bool isRotated = call.kind == Kind::rotate;
    const auto place = [&](std::optional<TensorSpec>& into, mnk_dtype dtype, uint64_t heads, uint64_t dim) {
      into = TensorSpec{.dtype = dtype, .shape = {rows, heads, dim}};
      if (axis_ != 0) into->shape = {axis_, rows / axis_, heads, dim};
      return operands_.allocate(*into);
    };
    const CacheNumbers& cache = model_.cache();
    if (!isRotated) return place(call.into, operands_.drawFloat(), queryHeads_, cache.valueHeadDim);
    return place(call.into, call.queries.tensor->dtype, queryHeads_, cache.headDim) &&
           place(call.rotatedKeys, call.keys.tensor->dtype, cache.kvHeads, cache.headDim);
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

  // The position of each row, by which it is rotated.
  std::vector<int64_t> turnsOf(const Done& done) {
    const CacheRotation& rotation = *done.call.rotation;
    const auto inCache = model_.nextPositions(rotation.next ? rotation.next->entries : done.entries);
    if (rotation.next) model_.noteRotation(rotation.next->entries);
    if (done.call.kind != Kind::rotate) return rotation.turns(done.entries, inCache);
    const uint64_t sequences = std::max<uint64_t>(done.axis, 1);
    return rotation.turns(Entries(sequences, {0, inCache.size() / sequences}), inCache);
  }

  // Queries and keys as the kernels see them: what they make of positions is rounded once or twice.
  void rotate(const Done& done, Floats& queries, Floats& keys) {
    const CacheNumbers& cache = model_.cache();
    const mnk_dtype queryType = done.call.queries.tensor->dtype, keyType = done.call.keys.tensor->dtype;
    const auto turns = turnsOf(done);
    for (uint64_t row = 0; row < turns.size(); ++row) {
      done.call.rotation->rotate(&queries[row * queryHeads_ * cache.headDim], queryHeads_, cache.headDim, turns[row],
                                 queryType);
      done.call.rotation->rotate(&keys[row * cache.kvHeads * cache.headDim], cache.kvHeads, cache.headDim, turns[row],
                                 keyType);
    }
    if (done.call.kind == Kind::rotate) return;
    if (!cache.isQuantized) {
      for (float& key : keys) key = rounded(key, static_cast<mnk_dtype>(cache.dtype));
    }
    const bool isExact = queryType == MNK_F32 && keyType == MNK_F32 && (cache.isQuantized || cache.dtype == MNK_F32);
    if (!isExact) slack_ = std::max(slack_, 0.03);
  }

  void apply(const Done& done) {
    const auto& [call, entries, options, givenQueries, givenKeys, values, axis] = done;
    if (call.kind == Kind::copy) return model_.copy(call.sequence, call.target);
    Floats queries = givenQueries, keys = givenKeys;
    if (call.rotation) rotate(done, queries, keys);
    if (call.kind == Kind::rotate) {
      attended_.push_back({*call.into, {queries.begin(), queries.end()}, 2e-5});
      attended_.push_back({*call.rotatedKeys, {keys.begin(), keys.end()}, 2e-5});
      return;
    }
    if (call.kind == Kind::attend) model_.noteAttend(entries, options);
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

  Seeded& random_;
  Operands operands_;
  uint64_t queryHeads_;
  CacheModel model_;
  CacheModel committed_ = model_;
  // Codes of 8 bits, and the 16-bit probabilities of latent caches, are near enough to tell positions apart.
  double slack_;
  bool isRecording_ = false, isStep_ = false, beginsStep_ = false, hasStep_ = false;
  std::vector<Done> done_, step_;  // since the last commit, and those of the last step
  uint64_t axis_ = 0;              // sequences of the views' axis for them; 0: none
  std::vector<ExpectedNumbers> attended_;
  std::optional<Done> owed_;  // a rotation by next positions, whose rows must be appended
  std::vector<CacheCall> calls_;
};

}  // namespace

CacheProgramSpec drawProgram(Arena& arena, Seeded& random) {
  const CacheNumbers cache = drawCache(random);
  return {cache, Generator(arena, random, cache).draw()};
}

}  // namespace mnk::fuzz
