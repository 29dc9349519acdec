// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Try.hpp"

namespace mnk::c {

Result<void> read(KVQuantizedPlanes& into, mnk_kv_quantized_planes from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_KV_QUANTIZED_PLANES_BOTH:
      into = KVQuantizedPlanes::both;
      return {};
    case MNK_KV_QUANTIZED_PLANES_KEYS:
      into = KVQuantizedPlanes::keys;
      return {};
    case MNK_KV_QUANTIZED_PLANES_VALUES:
      into = KVQuantizedPlanes::values;
      return {};
  }
  return unknownNumber("mnk_kv_quantized_planes", from,
                       "MNK_KV_QUANTIZED_PLANES_BOTH to MNK_KV_QUANTIZED_PLANES_VALUES");
}

bool isFilled(const mnk_sliding_window& from) {
  return from.window != 0 || from.max_rows != 0 || from.max_draft != 0;
}

Result<void> read(SlidingWindow& into, const mnk_sliding_window& from, const Field&) {
  into.window = from.window;
  into.maxRows = from.max_rows;
  into.maxDraft = from.max_draft;
  return {};
}

Result<void> read(Tuning& into, mnk_tuning from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_TUNING_TABLE:
      into = Tuning::table;
      return {};
    case MNK_TUNING_MEASURE:
      into = Tuning::measure;
      return {};
  }
  return unknownNumber("mnk_tuning", from, "MNK_TUNING_TABLE to MNK_TUNING_MEASURE");
}

}  // namespace mnk::c
