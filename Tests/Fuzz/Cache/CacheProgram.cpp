#include <cmath>
#include <cstring>
#include <stdexcept>

#include "CacheCall.hpp"
#include "Harness/SoftFloat.hpp"
#include "OpMutator.hpp"
#include "Target.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;
using Kind = CacheCallKind;

Owned<mnk_cache> makeCache(Arena& arena, const CacheNumbers& cache) {
  mnk_attention_cache_descriptor descriptor = cache;
  if (cache.window() != 0) descriptor.capacity = 0;  // it sizes itself
  test::Caught caught;
  Owned<mnk_cache> made(mnk_cache_make(arena.device(0), &descriptor, caught.out()), mnk_cache_release);
  if (!made) throw std::runtime_error(fmt::format("no cache: {}", mnk_error_message(caught.get())));
  return made;
}

Owned<mnk_encoder> makeEncoder(Arena& arena) {
  return {mnk_encoder_make(arena.device(0), "fuzz", nullptr), mnk_encoder_release};
}

// A step, and the encoder that records it.
struct Recording {
  bool isOn = false;
  Owned<mnk_recorded_step> step{nullptr, mnk_recorded_step_release};
};

Verdict commit(mnk_encoder* encoder, std::string_view refusal = {}) {
  test::Caught caught;
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder, nullptr, nullptr, caught.out()), mnk_completion_release);
  Verdict verdict = checkResult(caught, bool(done), refusal);
  if (done && !mnk_completion_wait(done.get(), caught.out())) verdict.failure = mnk_error_message(caught.get());
  return verdict;
}

void expect(Arena& arena, const ExpectedNumbers& results) {
  const TensorSpec& into = results.into;
  const auto dtype = static_cast<DType>(into.dtype);
  const auto image = arena.image(into);
  for (uint64_t e = 0; e < results.numbers.size(); ++e) {
    const uint64_t bits = test::nearestBits(dtype, results.numbers[e]);
    std::memcpy(&image[e * into.elementBytes()], &bits, into.elementBytes());
  }
  const double digit = dtype == DType::f32 ? 0x1p-20 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
  arena.allow(into,
              [numbers = results.numbers, slack = results.slack, dtype, digit](uint64_t e, uint64_t now, uint64_t got) {
                if (now != test::nearestBits(dtype, numbers[e])) return false;  // of a later call
                return std::abs(test::valueOf(dtype, got) - numbers[e]) <= slack + digit * std::abs(numbers[e]);
              });
}

class CacheProgram final : public Case {
 public:
  CacheProgram(Arena& arena, Seeded& random)
      : random_(random),
        spec_(drawProgram(arena, random)),
        text_(OpText::of<mnk_attention_cache_descriptor>(spec_.cache, arena)) {}

  std::string text() const override { return text_; }

  Verdict run(Arena& arena) override {
    const Owned<mnk_cache> cache = makeCache(arena, spec_.cache);
    arena.remember();
    expectResults(arena);
    Owned<mnk_encoder> encoder = makeEncoder(arena);
    Recording recording;
    Verdict all;
    for (size_t index = 0; index < spec_.calls.size() && all.failure.empty(); ++index) {
      const CacheCall& call = spec_.calls[index];
      text_ += call.text();
      Verdict verdict;
      if (call.beginsStep) {
        encoder = {mnk_encoder_make_recording(arena.device(0), "fuzz", nullptr), mnk_encoder_release};
        recording.isOn = true;
      }
      if (call.kind == Kind::commit || call.kind == Kind::drop) {
        if (call.kind == Kind::commit && recording.isOn) {
          test::Caught caught;
          Owned<mnk_recorded_step> step(mnk_recorded_step_make(encoder.get(), caught.out()), mnk_recorded_step_release);
          verdict = step ? runStep(arena, call, step.get()) : checkResult(caught, false, call.refusal);
          if (step) recording.step = std::move(step);
        } else if (call.kind == Kind::commit) {
          verdict = commit(encoder.get(), call.refusal);
        }
        recording.isOn = false;
        encoder = makeEncoder(arena);
      } else if (call.kind == Kind::runStep) {
        verdict = runStep(arena, call, recording.step.get());
      } else {
        verdict = make(arena, call, cache.get(), encoder.get());
      }
      if (verdict.failure.empty()) verdict.failure = differenceOf(cache.get(), call.committed);
      if (!verdict.refusal.empty()) all = verdict;
      if (!verdict.failure.empty()) all.failure = fmt::format("call {}: {}", index + 1, verdict.failure);
    }
    if (all.failure.empty()) all.failure = arena.difference();
    return all;
  }

 private:
  // In their order, because later calls and runs may write to the same memory.
  void expectResults(Arena& arena) const {
    for (const CacheCall& call : spec_.calls) {
      for (const ExpectedNumbers& results : call.results) expect(arena, results);
    }
  }

  static Verdict runStep(Arena& arena, const CacheCall& call, mnk_recorded_step* step) {
    test::Caught caught;
    Owned<mnk_completion> done{nullptr, mnk_completion_release};
    if (call.isEncoded) {
      const Owned<mnk_encoder> encoder = makeEncoder(arena);
      if (mnk_encoder_encode_step(encoder.get(), step, caught.out())) {
        done = {mnk_encoder_commit(encoder.get(), nullptr, nullptr, caught.out()), mnk_completion_release};
      }
    } else {
      done = {mnk_recorded_step_run(step, nullptr, nullptr, caught.out()), mnk_completion_release};
    }
    Verdict verdict = checkResult(caught, bool(done), call.refusal);
    if (done && !mnk_completion_wait(done.get(), caught.out())) verdict.failure = mnk_error_message(caught.get());
    return verdict;
  }

  Verdict make(Arena& arena, const CacheCall& call, mnk_cache* cache, mnk_encoder* encoder) {
    test::Caught caught;
    if (call.kind == Kind::truncate) {
      return checkResult(caught, mnk_cache_truncate(cache, call.position, call.sequence, caught.out()), call.refusal);
    }
    if (call.kind == Kind::copy) {
      const bool isDone = mnk_encoder_copy_sequence(encoder, cache, call.sequence, call.target, caught.out());
      return checkResult(caught, isDone, call.refusal);
    }
    const CacheStep structs = stepOf(call, cache, arena, random_);
    const mnk_cache_step* const step = call.hasStep ? &structs.step : nullptr;
    if (call.kind == Kind::rotate) {
      text_ += OpText::of(structs.rope, arena);
      return checkResult(caught, mnk_encoder_multi_rope(encoder, &structs.rope, caught.out()), call.refusal);
    }
    text_ += OpText::of(structs.step, arena);
    const Owned<mnk_encoder> committed = makeEncoder(arena);
    if (call.isCommitted) {
      if (Verdict verdict = commit(committed.get()); !verdict.failure.empty()) return verdict;
      encoder = committed.get();
    }
    const auto encode = call.kind == Kind::append
                            ? mnk_encoder_append
                            : (call.kind == Kind::appendAndAttend ? mnk_encoder_append_and_attend : nullptr);
    if (!call.hasEncoder) encoder = nullptr;
    if (!call.hasCache) cache = nullptr;
    const bool isDone =
        encode ? encode(encoder, cache, step, caught.out()) : mnk_encoder_attend(encoder, cache, step, caught.out());
    return checkResult(caught, isDone, call.refusal);
  }

  // Where the sequences are not what they must be, in words.
  std::string differenceOf(const mnk_cache* cache, const std::vector<Standing>& expected) const {
    for (uint32_t sequence = 0; sequence < expected.size(); ++sequence) {
      const auto [next, count] = expected[sequence];
      mnk_sequence_state state{};
      if (!mnk_cache_get_sequence(cache, sequence, &state, nullptr)) return fmt::format("no sequence {}", sequence);
      if (state.is_suspect) return fmt::format("sequence {} is suspect", sequence);
      if (state.next_position == next && state.count == count) continue;
      return fmt::format("sequence {} is at position {} with {} held, expected {} and {}", sequence,
                         state.next_position, state.count, next, count);
    }
    const CacheModel model(spec_.cache);
    for (const uint32_t sequence : {spec_.cache.sequences, MNK_ONLY_SEQUENCE}) {
      mnk_sequence_state state{};
      test::Caught caught;
      const bool isKnown = mnk_cache_get_sequence(cache, sequence, &state, caught.out());
      if (const auto verdict = checkResult(caught, isKnown, model.refusalOfName(sequence)); !verdict.failure.empty()) {
        return verdict.failure;
      }
    }
    return {};
  }

  Seeded& random_;
  CacheProgramSpec spec_;
  std::string text_;  // the cache, and the calls so far
};

}  // namespace

std::unique_ptr<Case> makeCacheProgram(Arena& arena, Seeded& random) {
  return std::make_unique<CacheProgram>(arena, random);
}

std::vector<std::string_view> cacheProgramRefusals() {
  return {"encoder is missing",
          "cache is missing",
          "mnk_cache_step is missing",
          "the number is not a case of mnk_kv_layout",
          "queries.tensor is missing",
          "keys.tensor is missing",
          "values.tensor is missing",
          "queries have no memory",
          "a source has no memory",
          "sequences is missing",
          "the encoder is used after it was committed",
          "the sequence is not in the cache",
          "the call does not say which sequence of the cache it is for",
          "causal attention of this step has already read the sequence, without these tokens",
          "the step rotates tokens by the cache's next positions and does not append them",
          "the step rotates tokens by the cache's next positions and uses other keys",
          "the step rotates tokens by the cache's next positions and uses other queries",
          "keys were rotated for another token",
          "queries were rotated for another token",
          "tokens were rotated for another token",
          "tokens are rotated twice",
          "keys were rotated by another embedding than the step's keys",
          "queries were rotated by another embedding than the step's keys",
          "a step rotates tokens of a sequence by two embeddings",
          "keys were rotated with other heads than they are used with",
          "queries were rotated with other heads than they are used with",
          "rotary positions stay as recorded, while the cache advances with every run",
          "positions.cache is missing",
          "positions.sequences is missing",
          "there are several values for positions",
          "rotary.positions.cache is missing",
          "rotary.positions.sequences is missing",
          "there are several values for rotary.positions",
          "there are too many rotary.positions.sequences",
          "the rows do not match the listed sequences",
          "there are too many sequences",
          "there are too many positions.sequences",
          "the step has no sequence",
          "the sequence is full",
          "the write runs past the end of a linear cache",
          "vectors lie outside of their tensor",
          "queries lie outside of their tensor",
          "an extent is too large for the kernel",
          "this pair of dtypes cannot be written",
          "values have another dtype than keys",
          "keys do not have the cache's heads and headDim",
          "values do not have the cache's heads and headDim",
          "queries have another head dim than keys",
          "there is no kernel for these head dims",
          "a sequence has fewer positions than queries",
          "a sequence is listed again in attention that is not causal",
          "attention that is not causal cannot be divided into chunks",
          "a window reaches positions that the ring has overwritten",
          "rows are of tokens that the ring has overwritten",
          "the ring is too small for the window",
          "the window reaches positions that the sequence has lost",
          "attention needs exactly one target",
          "a result does not match the queries",
          "the scale cannot be used",
          "the window is too large",
          "operands share memory",
          "a latent cache cannot rotate",
          "attention over a latent cache has no scale",
          "the rope dim is odd or zero",
          "the base is not a positive number",
          "a position is out of range",
          "positions do not match the tokens",
          "offsets do not match the sequences",
          "offsets are given for sequences that differ in their rows",
          "the sequence cannot be cut there",
          "the rollback is too long for the sliding window"};
}

}  // namespace mnk::fuzz
