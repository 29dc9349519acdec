// The ops of the C++ core as objects of the binding, with each field as a property.
#pragma once
#import "../Generated/Objects.hpp"
#import "Bridging.hpp"

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

MNKKVCacheWrite* objectFor(const KVCacheWrite& op);
MNKKVCacheQuantize* objectFor(const KVCacheQuantize& op);
MNKKVCacheDequantize* objectFor(const KVCacheDequantize& op);
MNKHadamard* objectFor(const Hadamard& op);
MNKMultiRoPE* objectFor(const MultiRoPE& op);
MNKFlashDecode* objectFor(const FlashDecode& op);
MNKMergePartials* objectFor(const MergePartials& op);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
