#include "Processor.hpp"

#include "HostLevels.h"

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
  switch (level) {
    case HostOptions::Level::best:
      return "best";
    case HostOptions::Level::baseline:
      return "baseline";
    case HostOptions::Level::avx2:
      return "AVX2";
    case HostOptions::Level::avx512:
      return "AVX-512";
  }
  return "unknown";
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

}  // namespace mnk::host
