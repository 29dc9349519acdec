#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

using namespace mnk;

namespace {

constexpr size_t kMaxCaches = 4096;

Result<Preparation> preparationFrom(const mnk_preparation* preparation) {
  MNK_TRY(auto input, c::descriptor("mnk_preparation", preparation));
  DType type{};
  MNK_TRY(c::read(type, input.dtype));
  if (input.cache_count > kMaxCaches) return c::tooMany("prepare", "caches", input.cache_count, kMaxCaches);
  if (!input.caches && input.cache_count != 0) return c::nullArgument("caches");
  if (input.caches && input.cache_count == 0) return c::uncounted("prepare", "caches", "cache_count");
  Preparation result{.queryHeads = input.query_heads,
                     .rows = input.rows == 0 ? 1 : input.rows,
                     .dtype = type,
                     .tuningFile = input.tuning_file ? input.tuning_file : ""};
  MNK_TRY(c::read(result.tuning, input.tuning));
  MNK_TRY(c::read(result.options, input.options, {nullptr, "options"}));
  for (size_t i = 0; i < input.cache_count; ++i) {
    if (!input.caches[i]) return c::nullArgument("a cache");
    result.caches.push_back(input.caches[i]->cache);
  }
  if (input.has_rotary) {
    MNK_TRY(c::read(result.rotary.emplace(), input.rotary, {nullptr, "rotary"}));
  } else if (c::isFilled(input.rotary)) {
    return c::ignored("mnk_preparation", "rotary", "has_rotary");
  }
  return result;
}

}  // namespace

bool mnk_device_prepare(mnk_device* device, const mnk_preparation* preparation, mnk_preparation_summary* summary,
                        mnk_error_out error) {
  return c::run(error, {{device, "device"}}, [&]() -> Result<void> {
    MNK_TRY(auto input, preparationFrom(preparation));
    MNK_TRY(auto prepared, prepare(device->device, input));
    if (summary) {
      *summary = {.kernels = prepared.kernels,
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
