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

inline NSUInteger sequenceFrom(uint64_t sequence) {
  return sequence == kOnlySequence ? MNKOnlySequence : static_cast<NSUInteger>(sequence);
}
NSString* stringFrom(const std::string& text);
template <typename Numbers>
NSArray<NSNumber*>* numbersFrom(const Numbers& numbers) {
  NSMutableArray<NSNumber*>* all = [NSMutableArray array];
  for (const auto number : numbers) [all addObject:@(number)];
  return all;
}

// Of types that the API's description does not write.
MNKIntegers* objectFor(const RowIndices& numbers);
MNKIntegers* objectFor(const RotaryOffsets& numbers);
MNKRotaryPositions* objectFor(const RotaryPositions& positions);
MNKCacheStep* objectFor(const CacheStep& step);
NSArray<MNKAttendedSequence*>* objectsFor(const std::vector<AttendedSequence>& sequences);

std::shared_ptr<Device> coreOf(MNKDevice* device);
Tensor coreOf(MNKTensor* tensor);

}  // namespace mnk::objc_test

NS_ASSUME_NONNULL_END
