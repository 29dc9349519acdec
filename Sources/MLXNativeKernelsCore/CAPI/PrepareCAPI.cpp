#include "CAPI/Attention.hpp"

#include "Support/Try.hpp"

using namespace mnk;

namespace {

constexpr size_t kMostCaches = 4096;

Result<Preparation> preparationFrom(const mnk_preparation* preparation) {
  MNK_TRY(auto given, c::descriptor("mnk_preparation", preparation));
  MNK_TRY(auto type, c::dtype(given.dtype));
  MNK_TRY(auto tuning, c::tuning(given.tuning));
  MNK_TRY(auto options, c::attentionOptions(given.options));
  if (given.cache_count > kMostCaches) return c::tooMany("prepare", "caches", given.cache_count, kMostCaches);
  if (!given.caches && given.cache_count != 0) return c::nullArgument("caches");
  Preparation made{.queryHeads = given.query_heads,
                   .rows = given.rows == 0 ? 1 : given.rows,
                   .dtype = type,
                   .options = std::move(options),
                   .tuning = tuning,
                   .tuningFile = given.tuning_file ? given.tuning_file : ""};
  for (size_t i = 0; i < given.cache_count; ++i) {
    if (!given.caches[i]) return c::nullArgument("a cache");
    made.caches.push_back(given.caches[i]->cache);
  }
  if (given.rotary) {
    MNK_TRY(auto rotary, c::rotary(*given.rotary));
    made.rotary = std::move(rotary);
  }
  return made;
}

}  // namespace

bool mnk_device_prepare(mnk_device* device, const mnk_preparation* preparation, mnk_preparation_summary* summary,
                        mnk_error_out error) {
  return c::run(error, {{device, "device"}}, [&]() -> Result<void> {
    MNK_TRY(auto given, preparationFrom(preparation));
    if (summary && summary->size != sizeof *summary) {
      return c::wrongSize("mnk_preparation_summary", summary->size, sizeof *summary);
    }
    MNK_TRY(auto prepared, prepare(device->device, given));
    if (summary) {
      *summary = {.size = sizeof *summary,
                  .kernels = prepared.kernels,
                  .measured = prepared.measured,
                  .known = prepared.known,
                  .seconds = prepared.seconds,
                  .is_kept = !prepared.tuningFile.empty()};
    }
    return {};
  });
}

char* mnk_preparation_summary_copy_text(const mnk_preparation_summary* summary) {
  return c::copyText({summary, "summary"}, [&] {
    return PreparationSummary{.kernels = summary->kernels,
                              .measured = summary->measured,
                              .known = summary->known,
                              .seconds = summary->seconds}
        .text();
  });
}
