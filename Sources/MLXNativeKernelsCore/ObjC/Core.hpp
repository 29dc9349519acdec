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

#include "CAPI/Indices.hpp"
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
  std::unique_ptr<mnk_cache> _handle;
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
  std::unique_ptr<mnk_encoder> _handle;
}
- (instancetype)initWithDevice:(MNKDevice*)device handle:(std::unique_ptr<mnk_encoder>)handle;
@end

// What each op implements with its functions of C.
@interface MNKOperation ()
- (mnk::Result<mnk_plan*>)planForHandle:(const mnk_device* _Nullable)device;
- (mnk::Result<void>)encodeWithHandle:(mnk_encoder*)encoder;
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
// The sequences that tokens continue, and how many tokens each has, in a struct of C.
template <typename Struct>
void fillSequences(Reading& reading, Struct& into, NSArray<NSNumber*>* _Nullable sequences,
                   NSArray<NSNumber*>* _Nullable rowCounts) {
  std::vector<uint32_t> listed = {kOnlySequence};
  if (sequences.count != 1 || ![sequences[0] isEqual:@(MNKOnlySequence)]) {
    listed = reading.integers<uint32_t>(sequences, "a sequence");
    for (uint32_t& number : listed) number = sequenceNumber(number);
  }
  const auto& all = reading.keep(std::move(listed));
  into.sequences = c::listOf(all);
  into.sequence_count = all.size();
  if (!rowCounts) return;
  const auto& counts = reading.keep(reading.integers<uint32_t>(rowCounts, "a row count"));
  into.row_counts = c::listOf(counts);
  if (counts.size() == all.size()) return;
  reading.fail("the row counts do not match the listed sequences",
               std::to_string(counts.size()) + (counts.size() == 1 ? " row count" : " row counts"),
               std::to_string(all.size()) + ", one for each sequence",
               "Pass a row count for each listed sequence; 0 leaves one out.");
}
mnk_cache_step structFrom(Reading& reading, MNKCacheStep* _Nullable step);

// Calls a function of C with what was read, and converts its error.
template <typename Call>
auto called(const Reading& reading, Call&& call) {
  using Value = decltype(call(nullptr));
  using Converted = Result<std::conditional_t<std::is_same_v<Value, bool>, void, Value>>;
  if (reading.failed()) return Converted(reading.error());
  mnk_error* error = nullptr;
  const Value value = call(&error);
  if (!value) {
    const std::unique_ptr<mnk_error, decltype(&mnk_error_release)> owned(error, mnk_error_release);
    return Converted(owned->error);
  }
  if constexpr (std::is_same_v<Value, bool>) {
    return Converted();
  } else {
    return Converted(value);
  }
}

// Empty, with a failure, for nil.
std::optional<AttentionCache> read(Reading& reading, MNKAttentionCache* _Nullable cache);
mnk_cache* _Null_unspecified handleOf(Reading& reading, MNKAttentionCache* _Nullable cache, std::string_view name);
DType read(Reading& reading, MNKElementType type, std::string_view name = "element type");
void fill(Reading& reading, mnk_row_indices& into, MNKIntegers* _Nullable numbers, std::string_view name);
void fill(Reading& reading, mnk_rotary_offsets& into, MNKIntegers* _Nullable numbers, std::string_view name);
void fill(Reading& reading, mnk_rotary_positions& into, MNKRotaryPositions* _Nullable positions, std::string_view name);
Preparation read(Reading& reading, MNKPreparation* _Nullable preparation);
Result<Dispatch> coreOf(MNKDispatch* _Nullable dispatch);

}  // namespace mnk::objc

NS_ASSUME_NONNULL_END

#import "ObjC/Generated/Read.hpp"
