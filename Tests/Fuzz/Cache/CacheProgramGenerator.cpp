#include <algorithm>
#include <cmath>
#include <cstring>

#include "Arena.hpp"
#include "CacheReference.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::fuzz {

namespace {

using Kind = CacheCallKind;
using Entries = std::vector<StepEntry>;

// Whether all rows of a view are equally far apart.
bool isFlat(const HeadsSpec& heads) {
  const mnk_heads_view_strides places = *placesOf(heads);
  return places.sequences <= 1 || places.sequence_stride == places.tokens * places.token_stride;
}

// Some rows of a token-major tensor. `axis` is as below.
TensorSpec partOf(const TensorSpec& whole, uint64_t first, uint64_t rows, uint64_t axis) {
  TensorSpec spec = whole;
  const uint64_t heads = whole.shape[whole.shape.size() - 2], dim = whole.shape.back();
  spec.offset += first * heads * dim * spec.elementBytes();
  spec.shape = {rows, heads, dim};
  if (axis != 0) spec.shape = {axis, rows / axis, heads, dim};
  return spec;
}

// Draws operands, and places them in the arena one behind another.
class Operands {
 public:
  Operands(Arena& arena, Seeded& random) : arena_(arena), random_(random) {}

  mnk_dtype drawFloat() { return oneOf(random_, {MNK_F32, MNK_F16, MNK_BF16}); }

  // Memory behind that of the operands before it; false where there is no more.
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

  void fill(const TensorSpec& spec, std::span<const std::byte> bytes) { arena_.fill(spec, bytes); }

  // Numbers that every float type holds, of these extents [rows, heads, headDim], in one of the layouts that a model
  // may leave them in. `axis` is the number of sequences of the view's axis for them; 0: none. False where there is no
  // more memory.
  bool draw(HeadsSpec& heads, Floats& numbers, mnk_dtype dtype, std::array<uint64_t, 3> extents, uint64_t axis) {
    const auto [rows, headCount, dim] = extents;
    const uint64_t sequences = std::max<uint64_t>(axis, 1), each = rows / sequences;
    for (uint64_t i = 0; i < rows * headCount * dim; ++i) {
      numbers.push_back((static_cast<float>(random_.below(129)) - 64) / 64);
    }
    mnk_heads_view view{.layout = oneOf(random_, {MNK_KV_LAYOUT_TOKEN_MAJOR, MNK_KV_LAYOUT_DEFAULT})};
    TensorSpec spec{.dtype = dtype, .shape = {each, headCount, dim}};
    if (axis != 0) spec.shape.insert(spec.shape.begin(), sequences);
    switch (random_.below(3)) {
      case 0:
        if (rows == 1 && axis == 0 && coin(random_, 1, 2)) spec.shape = {headCount, dim};
        break;
      case 1:
        view.layout = MNK_KV_LAYOUT_HEAD_MAJOR;
        std::swap(spec.shape[spec.shape.size() - 3], spec.shape[spec.shape.size() - 2]);
        break;
      default: {
        const uint64_t offset = random_.below(5), width = offset + headCount * dim + random_.below(5);
        view.has_strides = true;
        view.strides = {.sequences = sequences,
                        .tokens = each,
                        .heads = headCount,
                        .head_dim = dim,
                        .offset = offset,
                        .sequence_stride = each * width,
                        .token_stride = width,
                        .head_stride = dim};
        spec.shape = {sequences * each, width};
      }
    }
    if (!allocate(spec)) return false;
    heads = {spec, view};
    store(heads, numbers, rows, headCount);
    return true;
  }

  // Some rows of a view that `isFlat`, in one of the ways to describe them.
  HeadsSpec drawRows(const HeadsSpec& whole, uint64_t first, uint64_t rows, uint64_t axis) {
    const bool isTokenMajor = !whole.view.has_strides && whole.view.layout != MNK_KV_LAYOUT_HEAD_MAJOR;
    if (isTokenMajor && coin(random_, 1, 2)) return {partOf(*whole.tensor, first, rows, axis), whole.view};
    mnk_heads_view_strides places = *placesOf(whole);
    places.sequences = std::max<uint64_t>(axis, 1), places.tokens = rows / places.sequences;
    places.sequence_stride = places.tokens * places.token_stride;
    places.offset += first * places.token_stride;
    return {whole.tensor, {.has_strides = true, .strides = places}};
  }

 private:
  void store(const HeadsSpec& heads, const Floats& numbers, uint64_t rows, uint64_t headCount) {
    const mnk_heads_view_strides places = *placesOf(heads);
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

  Arena& arena_;
  Seeded& random_;
  std::array<uint64_t, Arena::kRegions> used_{};
  uint32_t firstRegion_ = 0;
};

class Generator {
 public:
  Generator(Arena& arena, Seeded& random, const CacheNumbers& cache)
      : random_(random), operands_(arena, random), reference_(cache, cache.kv_heads * (1 + random.below(2))) {}

  std::vector<CacheCall> draw() {
    const uint64_t mutated = random_.below(10);  // which call, if the program is that long
    for (uint64_t index = 0, count = 2 + random_.below(7); index < count || (owed_ && coin(random_, 7, 8)); ++index) {
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
  const CacheModel& model() const { return reference_.model(); }

  // Rows of one of the encoder's rotations, from this one on.
  struct Part {
    size_t rotation = 0;
    uint64_t first = 0;
    Entries entries{};
  };

  void add(CacheCall call) {
    call.committed = reference_.committed().standing();
    calls_.push_back(std::move(call));
  }

  void end(Kind kind) {
    CacheCall call{.kind = kind};
    const bool isStep = isRecording_ && isStep_;
    if (kind == Kind::commit) call.refusal = refusalOfCommit(isStep);
    if (kind == Kind::commit && call.refusal.empty()) {
      call.results = reference_.commit();
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
    reference_.begin();
    done_.clear();
    rotations_.clear();
    owed_.reset();
    appended_.reset();
  }

  std::string_view refusalOfCommit(bool isStep) const {
    const bool hasNumbers = std::any_of(done_.begin(), done_.end(), [](const DrawnCall& d) {
      return d.call.rotation && d.call.rotation->hasNumbers();
    });
    const bool appends = std::any_of(done_.begin(), done_.end(), [](const DrawnCall& d) {
      return d.call.kind == Kind::append || d.call.kind == Kind::appendAndAttend;
    });
    if (!isStep || !hasNumbers || !appends) return model().refusalOfCommit();
    return "rotary positions stay as recorded, while the cache advances with every run";
  }

  // The calls of the step once more, all of them or none.
  void drawRun() {
    CacheCall call{.kind = Kind::runStep};
    call.isEncoded = coin(random_, 1, 3);
    beginEncoder();
    for (const DrawnCall& done : step_) {
      call.refusal = reference_.refusalOf(done);
      if (!call.refusal.empty()) break;
      reference_.apply(done);
    }
    if (call.refusal.empty()) call.results = reference_.commit();
    beginEncoder();
    add(std::move(call));
  }

  uint32_t anySequence() { return static_cast<uint32_t>(random_.below(model().sequences().size())); }

  // A step back most of the time.
  void drawCut() {
    CacheCall call{.kind = Kind::truncate, .sequence = anySequence()};
    const uint64_t next = model().sequences()[call.sequence].next();
    call.position = coin(random_, 3, 4) ? next - std::min(next, random_.below(4)) : edge(random_, {next, next / 2});
    const uint32_t sequence = call.sequence;
    if (coin(random_, 1, 12)) call.sequence = static_cast<uint32_t>(edge(random_, {model().sequences().size()}));
    if (sequence == 0 && coin(random_, 1, 6)) call.sequence = MNK_ONLY_SEQUENCE;
    call.refusal = model().refusalOfCut(call.sequence, call.position);
    if (call.refusal.empty()) reference_.cut(call.sequence == MNK_ONLY_SEQUENCE ? 0 : call.sequence, call.position);
    add(std::move(call));
  }

  void drawCopy() {
    CacheCall call{.kind = Kind::copy, .sequence = anySequence(), .target = anySequence()};
    if (coin(random_, 1, 8)) {
      (coin(random_, 1, 2) ? call.sequence : call.target) =
          static_cast<uint32_t>(model().sequences().size() + random_.below(2));
    }
    const DrawnCall drawn{.call = call};
    call.refusal = reference_.refusalOf(drawn);
    if (call.refusal.empty()) {
      reference_.apply(drawn);
      done_.push_back(drawn);
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
    const bool paysOwed = owed_ && coin(random_, 7, 8);
    if (draw == 0 && !paysOwed) {
      drawCopy();
      return true;
    }
    constexpr Kind kKinds[] = {Kind::append, Kind::attend, Kind::rotate, Kind::appendAndAttend};
    DrawnCall drawn;
    CacheCall& call = drawn.call;
    call.kind = paysOwed ? (draw < 6 ? Kind::append : Kind::appendAndAttend) : kKinds[draw / 3];
    if (owed_ && !paysOwed && coin(random_, 1, 2)) call.kind = Kind::rotate;
    const CacheNumbers& cache = model().cache();
    const bool isEmpty =
        std::ranges::all_of(model().sequences(), [](const auto& sequence) { return sequence.next() == 0; });
    if (call.kind == Kind::attend && isEmpty && coin(random_, 9, 10)) call.kind = Kind::append;
    const std::optional<Part> part = paysOwed ? drawOwed() : drawPart(call.kind);
    const Entries& entries = drawn.entries = drawEntries(call, part);
    const uint64_t rows = rowsOf(entries);
    if (call.kind == Kind::rotate && (rows == 0 || cache.head_dim % 2 != 0)) call.kind = Kind::append;
    // As an axis of sequences, or one after another.
    const bool needsAxis = !call.hasRowCounts && entries.size() > 1 && entries[0].rows != 1;
    drawn.axis = isEven(entries) && (needsAxis || coin(random_, 1, 3)) ? entries.size() : 0;
    const auto written = call.kind == Kind::rotate ? drawWritten(rows) : std::nullopt;
    if (!drawOperands(drawn, part, written) || (call.kind != Kind::append && !drawInto(drawn, written))) return false;
    drawn.options = drawOptions(call);
    const bool mayRotate = call.kind == Kind::appendAndAttend && rows != 0 && !cache.is_storage_only;
    const uint64_t rotatesOneIn = drawn.takesKeys || drawn.takesQueries ? 12 : 2;
    const bool rotates = call.kind == Kind::rotate || (mayRotate && coin(random_, 1, rotatesOneIn));
    if (rotates && !drawRotary(drawn)) return false;
    call.refusal = reference_.refusalOf(drawn);
    if (call.refusal.empty() && !(isMutated && mutate(call, model(), random_))) keep(drawn, part, paysOwed);
    addRecorded(std::move(call));
    return true;
  }

  // A call that is fine.
  void keep(const DrawnCall& drawn, const std::optional<Part>& part, bool paysOwed) {
    reference_.apply(drawn);
    done_.push_back(drawn);
    if (paysOwed) *owed_ = rest(*owed_, rowsOf(part->entries));
    if (!paysOwed || owed_->entries.empty()) owed_.reset();
    if (drawn.takesKeys) appended_ = part;
    if (drawn.call.kind != Kind::rotate) return;
    if (drawn.call.rotation->next) owed_ = Part{.rotation = rotations_.size(), .entries = drawn.entries};
    rotations_.push_back(drawn);
  }

  // The first rows, and those behind them.
  static Entries firstOf(const Entries& all, uint64_t rows) {
    Entries first;
    for (const auto& [sequence, count] : all) {
      first.push_back({sequence, std::min(rows, count)});
      rows -= first.back().rows;
      if (rows == 0) break;
    }
    return first;
  }
  static Part rest(Part part, uint64_t rows) {
    part.first += rows;
    for (StepEntry& entry : part.entries) {
      const uint64_t taken = std::min(rows, entry.rows);
      entry.rows -= taken, rows -= taken;
    }
    std::erase_if(part.entries, [](const StepEntry& entry) { return entry.rows == 0; });
    return part;
  }

  // Rows that must be appended: mostly all of them, and sometimes not those of which it is the turn.
  Part drawOwed() {
    Part part = *owed_;
    const uint64_t owed = rowsOf(part.entries);
    if (owed > 1 && coin(random_, 1, 6)) part.entries = firstOf(part.entries, 1 + random_.below(owed - 1));
    if (coin(random_, 1, 20)) part.first = random_.below(part.first + owed - rowsOf(part.entries) + 1);
    if (coin(random_, 1, 20)) {
      std::swap(part.entries[random_.below(part.entries.size())], part.entries[random_.below(part.entries.size())]);
    }
    return part;
  }

  // Rows of a rotation that are used once more, or that attend after they were appended.
  std::optional<Part> drawPart(Kind kind) {
    if (rotations_.empty() || kind == Kind::rotate || coin(random_, kind == Kind::attend ? 1 : 7, 8)) return {};
    if (appended_ && coin(random_, 3, 4)) return appended_;
    const size_t rotation = random_.below(rotations_.size());
    return Part{.rotation = rotation, .entries = rotations_[rotation].entries};
  }

  // Rows of an earlier rotation, whose memory another one overwrites.
  std::optional<Part> drawWritten(uint64_t rows) {
    if (rotations_.empty() || coin(random_, 1, 2)) return {};
    Part part{.rotation = random_.below(rotations_.size())};
    const auto& before = rotations_[part.rotation];
    const uint64_t most = rowsOf(before.entries);
    if (rows > most || before.call.isInPlace) return {};
    part.first = random_.below(most - rows + 1);
    return part;
  }

  // False where there is no more memory.
  bool drawOperands(DrawnCall& drawn, const std::optional<Part>& part, const std::optional<Part>& written) {
    CacheCall& call = drawn.call;
    const CacheNumbers& cache = model().cache();
    const uint64_t rows = rowsOf(drawn.entries), axis = drawn.axis;
    const bool hasKeys = call.kind != Kind::attend, hasQueries = call.kind != Kind::append;
    const CacheCall* rotation = part ? &rotations_[part->rotation].call : nullptr;
    const CacheCall* before = written ? &rotations_[written->rotation].call : nullptr;
    drawn.takesKeys = part && hasKeys && coin(random_, 14, 15);
    drawn.takesQueries = part && hasQueries && cache.latent_dim == 0 && coin(random_, 9, 10);
    mnk_dtype dtype = before ? before->rotatedKeys->dtype : operands_.drawFloat();
    if (drawn.takesKeys) {
      call.keys = operands_.drawRows(rotation->keysInto(), part->first, rows, axis);
      dtype = call.keys.tensor->dtype;
    } else if (hasKeys && !operands_.draw(call.keys, drawn.keys, dtype, {rows, cache.kv_heads, cache.head_dim}, axis)) {
      return false;
    }
    if (call.kind == Kind::append || call.kind == Kind::appendAndAttend) {
      if (!operands_.draw(call.values, drawn.values, dtype, {rows, cache.kv_heads, cache.value_head_dim}, axis)) {
        return false;
      }
    }
    if (!hasQueries) return true;
    if (drawn.takesQueries) {
      // Sometimes those of another rotation, which may be of the same tokens by another embedding.
      const DrawnCall& other = rotations_[random_.below(rotations_.size())];
      const bool takesOther = part->first + rows <= rowsOf(other.entries) && coin(random_, 1, 3);
      const HeadsSpec whole = takesOther ? other.call.queriesInto() : rotation->queriesInto();
      call.queries = operands_.drawRows(whole, part->first, rows, axis);
      return true;
    }
    const uint64_t queryDim = call.kind == Kind::rotate ? cache.head_dim : cache.queryDim();
    const mnk_dtype queryType = before ? before->into->dtype : operands_.drawFloat();
    return operands_.draw(call.queries, drawn.queries, queryType, {rows, reference_.queryHeads(), queryDim}, axis);
  }

  bool drawRotary(DrawnCall& drawn) {
    CacheCall& call = drawn.call;
    const Entries& entries = drawn.entries;
    const uint64_t rows = rowsOf(entries);
    const bool isAlone = call.kind == Kind::rotate;
    const uint64_t sequences = isAlone ? std::max<uint64_t>(drawn.axis, 1) : entries.size();
    CacheRotation rotation =
        drawRotation(random_, model().cache().head_dim, rows, sequences, isAlone || isEven(entries));
    // Where numbers would be refused with the whole step, few are left.
    const bool mayBeNumbers = !isStep_ || coin(random_, 1, 8);
    if (!mayBeNumbers) rotation.first.reset();
    const bool isFollowing = !rotation.first && rotation.positions.empty();
    if (isFollowing && (isAlone || coin(random_, 1, 2))) {
      rotation.next = drawNext(entries, call.hasRowCounts, drawn.axis > 1, model(), random_);
    }
    call.rotation = rotation;
    if (rotation.positions.empty() || (mayBeNumbers && coin(random_, 1, 2))) return true;
    TensorSpec spec{.dtype = MNK_I32, .shape = {rows}};
    if (!operands_.allocate(spec)) return false;
    operands_.fill(spec, std::as_bytes(std::span(rotation.positions)));
    call.rotation->positionsIn = spec;
    return true;
  }

  Entries drawEntries(CacheCall& call, const std::optional<Part>& part) {
    if (part) {
      call.hasRowCounts = !isEven(part->entries) || coin(random_, 1, 2);
      list(call, part->entries);
      return part->entries;
    }
    if (call.kind == Kind::rotate && !rotations_.empty() && coin(random_, 1, 2)) {  // the same tokens once more
      const Entries& again = rotations_.back().entries;
      call.hasRowCounts = !isEven(again) || coin(random_, 1, 2);
      list(call, again);
      return again;
    }
    Entries entries{{anySequence(), random_.below(5)}};
    if (call.kind == Kind::attend && coin(random_, 9, 10)) {  // to what is there, if it is
      for (int tries = 0; tries < 9 && model().sequences()[entries[0].sequence].next() == 0; ++tries) {
        entries[0].sequence = anySequence();
      }
      entries[0].rows = std::min(entries[0].rows, model().sequences()[entries[0].sequence].next());
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
    list(call, entries);
    return entries;
  }

  void list(CacheCall& call, const Entries& entries) {
    for (const auto& [sequence, rows] : entries) {
      call.sequences.push_back(sequence);
      if (call.hasRowCounts) call.rowCounts.push_back(static_cast<uint32_t>(rows));
    }
    if (entries.size() != 1 || entries[0].sequence != 0) return;
    // Not named, which a cache of several sequences refuses.
    call.hasSequences = coin(random_, 3, 4) || (model().cache().sequences != 1 && coin(random_, 3, 4));
    if (model().cache().sequences == 1 && coin(random_, 1, 4)) call.sequences[0] = MNK_ONLY_SEQUENCE;
  }

  bool drawInto(DrawnCall& drawn, const std::optional<Part>& written) {
    CacheCall& call = drawn.call;
    const uint64_t rows = rowsOf(drawn.entries), axis = drawn.axis;
    call.hasResults = true;
    if (written) {
      const CacheCall& before = rotations_[written->rotation].call;
      call.into = partOf(*before.into, written->first, rows, axis);
      call.rotatedKeys = partOf(*before.rotatedKeys, written->first, rows, axis);
      return true;
    }
    const bool isRotated = call.kind == Kind::rotate;
    // Each run of a step would rotate what the one before it has rotated.
    call.isInPlace = isRotated && !isStep_ && isFlat(call.queries) && isFlat(call.keys) && coin(random_, 1, 4);
    if (call.isInPlace) return true;
    const auto place = [&](std::optional<TensorSpec>& into, mnk_dtype dtype, uint64_t heads, uint64_t dim) {
      into = TensorSpec{.dtype = dtype, .shape = {rows, heads, dim}};
      if (axis != 0) into->shape = {axis, rows / axis, heads, dim};
      return operands_.allocate(*into);
    };
    const CacheNumbers& cache = model().cache();
    if (!isRotated) return place(call.into, operands_.drawFloat(), reference_.queryHeads(), cache.value_head_dim);
    return place(call.into, call.queries.tensor->dtype, reference_.queryHeads(), cache.head_dim) &&
           place(call.rotatedKeys, call.keys.tensor->dtype, cache.kv_heads, cache.head_dim);
  }

  RowOptions drawOptions(CacheCall& call) {
    RowOptions options;
    call.hasOptions = call.kind != Kind::append && (model().cache().latent_dim != 0 || coin(random_, 3, 4));
    if (!call.hasOptions) return options;
    options.window = coin(random_, 1, 2) ? 0 : 1 + random_.below(10);
    // The largest that a ring serves, which reaches what is lost after a rollback.
    if (model().cache().isRing() && coin(random_, 1, 6))
      options.window = model().cache().capacity - model().cache().pinned;
    options.seesPinned = coin(random_, 1, 3);
    options.isCausal = !coin(random_, 1, 6);
    call.options = {.is_bidirectional = !options.isCausal,
                    .window = static_cast<uint32_t>(options.window),
                    .window_sees_pinned = options.seesPinned};
    // Attention over a latent cache needs a scale. This one is the default of its keys.
    if (model().cache().latent_dim != 0)
      call.options.scale = 1 / std::sqrt(static_cast<float>(model().cache().queryDim()));
    return options;
  }

  Seeded& random_;
  Operands operands_;
  CacheReference reference_;
  bool isRecording_ = false, isStep_ = false, beginsStep_ = false, hasStep_ = false;
  std::vector<DrawnCall> done_, step_;  // calls that were fine: since the last commit, and those of the last step
  std::vector<DrawnCall> rotations_;    // of this encoder
  std::optional<Part> owed_;            // rows that were rotated by next positions and must be appended
  std::optional<Part> appended_;        // rotated rows that were appended last
  std::vector<CacheCall> calls_;
};

}  // namespace

CacheProgramSpec drawProgram(Arena& arena, Seeded& random) {
  const CacheNumbers cache = drawCache(random);
  return {cache, Generator(arena, random, cache).draw()};
}

}  // namespace mnk::fuzz
