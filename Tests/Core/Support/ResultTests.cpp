#include "MLXNativeKernels/Result.hpp"

#include <memory>
#include <set>
#include <stdexcept>

#include "Harness/Check.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

constexpr ErrorCode kCodes[] = {ErrorCode::invalidArgument, ErrorCode::unsupported,  ErrorCode::outOfMemory,
                                ErrorCode::libraryNotFound, ErrorCode::shaderBuild,  ErrorCode::deviceFault,
                                ErrorCode::deviceLost,      ErrorCode::timeout,      ErrorCode::pageFault,
                                ErrorCode::notPermitted,    ErrorCode::wouldDeadlock};

}  // namespace

TEST(Result, MessageJoinsThePartsPresent) {
  const std::pair<std::string_view, std::string_view> gotAndExpected[] = {{"", ""}, {"a", ""}, {"", "b"}, {"a", "b"}};
  constexpr std::string_view kTexts[] = {"", " (got a)", " (expected b)", " (got a, expected b)"};
  for (size_t i = 0; i < std::size(kTexts); ++i) {
    for (const std::string op : {"", "Op"}) {
      for (const std::string fix : {"", "Fix it."}) {
        const auto& [got, expected] = gotAndExpected[i];
        const Error error{
            .op = op, .what = "it broke", .got = std::string(got), .expected = std::string(expected), .fix = fix};
        const std::string text = fmt::format("it broke{}.", kTexts[i]);
        EXPECT_EQ(error.message(), (op.empty() ? "" : "Op: ") + text + (fix.empty() ? "" : " Fix it."));
      }
    }
  }
  EXPECT_EQ((Error{.op = "Op", .what = "{} broke", .got = "{0}", .expected = "{x}", .fix = "{"}.message()),
            "Op: {} broke (got {0}, expected {x}). {");
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (const ErrorCode code : kCodes) names.insert(name(code));
  EXPECT_EQ(names.size(), std::size(kCodes));
  EXPECT(!names.contains("unknown code"));
  EXPECT_EQ(name(static_cast<ErrorCode>(0)), "unknown code");
  EXPECT_EQ(name(static_cast<ErrorCode>(12)), "unknown code");
}

TEST(Result, IsCopiedMovedAndAssignedInEitherState) {
  using Shared = Result<std::shared_ptr<int>>;
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
  const auto one = std::make_shared<int>(1);
  const Shared value(one), error(Error{.what = "a text that is too long to be kept inside of a string"});
  for (const Shared* from : {&value, &error}) {
    for (const Shared* before : {&value, &error}) {
      Shared copied(*from), assigned(*before), moved(*before);
      assigned = *from;
      moved = Shared(std::move(copied));
      for (const Shared* got : {&assigned, &moved}) {
        EXPECT_EQ(bool(*got), bool(*from));
        if (*got) EXPECT(**got == one);
        if (!*got) EXPECT_EQ(got->error().what, error.error().what);
      }
    }
  }
  EXPECT_EQ(one.use_count(), 2);
}

TEST(Result, TryPropagatesErrors) {
  const auto halfOf = [](Result<std::unique_ptr<int>> parsed, Result<void> checked) -> Result<int> {
    MNK_TRY(std::move(checked));
    MNK_TRY(auto number, std::move(parsed));
    return *number / 2;
  };
  EXPECT_EQ(*halfOf(std::make_unique<int>(6), {}), 3);
  EXPECT_ERROR(halfOf(Error{.what = "no number"}, {}), {.what = "no number"});
  EXPECT_ERROR(halfOf(std::make_unique<int>(6), Error{.what = "not now"}), {.what = "not now"});
}

TEST(Result, GuardTurnsExceptionsIntoErrors) {
  const auto exhausted = guarded("Op", []() -> Result<void> { throw std::bad_alloc(); });
  EXPECT_ERROR(exhausted, {.code = ErrorCode::outOfMemory, .op = "Op", .what = "memory ran out", .fix = "Free memory"});
  EXPECT(!exhausted && exhausted.error().retryable);
  const auto surprised = guarded("Op", []() -> Result<int> { throw std::runtime_error("boo"); });
  EXPECT_ERROR(surprised, {.code = ErrorCode::deviceFault, .op = "Op", .what = "exception", .got = "boo"});
  EXPECT(!surprised && !surprised.error().retryable);
  EXPECT_EQ(*guarded("Op", []() -> Result<int> { return 4; }), 4);
}

TEST(Result, FirstBrokenRuleEndsChecking) {
  using Op = int;
  static constexpr Rule<Op> kRules[] = {
      INVALID_IF(op < 0, "the number is negative", fmt::format("{}", op), "0 or more", "Count up."),
      INVALID_IF(op < 0 ? throw Stop{} : op % 2 != 0, "the number is odd", fmt::format("{}", op), "even", "Add one."),
  };
  const auto check = [](int number) { return checkRules<int>(kRules, number, "Numbers"); };
  EXPECT(bool(check(2)));
  EXPECT_ERROR(check(3),
               {.op = "Numbers", .what = "the number is odd", .got = "3", .expected = "even", .fix = "Add one."});
  EXPECT_ERROR(check(-3),
               {.op = "Numbers", .what = "negative", .got = "-3", .expected = "0 or more", .fix = "Count up."});
}

}  // namespace mnk::test
