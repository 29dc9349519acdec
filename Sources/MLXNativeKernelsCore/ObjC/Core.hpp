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

#include "CAPI/Generated/Read.hpp"
#import "ObjC/DescriptorReader.hpp"
#import "ObjC/ErrorBridge.hpp"

NS_ASSUME_NONNULL_BEGIN

@interface MNKDescriptor ()
// The properties that define its value.
+ (NSArray<NSString*>*)valueKeys;
@end

// An object and its handle of the C API. The object owns a handle that it is made with.
@interface MNKDevice () {
 @public
  std::unique_ptr<mnk_device> _handle;
}
- (instancetype)initWithHandle:(mnk_device*)handle;
@end

@interface MNKTensor () {
 @public
  std::unique_ptr<mnk_tensor> _handle;
}
- (instancetype)initWithHandle:(mnk_tensor*)handle;
@end

@interface MNKKernelLibrary () {
 @public
  std::unique_ptr<mnk_library> _handle;
}
- (instancetype)initWithHandle:(mnk_library*)handle;
@end

@interface MNKAttentionCache () {
 @public
  std::unique_ptr<mnk_cache> _handle;
}
- (instancetype)initWithHandle:(mnk_cache*)handle NS_DESIGNATED_INITIALIZER;
@end

@interface MNKPlan () {
 @public
  std::unique_ptr<mnk_plan> _handle;
}
- (instancetype)initWithHandle:(mnk_plan*)handle;
@end

@interface MNKCompletion () {
 @public
  std::unique_ptr<mnk_completion> _handle;
}
- (instancetype)initWithHandle:(mnk_completion*)handle;
@end

@interface MNKSummary ()
- (instancetype)initWithCore:(mnk::Summary)core;
@end

@interface MNKCommandEncoder () {
 @public
  std::unique_ptr<mnk_encoder> _handle;
}
- (instancetype)initWithDevice:(MNKDevice*)device handle:(mnk_encoder*)handle;
@end

@interface MNKPreparationSummary ()
- (instancetype)initWithSummary:(mnk_preparation_summary)summary;
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

// The handles of the C API. Fail for nil, except for a tensor, and for an object of another class, which a property
// that was set with key-value coding may hold.
mnk_device* _Null_unspecified handleOf(Reading& reading, MNKDevice* _Nullable device);
mnk_tensor* _Null_unspecified handleOf(Reading& reading, MNKTensor* _Nullable tensor, std::string_view name);
mnk_cache* _Null_unspecified handleOf(Reading& reading, MNKAttentionCache* _Nullable cache, std::string_view name);
MNKTensor* _Nullable tensorFrom(const std::optional<Tensor>& tensor);
// Nil without memory.
MNKTensor* _Nullable tensorFrom(const Tensor& tensor);
template <typename Numbers>
NSArray<NSNumber*>* numbersFrom(const Numbers& numbers) {
  NSMutableArray<NSNumber*>* all = [NSMutableArray array];
  for (const auto number : numbers) [all addObject:@(number)];
  return all;
}

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
template <typename Function, typename... Arguments>
auto call(const Reading& reading, Function&& function, Arguments... arguments) {
  using Value = decltype(function(arguments..., nullptr));
  using Converted = Result<std::conditional_t<std::is_same_v<Value, bool>, void, Value>>;
  if (reading.failed()) return Converted(reading.error());
  mnk_error* error = nullptr;
  const Value value = function(arguments..., &error);
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

// Runs a body that reads arguments and returns Result<void>. `op` is what errors of reading name.
template <typename Body>
BOOL run(NSError* _Nullable __autoreleasing* _Nullable error, std::string_view op, Body&& body) {
  return run(error, [&]() -> Result<void> {
    Reading reading(op);
    return body(reading);
  });
}

// Runs a body that reads arguments and returns the result of a function of C that makes a handle, for a new object.
template <typename Object, typename Body>
Object* _Nullable make(NSError* _Nullable __autoreleasing* _Nullable error, std::string_view op, Body&& body) {
  return make(error, [&]() -> Result<Object*> {
    Reading reading(op);
    auto handle = body(reading);
    if (!handle) return handle.error();
    return [[Object alloc] initWithHandle:*handle];
  });
}

// Reads what was read from an object into a type of the core.
template <typename Core, typename From>
void read(Reading& reading, Core& into, const From& from) {
  if (reading.failed()) return;
  if constexpr (std::is_enum_v<From>) {
    reading.check(c::read(into, from));
  } else {
    reading.check(c::read(into, from, {}));
  }
}

void fill(Reading& reading, mnk_row_indices& into, MNKIntegers* _Nullable numbers, std::string_view name);
void fill(Reading& reading, mnk_rotary_offsets& into, MNKIntegers* _Nullable numbers, std::string_view name);
void fill(Reading& reading, mnk_rotary_positions& into, MNKRotaryPositions* _Nullable positions, std::string_view name);
mnk_preparation structFrom(Reading& reading, MNKPreparation* _Nullable preparation);
Result<Dispatch> coreOf(MNKDispatch* _Nullable dispatch);

}  // namespace mnk::objc

NS_ASSUME_NONNULL_END

#import "ObjC/Generated/Read.hpp"
