// The core objects inside the classes of this folder. A caller can pass nil whatever the headers say: nil reads as a
// tensor without memory, or fails; it is never dereferenced.
#pragma once
#if !__has_feature(objc_arc)
#error "the Objective-C classes count references automatically: compile them with -fobjc-arc"
#endif
#import <MLXNativeKernels/MLXNativeKernels.h>

#include <memory>
#include <optional>
#include <variant>

#include "CAPI/Handles.hpp"
#import "ObjC/DescriptorReader.hpp"
#import "ObjC/ErrorBridge.hpp"

NS_ASSUME_NONNULL_BEGIN

@interface MNKDescriptor ()
// The properties that define its value.
+ (NSArray<NSString*>*)valueKeys;
@end

@interface MNKDevice () {
 @public
  std::shared_ptr<mnk::Device> _core;
}
- (instancetype)initWithCore:(std::shared_ptr<mnk::Device>)core;
@end

@interface MNKTensor () {
 @public
  mnk_tensor _handle;
}
- (instancetype)initWithCore:(mnk::Tensor)core;
@end

@interface MNKKernelLibrary () {
 @public
  std::shared_ptr<mnk::Library> _core;
}
- (instancetype)initWithCore:(std::shared_ptr<mnk::Library>)core;
@end

@interface MNKAttentionCache () {
 @public
  std::optional<mnk::AttentionCache> _core;
}
- (instancetype)initWithCore:(mnk::AttentionCache)core NS_DESIGNATED_INITIALIZER;
@end

@interface MNKPlan () {
 @public
  mnk::Plan _core;
}
- (instancetype)initWithCore:(mnk::Plan)core;
@end

@interface MNKSummary ()
- (instancetype)initWithCore:(mnk::Summary)core;
@end

@interface MNKPreparationSummary ()
- (instancetype)initWithCore:(const mnk::PreparationSummary&)core;
@end

@interface MNKCompletion ()
- (instancetype)initWithCore:(mnk::Completion)core;
@end

@interface MNKCommandEncoder () {
 @public
  std::unique_ptr<mnk::CommandEncoder> _core;
}
- (instancetype)initWithDevice:(MNKDevice*)device core:(std::unique_ptr<mnk::CommandEncoder>)core;
@end

namespace mnk::objc {

using AnyOp =
    std::variant<FlashDecode, Hadamard, KVCacheDequantize, KVCacheQuantize, KVCacheWrite, MergePartials, MultiRoPE>;

}  // namespace mnk::objc

@interface MNKOperation ()
// The op with its operands.
- (mnk::Result<mnk::objc::AnyOp>)coreOp;
@end

namespace mnk::objc {

// Calls a completion handler in an autorelease pool, which a device's threads lack.
CommandEncoder::Finished finishedBy(void (^_Nullable handler)(MNKSummary* _Nullable, NSError* _Nullable));
// The error when a block returns NO without an error.
Error failedWithoutError();

Result<std::shared_ptr<Device>> coreOf(MNKDevice* _Nullable device);
Tensor coreOf(MNKTensor* _Nullable tensor);
// Of the C API; NULL for nil.
mnk_tensor* _Null_unspecified handleOf(MNKTensor* _Nullable tensor);
// Fails for an object of another class, which a property that was set with key-value coding may hold.
mnk_tensor* _Null_unspecified handleOf(Reading& reading, MNKTensor* _Nullable tensor, std::string_view name);
std::optional<Tensor> optionalCoreOf(MNKTensor* _Nullable tensor);
MNKTensor* _Nullable tensorFrom(const std::optional<Tensor>& tensor);
// Nil without memory.
MNKTensor* _Nullable tensorFrom(const Tensor& tensor);
template <typename Numbers>
NSArray<NSNumber*>* numbersFrom(const Numbers& numbers) {
  NSMutableArray<NSNumber*>* all = [NSMutableArray array];
  for (const auto number : numbers) [all addObject:@(number)];
  return all;
}
std::shared_ptr<Library> coreOf(MNKKernelLibrary* _Nullable library);

// A number too large for a sequence becomes that of an unknown one.
inline uint32_t sequenceNumber(NSUInteger sequence) {
  return sequence == MNKOnlySequence ? kOnlySequence
                                     : static_cast<uint32_t>(std::min<NSUInteger>(sequence, kOnlySequence - 1));
}
inline NSUInteger sequenceFrom(uint64_t sequence) {
  return sequence == kOnlySequence ? MNKOnlySequence : static_cast<NSUInteger>(sequence);
}
std::vector<uint32_t> readSequences(Reading& reading, NSArray<NSNumber*>* _Nullable sequences);
std::optional<std::vector<uint32_t>> readRowCounts(Reading& reading, NSArray<NSNumber*>* _Nullable rowCounts);
CacheStep read(Reading& reading, MNKCacheStep* _Nullable step);

// Empty, with a failure, for nil.
std::optional<AttentionCache> read(Reading& reading, MNKAttentionCache* _Nullable cache);
DType read(Reading& reading, MNKElementType type, std::string_view name = "element type");
RotaryPositions read(Reading& reading, MNKRotaryPositions* _Nullable positions);
std::optional<RotaryStep> read(Reading& reading, MNKRotaryStep* _Nullable rotary);  // empty for nil
Preparation read(Reading& reading, MNKPreparation* _Nullable preparation);
Result<Dispatch> coreOf(MNKDispatch* _Nullable dispatch);

}  // namespace mnk::objc

NS_ASSUME_NONNULL_END

#import "ObjC/Generated/Read.hpp"
