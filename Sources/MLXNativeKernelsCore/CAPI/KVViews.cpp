#include "CAPI/KVViews.hpp"

#include "Support/Try.hpp"

namespace mnk::c {

namespace {

// Keys or values, or nothing if they are left out. `name` is the field, such as "into.keys".
Result<std::optional<QuantizedKVPlane>> planeFrom(const mnk_quantized_kv_plane& input, const std::string& name) {
  const bool hasOthers = input.scales || input.means || input.channel_scales;
  if (!input.codes && !hasOthers) return std::optional<QuantizedKVPlane>();
  if (!input.codes) return nullArgument(name + ".codes");
  if (!input.scales && !isFloat(input.codes->tensor.dtype())) return nullArgument(name + ".scales");
  MNK_TRY(auto result, codec(input.codec));
  QuantizedKVPlane plane{.codec = result, .codes = input.codes->tensor};
  if (input.scales) plane.scales = input.scales->tensor;
  if (input.means) plane.means = input.means->tensor;
  if (input.channel_scales) plane.channelScales = input.channel_scales->tensor;
  return std::optional(plane);
}

}  // namespace

Result<KVCacheView> cacheView(const mnk_kv_cache_view& input, const std::string& name) {
  if (!input.keys) return nullArgument(name + ".keys");
  MNK_TRY(auto order, layout(input.layout, KVLayout::headMajor));
  MNK_TRY(auto wraps, wrap(input.wrap));
  KVCacheView view{.keys = input.keys->tensor,
                   .layout = order,
                   .wrap = wraps,
                   .pinned = input.pinned,
                   .latentDim = input.latent_dim};
  if (input.values) view.values = input.values->tensor;
  return view;
}

Result<QuantizedKVCacheView> quantizedView(const mnk_quantized_kv_view& input, const std::string& name) {
  MNK_TRY(auto keys, planeFrom(input.keys, name + ".keys"));
  if (!keys) return nullArgument(name + ".keys.codes");
  MNK_TRY(auto values, planeFrom(input.values, name + ".values"));
  MNK_TRY(auto order, layout(input.layout, KVLayout::headMajor));
  MNK_TRY(auto wraps, wrap(input.wrap));
  return QuantizedKVCacheView{.keys = *keys,
                              .values = values,
                              .layout = order,
                              .wrap = wraps,
                              .pinned = input.pinned,
                              .latentDim = input.latent_dim};
}

}  // namespace mnk::c
