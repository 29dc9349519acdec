#include "HostOptions.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

#include "ChildProcess.hpp"
#include "HostLevels.h"
#include "HostLibrary.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

HostOptions::Level bestLevel() {
#if MNK_HOST_HAS_AVX2
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (MNK_HOST_HAS_AVX512 && avx2 && avx512) return HostOptions::Level::avx512;
  if (avx2) return HostOptions::Level::avx2;
#endif
  return HostOptions::Level::baseline;
}

std::string_view name(HostOptions::Level level) {
  static constexpr std::string_view kNames[] = {"best", "baseline", "AVX2", "AVX-512"};
  return nameIn(kNames, static_cast<size_t>(level), "unknown");
}

std::string_view architectureName() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "unknown";
#endif
}

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Error badVariable(std::string_view name, std::string_view value, std::string_view expected) {
  return hostError(ErrorCode::invalidArgument, fmt::format("environment variable {} cannot be read", name), value,
                   expected, "Correct the variable or remove it.");
}

Result<void> completeFromEnvironment(HostOptions& options) {
  if (const auto value = variable("MNK_HOST_SEED"); !value.empty() && options.orderSeed == 0) {
    const auto read = std::from_chars(value.data(), value.data() + value.size(), options.orderSeed);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) {
      return badVariable("MNK_HOST_SEED", value, "a whole number below 2^64");
    }
  }
  if (const auto value = variable("MNK_HOST_CHECKING");
      !value.empty() && options.checking == HostOptions::Checking::off) {
    if (value == "guarded") {
      options.checking = HostOptions::Checking::guarded;
    } else if (value == "full") {
      options.checking = HostOptions::Checking::full;
    } else if (value != "off") {
      return badVariable("MNK_HOST_CHECKING", value, "off, guarded or full");
    }
  }
  if (const auto value = variable("MNK_HOST_PERTURB"); !value.empty() && !options.perturbsResults) {
    if (value != "0" && value != "1") return badVariable("MNK_HOST_PERTURB", value, "0 or 1");
    options.perturbsResults = value == "1";
  }
  return {};
}

}  // namespace

Result<HostOptions> resolve(const HostOptions& options) {
  constexpr uint32_t kMaxWorkers = 1024;
  HostOptions used = options;
  MNK_TRY(completeFromEnvironment(used));
  if (used.level == HostOptions::Level::best) used.level = bestLevel();
  if (used.level > bestLevel()) {
    return hostError(ErrorCode::unsupported, "there are no kernels for the instruction set", name(used.level),
                     fmt::format("{} or lower", name(bestLevel())), "Use the best level.");
  }
  if (used.workers > kMaxWorkers) {
    return hostError(ErrorCode::invalidArgument, "too many workers", fmt::format("{}", used.workers),
                     fmt::format("at most {}", kMaxWorkers), "Use 0 for one worker per core.");
  }
  if (used.checking > HostOptions::Checking::full) {
    return hostError(ErrorCode::invalidArgument, "there is no such checking",
                     fmt::format("{}", static_cast<uint32_t>(used.checking)), "off (0), guarded (1) or full (2)",
                     "Use one of the listed values.");
  }
  if (used.checking == HostOptions::Checking::full && !kCanRunPrograms) {
    return hostError(ErrorCode::unsupported, "full checking needs a compiler, which apps of this system cannot start",
                     "full", "off or guarded", "Check with guarded here, and with full on Linux or a Mac.");
  }
  return used;
}

std::string replayHint(const HostOptions& options) {
  return options.orderSeed == 0 ? "" : fmt::format(" Order seed {} replays it.", options.orderSeed);
}

}  // namespace mnk::host
