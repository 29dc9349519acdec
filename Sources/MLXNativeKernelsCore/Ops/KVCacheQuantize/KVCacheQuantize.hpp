// Rules of KVCacheQuantize, apart from those of all cache writes and of all quantized caches.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// Its own rules: what fits into the cache, and after the rules of addresses, what shares memory.
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeRules();
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeOverlapRules();

// The first broken rule of all that apply.
Result<void> checkRules(const KVCacheQuantize& op);

// The rule that each option has a value that its type names, which is also one of caches that quantize.
inline constexpr std::string_view kUnknownOption = "an option of quantization is not known";
inline constexpr std::string_view kKnownOptions =
    "keyScale and valueScale 0 (unbiased) or 1 (leastSquares), nonFinite 0 (propagate) or 1 (zero)";
inline constexpr std::string_view kNameOptions = "Pass values that KVScaleRule and KVNonFinite name.";
std::string optionsText(const KVQuantizeOptions& options);

// Its sources and addresses, with codes as the cache.
KVCacheWrite addressesOf(const KVCacheQuantize& op);

}  // namespace mnk
