#include "CAPI/KVSource.hpp"
#include "CAPI/KVViews.hpp"

using namespace mnk;

namespace {

Result<KVCacheWrite> writeFrom(const mnk_kv_cache_write* op) {
  auto given = c::descriptor("mnk_kv_cache_write", op);
  if (!given) return std::move(given).error();
  KVCacheWrite write;
  if (auto source = c::readSource(*given, write); !source) return std::move(source).error();
  auto into = c::cacheView(given->into, "into");
  if (!into) return std::move(into).error();
  write.into = *into;
  if (auto places = c::readPlaces(*given, write); !places) return std::move(places).error();
  return write;
}

}  // namespace

mnk_plan* mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(writeFrom(op)); });
}

bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, writeFrom(op)); });
}
