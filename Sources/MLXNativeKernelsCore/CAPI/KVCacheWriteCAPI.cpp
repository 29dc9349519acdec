#include "CAPI/KVSource.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<KVCacheWrite> writeFrom(const mnk_kv_cache_write* op) {
  MNK_TRY(auto input, c::descriptor("mnk_kv_cache_write", op));
  KVCacheWrite write;
  MNK_TRY(c::readSource(input, write));
  MNK_TRY(c::read(write.into, input.into, {nullptr, "into"}));
  MNK_TRY(c::readPlaces(input, write));
  return write;
}

}  // namespace

mnk_plan* mnk_kv_cache_write_make_plan(const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(writeFrom(op)); });
}

bool mnk_encoder_kv_cache_write(mnk_encoder* encoder, const mnk_kv_cache_write* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, writeFrom(op)); });
}
