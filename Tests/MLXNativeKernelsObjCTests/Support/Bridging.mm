#import "../Generated/Objects.hpp"

#include "CAPI/Handles.hpp"

namespace mnk::objc_test {

MNKDevice *objectOver(const std::shared_ptr<Device> &device) {
  const mnk_device handle{device, std::string(device->kind()), device->name()};
  MNKDevice *object = [MNKDevice deviceWithHandle:&handle error:nil];
  return object;
}

MNKTensor *objectOver(const Tensor &tensor) {
  const mnk_tensor handle{tensor};
  MNKTensor *object = [MNKTensor tensorWithHandle:&handle error:nil];
  return object;
}

MNKTensor *objectOver(const std::optional<Tensor> &tensor) {
  return tensor ? objectOver(*tensor) : nil;
}

MNKAttentionCache *objectOver(const AttentionCache &cache) {
  const mnk_cache handle{cache};
  MNKAttentionCache *object = [MNKAttentionCache cacheWithHandle:&handle error:nil];
  return object;
}

namespace {

template <typename Number>
MNKIntegers *integersOf(const std::variant<std::vector<Number>, Tensor> &numbers) {
  if (const auto *tensor = std::get_if<Tensor>(&numbers)) return [MNKIntegers integersWithTensor:objectOver(*tensor)];
  return [MNKIntegers integersWithList:numbersFrom(std::get<0>(numbers))];
}

}  // namespace

MNKIntegers *objectFor(const RowIndices &numbers) {
  return integersOf(numbers);
}
MNKIntegers *objectFor(const RotaryOffsets &numbers) {
  return integersOf(numbers);
}

MNKRotaryPositions *objectFor(const RotaryPositions &positions) {
  if (const auto *first = std::get_if<int64_t>(&positions.source)) {
    return [MNKRotaryPositions positionsStartingAt:static_cast<NSInteger>(*first)];
  }
  if (const auto *tensor = std::get_if<Tensor>(&positions.source)) {
    return [MNKRotaryPositions positionsWithTensor:objectOver(*tensor)];
  }
  const auto &list = std::get<RotaryPositions::List>(positions.source);
  NSMutableArray<NSArray<NSNumber *> *> *axes = [NSMutableArray array];
  const size_t count = list.numbers.size() / list.axes;
  for (uint32_t axis = 0; axis < list.axes; ++axis) {
    NSMutableArray<NSNumber *> *numbers = [NSMutableArray array];
    for (size_t i = 0; i < count; ++i) [numbers addObject:@(list.numbers[axis * count + i])];
    [axes addObject:numbers];
  }
  return [MNKRotaryPositions positionsPerAxis:axes];
}

NSArray<MNKAttendedSequence *> *objectsFor(const std::vector<AttendedSequence> &sequences) {
  NSMutableArray<MNKAttendedSequence *> *objects = [NSMutableArray array];
  for (const AttendedSequence &one : sequences) [objects addObject:objectFor(one)];
  return objects;
}

// A part without memory is not set.
MNKCacheStep *objectFor(const CacheStep &step) {
  MNKCacheStep *object = [[MNKCacheStep alloc] init];
  if (step.queries.tensor) {
    object.queries = objectFor(step.queries);
    object.results = objectFor(step.results);
    object.options = objectFor(step.options);
  }
  if (step.keys.tensor) object.keys = objectFor(step.keys);
  if (step.values.tensor) object.values = objectFor(step.values);
  if (step.rotary) object.rotary = objectFor(*step.rotary);
  NSMutableArray<NSNumber *> *sequences = [NSMutableArray array];
  for (const uint32_t sequence : step.sequences) [sequences addObject:@(sequenceFrom(sequence))];
  object.sequences = sequences;
  if (step.rowCounts) object.rowCounts = numbersFrom(*step.rowCounts);
  NSMutableArray<MNKCachePrefix *> *prefixes = [NSMutableArray array];
  for (const auto &[cache, sequence] : step.after) {
    [prefixes addObject:[[MNKCachePrefix alloc] initWithCache:objectOver(cache) sequence:sequenceFrom(sequence)]];
  }
  object.prefixes = prefixes;
  return object;
}

NSString *stringFrom(const std::string &text) {
  return @(text.c_str());
}

std::shared_ptr<Device> coreOf(MNKDevice *device) {
  mnk_device *handle = [device makeHandleWithError:nil];
  auto core = handle->device;
  mnk_device_release(handle);
  return core;
}

Tensor coreOf(MNKTensor *tensor) {
  mnk_tensor *handle = [tensor makeHandleWithError:nil];
  Tensor core = handle->tensor;
  mnk_tensor_release(handle);
  return core;
}

}  // namespace mnk::objc_test
