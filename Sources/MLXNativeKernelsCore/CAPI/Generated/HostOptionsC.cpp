// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(HostOptions::Level& into, mnk_host_options_level from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_HOST_OPTIONS_LEVEL_BEST:
      into = HostOptions::Level::best;
      return {};
    case MNK_HOST_OPTIONS_LEVEL_BASELINE:
      into = HostOptions::Level::baseline;
      return {};
    case MNK_HOST_OPTIONS_LEVEL_AVX2:
      into = HostOptions::Level::avx2;
      return {};
    case MNK_HOST_OPTIONS_LEVEL_AVX512:
      into = HostOptions::Level::avx512;
      return {};
  }
  return unknownNumber("mnk_host_options_level", from, "MNK_HOST_OPTIONS_LEVEL_BEST to MNK_HOST_OPTIONS_LEVEL_AVX512");
}

Result<void> read(HostOptions::Checking& into, mnk_host_options_checking from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_HOST_OPTIONS_CHECKING_OFF:
      into = HostOptions::Checking::off;
      return {};
    case MNK_HOST_OPTIONS_CHECKING_GUARDED:
      into = HostOptions::Checking::guarded;
      return {};
    case MNK_HOST_OPTIONS_CHECKING_FULL:
      into = HostOptions::Checking::full;
      return {};
  }
  return unknownNumber("mnk_host_options_checking", from,
                       "MNK_HOST_OPTIONS_CHECKING_OFF to MNK_HOST_OPTIONS_CHECKING_FULL");
}

Result<void> read(HostOptions& into, const mnk_host_options& from, const Field&) {
  into.workers = from.workers;
  into.orderSeed = from.order_seed;
  MNK_TRY(read(into.checking, from.checking));
  into.allowsSameValue = from.allows_same_value;
  into.perturbsResults = from.perturbs_results;
  MNK_TRY(read(into.level, from.level));
  if (from.compiler) into.compiler = from.compiler;
  return {};
}

}  // namespace mnk::c
