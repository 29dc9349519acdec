#include "CAPI/KVSource.hpp"

using namespace mnk;

namespace {

Result<KVCacheView> viewFrom(const mnk_kv_cache_view& given) {
  // Inside another struct a longer view would have moved all that follows it.
  if (given.size != sizeof given) return c::wrongSize("mnk_kv_cache_view", given.size, sizeof given);
  if (!given.keys) return c::nullArgument("into.keys");
  auto layout = c::layout(given.layout);
  if (!layout) return std::move(layout).error();
  auto wrap = c::wrap(given.wrap);
  if (!wrap) return std::move(wrap).error();
  KVCacheView view{.keys = given.keys->tensor, .layout = *layout, .wrap = *wrap, .pinned = given.pinned};
  if (given.values) view.values = given.values->tensor;
  return view;
}

Result<KVCacheWrite> writeFrom(const mnk_kv_cache_write* op) {
  auto given = c::descriptor("mnk_kv_cache_write", op);
  if (!given) return std::move(given).error();
  KVCacheWrite write;
  if (auto source = c::readSource(*given, write); !source) return std::move(source).error();
  auto into = viewFrom(given->into);
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
