#include "CAPI/Attention.hpp"

using namespace mnk;

namespace {

constexpr size_t kMostCaches = 4096;

Result<Preparation> preparationFrom(const mnk_preparation* preparation) {
  auto given = c::descriptor("mnk_preparation", preparation);
  if (!given) return std::move(given).error();
  auto type = c::dtype(given->dtype);
  if (!type) return std::move(type).error();
  auto tuning = c::tuning(given->tuning);
  if (!tuning) return std::move(tuning).error();
  auto options = c::attentionOptions(given->options);
  if (!options) return std::move(options).error();
  if (given->cache_count > kMostCaches) return c::tooMany("prepare", "caches", given->cache_count, kMostCaches);
  if (!given->caches && given->cache_count != 0) return c::nullArgument("caches");
  Preparation made{.queryHeads = given->query_heads,
                   .rows = given->rows == 0 ? 1 : given->rows,
                   .dtype = *type,
                   .options = std::move(*options),
                   .tuning = *tuning,
                   .tuningFile = given->tuning_file ? given->tuning_file : ""};
  for (size_t i = 0; i < given->cache_count; ++i) {
    if (!given->caches[i]) return c::nullArgument("a cache");
    made.caches.push_back(given->caches[i]->cache);
  }
  if (given->rotary) {
    auto rotary = c::rotary(*given->rotary);
    if (!rotary) return std::move(rotary).error();
    made.rotary = std::move(*rotary);
  }
  return made;
}

}  // namespace

bool mnk_device_prepare(mnk_device* device, const mnk_preparation* preparation, mnk_preparation_summary* summary,
                        mnk_error_out error) {
  return c::run(error, {{device, "device"}}, [&]() -> Result<void> {
    auto given = preparationFrom(preparation);
    if (!given) return std::move(given).error();
    if (summary && summary->size != sizeof *summary) {
      return c::wrongSize("mnk_preparation_summary", summary->size, sizeof *summary);
    }
    auto prepared = prepare(device->device, *given);
    if (!prepared) return std::move(prepared).error();
    if (summary) {
      *summary = {.size = sizeof *summary,
                  .kernels = prepared->kernels,
                  .measured = prepared->measured,
                  .known = prepared->known,
                  .seconds = prepared->seconds,
                  .is_kept = !prepared->tuningFile.empty()};
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
