#include "OpCase.hpp"

#include "ResultCheck.hpp"

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

struct Attempt {
  bool isAccepted = false;
  std::string refusal = {};
  mnk_error_code code = {};
  std::string failure = {};
};

// Makes a call that stores errors and checks it by what it must say; `call` returns whether it succeeded.
template <typename Call>
Attempt attempt(std::string_view which, const std::string& expected, Call&& call) {
  // On success the place for the error keeps what it had.
  static char untouched;
  auto* const before = reinterpret_cast<mnk_error*>(&untouched);
  mnk_error* error = before;
  Attempt result{.isAccepted = call(&error)};
  if (result.isAccepted) {
    if (error != before) result.failure = fmt::format("{} succeeded and stored an error", which);
    if (!expected.empty()) result.failure = fmt::format("{} was accepted, expected: {}", which, expected);
    return result;
  }
  if (error == before || !error) {
    result.failure = fmt::format("{} failed without an error", which);
    return result;
  }
  const Owned<mnk_error> owned(error, mnk_error_release);
  result.refusal = mnk_error_what(error);
  result.code = mnk_error_get_code(error);
  if (const std::string problem = problemWith(error); !problem.empty()) {
    result.failure = fmt::format("the error of {}: {}", which, problem);
  } else if (expected != result.refusal) {
    result.failure = fmt::format("{} said: {}\n  expected: {}", which, mnk_error_message(error),
                                 expected.empty() ? "success" : expected);
  }
  return result;
}

class OpCase final : public Case {
 public:
  OpCase(Arena& arena, Seeded& random, MakeOpCall make) {
    const uint64_t draw = random.below(64);
    state_ = draw == 0 ? EncoderState::missing : (draw == 1 ? EncoderState::committed : EncoderState::open);
    isErrorWanted_ = random.below(16) != 0;
    if (state_ == EncoderState::open && random.below(4) == 0) earlier_ = make(arena, random, Wish::valid, Bank::first);
    call_ = make(arena, random, random.below(5) < 2 ? Wish::valid : Wish::anything, Bank::second);
  }

  std::string text() const override {
    return fmt::format("{}{} with {}", earlier_ ? fmt::format("after {}\n", earlier_->text()) : "", call_->text(),
                       name(state_));
  }

  Verdict run(Arena& arena) override {
    arena.remember();
    Owned<mnk_encoder> encoder(nullptr, mnk_encoder_release);
    if (state_ != EncoderState::missing) encoder.reset(mnk_encoder_make(arena.device(0), "fuzz", nullptr));
    if (state_ == EncoderState::committed) {
      const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                       mnk_completion_release);
      if (!done || !mnk_completion_wait(done.get(), nullptr)) return {.failure = "an empty encoder did not run"};
    }
    if (earlier_) {
      const Attempt first = record(arena, encoder.get(), *earlier_);
      if (!first.failure.empty()) return {.failure = "the earlier call: " + first.failure};
    }
    const Attempt recorded = record(arena, encoder.get(), *call_);
    Verdict verdict{.refusal = recorded.refusal, .code = recorded.code, .failure = recorded.failure};
    if (verdict.failure.empty() && state_ == EncoderState::open) verdict.failure = commit(encoder.get());
    if (verdict.failure.empty()) verdict.failure = arena.difference();
    return verdict;
  }

 private:
  std::string expectedRefusal(const OpCall& call) const {
    if (state_ == EncoderState::missing) return std::string(kNoEncoder);
    if (std::string broken = call.refusal(); !broken.empty()) return broken;
    if (state_ == EncoderState::committed) return std::string(kCommitted);
    return std::string(call.isForeign() && !call.isEmpty() ? kForeign : "");
  }

  Attempt record(Arena& arena, mnk_encoder* encoder, const OpCall& call) {
    Owned<mnk_plan> plan(nullptr, mnk_plan_release);
    const Attempt planned = attempt("the plan", call.refusal(), [&](mnk_error_out error) {
      plan.reset(call.makePlan(error));
      return bool(plan);
    });
    if (!planned.failure.empty()) return planned;

    const std::string expected = expectedRefusal(call);
    if (!isErrorWanted_ && !expected.empty()) {
      // The caller may decline the error; the outcome is the same.
      if (call.encode(encoder, nullptr)) return {.failure = "accepted without a place for the error: " + expected};
    }
    Attempt recorded = attempt("the call", expected, [&](mnk_error_out error) { return call.encode(encoder, error); });
    if (!recorded.isAccepted || !recorded.failure.empty()) return recorded;

    const uint64_t written = call.apply(arena);
    if (mnk_plan_dispatch_count(plan.get()) == 0 && !call.isEmpty()) recorded.failure = "the plan runs nothing";
    uint64_t planWrites = 0;
    for (size_t index = 0; index < mnk_plan_dispatch_count(plan.get()); ++index) {
      const mnk_planned_dispatch dispatch = mnk_plan_dispatch(plan.get(), index);
      counts_.dispatches += 1;
      counts_.bytes_read += dispatch.bytes_read;
      planWrites += dispatch.bytes_written;
    }
    counts_.bytes_written += planWrites;
    if (written != OpCall::kUnknown && written != planWrites) {
      recorded.failure = fmt::format("the plan writes {} bytes, expected {}", planWrites, written);
    }
    return recorded;
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

  EncoderState state_ = EncoderState::open;
  bool isErrorWanted_ = true;
  std::unique_ptr<OpCall> earlier_;
  std::unique_ptr<OpCall> call_;
  mnk_counts counts_{};
};

}  // namespace

std::unique_ptr<Case> makeOpCase(Arena& arena, Seeded& random, MakeOpCall make) {
  return std::make_unique<OpCase>(arena, random, make);
}

std::vector<std::string_view> encoderRefusals() {
  return {kNoEncoder, kCommitted, kForeign};
}

}  // namespace mnk::fuzz
