// Options of the Host device from the caller and from the environment.
#include "Harness/Check.hpp"
#include "Harness/EnvironmentVariable.hpp"
#include "HostOptions.hpp"

using namespace mnk;
using namespace mnk::host;
using namespace mnk::test;

TEST(HostOptions, DefaultToTheEnvironment) {
  const EnvironmentVariable seed("MNK_HOST_SEED", "18446744073709551615"), checking("MNK_HOST_CHECKING", "guarded"),
      perturb("MNK_HOST_PERTURB", "1");
  const HostOptions used = REQUIRE(resolve({}));
  EXPECT_EQ(used.orderSeed, ~uint64_t(0));
  EXPECT(used.checking == HostOptions::Checking::guarded);
  EXPECT(used.perturbsResults);
  EXPECT(REQUIRE(resolve({.orderSeed = 4})).orderSeed == 4);
}

TEST(HostOptions, AreOffWithoutAnEnvironment) {
  const EnvironmentVariable seed("MNK_HOST_SEED", std::nullopt), checking("MNK_HOST_CHECKING", "off"),
      perturb("MNK_HOST_PERTURB", "0");
  const HostOptions used = REQUIRE(resolve({}));
  EXPECT_EQ(used.orderSeed, 0u);
  EXPECT(used.checking == HostOptions::Checking::off);
  EXPECT(!used.perturbsResults);
}

TEST(HostOptions, RefuseInvalidVariables) {
  struct Case {
    const char *name, *value, *expected;
  };
  for (const Case& test :
       {Case{"MNK_HOST_SEED", "7x", "a whole number below 2^64"},
        Case{"MNK_HOST_SEED", "-1", "a whole number below 2^64"},
        Case{"MNK_HOST_SEED", "18446744073709551616", "a whole number below 2^64"},
        Case{"MNK_HOST_CHECKING", "Full", "off, guarded or full"}, Case{"MNK_HOST_PERTURB", "yes", "0 or 1"}}) {
    const Context context(fmt::format("{}={}", test.name, test.value));
    const EnvironmentVariable variable(test.name, test.value);
    EXPECT_ERROR(resolve({}), {.op = "Host device",
                               .what = fmt::format("environment variable {} cannot be read", test.name),
                               .got = test.value,
                               .expected = test.expected,
                               .fix = "Correct the variable"});
    EXPECT(!makeDevice({}));
  }
}

TEST(HostOptions, RefuseUnknownChecking) {
  for (const uint32_t value : {3u, UINT32_MAX}) {
    EXPECT_ERROR(resolve({.checking = static_cast<HostOptions::Checking>(value)}),
                 {.op = "Host device",
                  .what = "there is no such checking",
                  .got = fmt::format("{}", value),
                  .expected = "off (0), guarded (1) or full (2)",
                  .fix = "one of the listed values"});
  }
}
