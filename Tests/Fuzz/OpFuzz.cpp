#include "OpFuzz.hpp"

#include <algorithm>

namespace mnk::fuzz {

namespace {

using test::Owned;

constexpr std::string_view kNoEncoder = "encoder is missing";
constexpr std::string_view kCommitted = "the encoder is used after it was committed";
constexpr std::string_view kForeign = "a tensor belongs to another device";

enum class EncoderState { open, missing, committed };

std::string_view name(EncoderState state) {
  return state == EncoderState::open ? "an open encoder"
                                     : (state == EncoderState::missing ? "no encoder" : "a committed encoder");
}

// Makes a call that stores errors, and checks that it stores a complete one where it fails, and none where it succeeds.
template <typename Call>
Verdict attempt(std::string_view which, Call&& call) {
  static char untouched;
  auto* const before = reinterpret_cast<mnk_error*>(&untouched);
  mnk_error* error = before;
  if (call(&error)) {
    return {.failure = error == before ? "" : fmt::format("{} succeeded and stored an error", which)};
  }
  if (error == before || !error) return {.failure = fmt::format("{} failed without an error", which)};
  const Owned<mnk_error> owned(error, mnk_error_release);
  return refusalBy(error);
}

bool usesAnotherDevice(const mnk_plan& plan, const Device& device) {
  return std::any_of(plan.plan.dispatches.begin(), plan.plan.dispatches.end(), [&](const Dispatch& dispatch) {
    return !dispatch.grid.isEmpty() &&
           std::any_of(dispatch.buffers.begin(), dispatch.buffers.end(),
                       [&](const Binding& binding) { return binding.buffer && !binding.buffer->isOf(device); });
  });
}

class OpCase final : public Case {
 public:
  OpCase(Seeded& random, std::unique_ptr<FuzzedCall> earlier, std::unique_ptr<FuzzedCall> call)
      : random_(random), earlier_(std::move(earlier)), call_(std::move(call)) {
    const uint64_t draw = random.below(64);
    if (!earlier_) state_ = draw == 0 ? EncoderState::missing : (draw == 1 ? EncoderState::committed : state_);
    isErrorWanted_ = random.below(16) != 0;
  }

  std::string text() const override {
    return fmt::format("{}{} with {}", earlier_ ? fmt::format("after {}\n", earlier_->text()) : "", call_->text(),
                       name(state_));
  }

  Verdict run(Arena& arena) override {
    test::takeFailures();
    Owned<mnk_plan> plan(nullptr, mnk_plan_release);
    const Verdict planned = attempt("the plan", [&](mnk_error_out error) {
      plan.reset(call_->makePlan(arena.device(0), error));
      return bool(plan);
    });
    if (!planned.failure.empty()) return planned;
    if (plan && call_->mustBeRefused()) return {.failure = "a missing struct was accepted"};
    if (!plan && call_->isValid()) return {.failure = "a valid call was refused: " + planned.message};
    if (plan) call_->fill(arena, random_, !earlier_);
    if (earlier_) earlier_->fill(arena, random_, false);
    arena.remember();
    if (earlier_) {
      if (std::string failure = runEarlier(arena); !failure.empty()) return {.failure = "the earlier call: " + failure};
    }
    Owned<mnk_encoder> encoder(nullptr, mnk_encoder_release);
    if (std::string failure = makeEncoder(arena, encoder); !failure.empty()) return {.failure = failure};
    Verdict verdict = encode(arena, encoder.get(), planned, plan.get());
    if (verdict.failure.empty() && state_ == EncoderState::open) verdict.failure = commit(encoder.get());
    if (verdict.failure.empty()) verdict.failure = check(arena, verdict.refusal.empty(), plan.get());
    return verdict;
  }

 private:
  // What the earlier call leaves is what it leaves by itself; from there on the images have it.
  std::string runEarlier(Arena& arena) {
    const Owned<mnk_encoder> encoder(mnk_encoder_make(arena.device(0), "earlier", nullptr), mnk_encoder_release);
    if (std::string failure = encodeEarlier(arena, encoder.get()); !failure.empty()) return failure;
    if (std::string failure = commit(encoder.get()); !failure.empty()) return failure;
    counts_ = {};
    earlier_->expect(arena, false);
    if (std::string failures = test::takeFailures(); !failures.empty()) return failures;
    arena.swapImages();
    return {};
  }

  std::string encodeEarlier(Arena& arena, mnk_encoder* encoder) {
    test::Caught caught;
    const Owned<mnk_plan> plan(earlier_->makePlan(arena.device(0), caught.out()), mnk_plan_release);
    if (!plan || !earlier_->encode(encoder, caught.out())) return mnk_error_message(caught.get());
    count(plan.get());
    return {};
  }

  std::string makeEncoder(Arena& arena, Owned<mnk_encoder>& encoder) {
    if (state_ == EncoderState::missing) return {};
    encoder.reset(mnk_encoder_make(arena.device(0), "fuzz", nullptr));
    if (earlier_) return encodeEarlier(arena, encoder.get());
    if (state_ != EncoderState::committed) return {};
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    return done && mnk_completion_wait(done.get(), nullptr) ? "" : "an empty encoder did not run";
  }

  // What a call must say that has this plan, or that was refused so.
  std::string expectedRefusal(Arena& arena, const Verdict& planned, const mnk_plan* plan) const {
    if (state_ == EncoderState::missing) return std::string(kNoEncoder);
    if (!plan) return planned.refusal;
    if (state_ == EncoderState::committed) return std::string(kCommitted);
    return std::string(usesAnotherDevice(*plan, *arena.device(0)->device) ? kForeign : "");
  }

  Verdict encode(Arena& arena, mnk_encoder* encoder, const Verdict& planned, const mnk_plan* plan) {
    const std::string expected = expectedRefusal(arena, planned, plan);
    // The caller may decline the error; the outcome is the same.
    if (!isErrorWanted_ && !expected.empty() && call_->encode(encoder, nullptr)) {
      return {.failure = "accepted without a place for the error: " + expected};
    }
    Verdict encoded = attempt("the call", [&](mnk_error_out error) { return call_->encode(encoder, error); });
    if (encoded.failure.empty() && encoded.refusal != expected) {
      encoded.failure =
          fmt::format("the call said: {}\n  expected: {}", encoded.refusal.empty() ? "success" : encoded.message,
                      expected.empty() ? "success" : expected);
    }
    if (encoded.refusal.empty() && plan) count(plan);
    return encoded;
  }

  void count(const mnk_plan* plan) {
    for (size_t index = 0; index < mnk_plan_dispatch_count(plan); ++index) {
      const mnk_planned_dispatch dispatch = mnk_plan_dispatch(plan, index);
      counts_.dispatches += 1;
      counts_.bytes_read += dispatch.bytes_read;
      counts_.bytes_written += dispatch.bytes_written;
    }
  }

  // Runs what was recorded and compares the encoder's own account with the plans of the accepted calls.
  std::string commit(mnk_encoder* encoder) const {
    test::Caught caught;
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder, nullptr, nullptr, caught.out()),
                                     mnk_completion_release);
    if (!done || !mnk_completion_wait(done.get(), caught.out())) {
      return fmt::format("the encoder did not run: {}", caught.isSet() ? mnk_error_message(caught.get()) : "no error");
    }
    const mnk_summary summary = mnk_completion_summary(done.get());
    const mnk_counts& total = summary.total;
    const bool isSame = total.dispatches == counts_.dispatches && total.bytes_read == counts_.bytes_read &&
                        total.bytes_written == counts_.bytes_written;
    const uint64_t mostBarriers = counts_.dispatches == 0 ? 0 : counts_.dispatches - 1;
    if (isSame && summary.barriers <= mostBarriers) return {};
    return fmt::format(
        "the summary says {} dispatches, {} bytes read, {} written, {} barriers; expected {}, {}, {}, at most {}",
        total.dispatches, total.bytes_read, total.bytes_written, summary.barriers, counts_.dispatches,
        counts_.bytes_read, counts_.bytes_written, mostBarriers);
  }

  std::string check(Arena& arena, bool isAccepted, const mnk_plan* plan) const {
    if (!isAccepted) return arena.difference();
    const uint64_t written = call_->expect(arena, earlier_ && !call_->isValid());
    if (std::string failures = test::takeFailures(); !failures.empty()) return failures;
    uint64_t planned = 0;
    for (size_t index = 0; index < mnk_plan_dispatch_count(plan); ++index) {
      planned += mnk_plan_dispatch(plan, index).bytes_written;
    }
    if (written != FuzzedCall::kUnknown && written != planned) {
      return fmt::format("the plan writes {} bytes, expected {}", planned, written);
    }
    return arena.differenceOutside(call_->outputs());
  }

  Seeded& random_;
  EncoderState state_ = EncoderState::open;
  bool isErrorWanted_ = true;
  std::unique_ptr<FuzzedCall> earlier_;
  std::unique_ptr<FuzzedCall> call_;
  mnk_counts counts_{};
};

}  // namespace

std::unique_ptr<Case> makeOpCase(Seeded& random, std::unique_ptr<FuzzedCall> earlier,
                                 std::unique_ptr<FuzzedCall> call) {
  return std::make_unique<OpCase>(random, std::move(earlier), std::move(call));
}

HeadsView scattered(const HeadsView& view, Arena& arena, Seeded& random, bool mayRepeat) {
  HeadsView::Strides strides = view.resolved();
  struct Axis {
    uint64_t count;
    uint64_t* stride;
  };
  Axis axes[] = {{strides.heads, &strides.headStride},
                 {strides.tokens, &strides.tokenStride},
                 {strides.sequences, &strides.sequenceStride}};
  for (size_t i = 2; i > 0 && coin(random, 1, 2); --i) std::swap(axes[i], axes[random.below(i + 1)]);
  const uint64_t unit = coin(random, 1, 2) ? 4 : 1;  // elements that go together where addresses allow it
  const auto gap = [&] { return coin(random, 1, 2) ? 0 : unit * random.below(4); };
  uint64_t reach = strides.headDim;
  for (const Axis& axis : axes) {
    const bool isRepeated = mayRepeat && coin(random, 1, 6);
    *axis.stride = isRepeated ? random.below(2) * random.below(strides.headDim + 1) : reach + gap();
    if (axis.count > 1) reach += (axis.count - 1) * *axis.stride;
    if (axis.count <= 1 && coin(random, 1, 4)) *axis.stride = edge(random, {strides.headDim});  // leads nowhere
  }
  strides.offset = gap();
  const uint64_t elements = strides.offset + reach + gap();
  const bool isFlat = coin(random, 2, 3);
  const auto shape = isFlat ? Shape::make({elements}) : Shape::make({1, elements, 1});
  return HeadsView(arena.place(view.tensor.dtype(), *shape, random), strides);
}

std::vector<std::string_view> refusalsOf(std::initializer_list<std::string_view> ofCAPI) {
  std::vector<std::string_view> all{kNoEncoder, kCommitted, kForeign};
  all.insert(all.end(), ofCAPI.begin(), ofCAPI.end());
  return all;
}

}  // namespace mnk::fuzz
