#include "CAPI/KVViews.hpp"

#include "Support/Try.hpp"

namespace mnk::c {

namespace {

// Keys or values, or nothing if they are left out. `name` is the field, such as "into.keys".
Result<std::optional<QuantizedKVPlane>> planeFrom(const mnk_quantized_kv_plane& given, const std::string& name) {
  const bool hasOthers = given.scales || given.means || given.channel_scales;
  if (!given.codes && !hasOthers) return std::optional<QuantizedKVPlane>();
  if (!given.codes) return nullArgument(name + ".codes");
  if (!given.scales && !isFloat(given.codes->tensor.dtype())) return nullArgument(name + ".scales");
  MNK_TRY(auto made, codec(given.codec));
  QuantizedKVPlane plane{.codec = made, .codes = given.codes->tensor};
  if (given.scales) plane.scales = given.scales->tensor;
  if (given.means) plane.means = given.means->tensor;
  if (given.channel_scales) plane.channelScales = given.channel_scales->tensor;
  return std::optional(plane);
}

}  // namespace

Result<KVCacheView> cacheView(const mnk_kv_cache_view& given, const std::string& name) {
  // The size must match, because a longer nested view would move the fields after it.
  if (given.size != sizeof given) return wrongSize("mnk_kv_cache_view", given.size, sizeof given);
  if (!given.keys) return nullArgument(name + ".keys");
  MNK_TRY(auto order, layout(given.layout));
  MNK_TRY(auto wraps, wrap(given.wrap));
  KVCacheView view{.keys = given.keys->tensor,
                   .layout = order,
                   .wrap = wraps,
                   .pinned = given.pinned,
                   .latentDim = given.latent_dim};
  if (given.values) view.values = given.values->tensor;
  return view;
}

Result<QuantizedKVCacheView> quantizedView(const mnk_quantized_kv_view& given, const std::string& name) {
  // The size must match, because a longer nested view would move the fields after it.
  if (given.size != sizeof given) return wrongSize("mnk_quantized_kv_view", given.size, sizeof given);
  MNK_TRY(auto keys, planeFrom(given.keys, name + ".keys"));
  if (!keys) return nullArgument(name + ".keys.codes");
  MNK_TRY(auto values, planeFrom(given.values, name + ".values"));
  MNK_TRY(auto order, layout(given.layout));
  MNK_TRY(auto wraps, wrap(given.wrap));
  return QuantizedKVCacheView{.keys = *keys,
                              .values = values,
                              .layout = order,
                              .wrap = wraps,
                              .pinned = given.pinned,
                              .latentDim = given.latent_dim};
}

}  // namespace mnk::c
