// Converts between objects and the C++ core through handles of the C API: both refer to the same memory.
#pragma once
#import <MLXNativeKernels/MLXNativeKernels.h>

#include <memory>

#include "MLXNativeKernels/MLXNativeKernels.hpp"

NS_ASSUME_NONNULL_BEGIN

namespace mnk::objc_test {

MNKDevice* objectOver(const std::shared_ptr<Device>& device);
MNKTensor* objectOver(const Tensor& tensor);
MNKTensor* _Nullable objectOver(const std::optional<Tensor>& tensor);
MNKAttentionCache* objectOver(const AttentionCache& cache);

std::shared_ptr<Device> coreOf(MNKDevice* device);
Tensor coreOf(MNKTensor* tensor);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
