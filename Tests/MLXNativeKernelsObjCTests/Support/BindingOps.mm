#import "BindingOps.hpp"

#include "CAPI/Generated/Write.hpp"

namespace mnk::objc_test {

namespace {

template <typename Number>
MNKIntegers *objectFor(const std::variant<std::vector<Number>, Tensor> &numbers) {
  if (const auto *tensor = std::get_if<Tensor>(&numbers)) return [MNKIntegers integersWithTensor:objectOver(*tensor)];
  NSMutableArray<NSNumber *> *list = [NSMutableArray array];
  for (const Number number : std::get<std::vector<Number>>(numbers)) [list addObject:@(number)];
  return [MNKIntegers integersWithList:list];
}

// The source and destination of tokens, which both storing ops share.
template <typename Object, typename Op>
void fill(Object *object, const Op &op) {
  object.sourceLayout = static_cast<MNKKVLayout>(c::write(op.sourceLayout));
  object.sourceOffset = op.sourceOffset;
  if (op.tokens) object.tokens = @(*op.tokens);
  object.sourceIsRing = op.sourceIsRing;
  object.sequence = sequenceFrom(op.sequence);
  if (!op.rows) return;
  object.rowSequences = objectFor(op.rows->sequences);
  object.rowPositions = objectFor(op.rows->positions);
}

}  // namespace

namespace {

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

}  // namespace

MNKKVCacheWrite *objectFor(const KVCacheWrite &op) {
  MNKKVCacheWrite *object = [[MNKKVCacheWrite alloc] initWithKeysView:objectFor(op.keys)
                                                           valuesView:op.values ? objectFor(*op.values) : nil
                                                            intoCache:objectFor(op.into)
                                                             position:op.position];
  fill(object, op);
  return object;
}

MNKKVCacheQuantize *objectFor(const KVCacheQuantize &op) {
  MNKKVCacheQuantize *object = [[MNKKVCacheQuantize alloc] initWithKeysView:objectFor(op.keys)
                                                                 valuesView:op.values ? objectFor(*op.values) : nil
                                                                  intoCache:objectFor(op.into)
                                                                   position:op.position];
  fill(object, op);
  object.options = objectFor(op.options);
  object.counts = objectOver(op.counts);
  object.probe = objectOver(op.probe);
  return object;
}

MNKKVCacheDequantize *objectFor(const KVCacheDequantize &op) {
  MNKKVCacheDequantize *object = [[MNKKVCacheDequantize alloc] initWithCache:objectFor(op.from)
                                                                        keys:objectOver(op.keys)
                                                                      values:objectOver(op.values)
                                                                    position:op.position];
  object.sequence = sequenceFrom(op.sequence);
  object.layout = static_cast<MNKKVLayout>(c::write(op.layout));
  object.domain = static_cast<MNKKVDomain>(c::write(op.domain));
  return object;
}

MNKHadamard *objectFor(const Hadamard &op) {
  MNKHadamard *object = [[MNKHadamard alloc] initWithSource:objectOver(op.from) intoTensor:objectOver(op.into)];
  object.usesSigns = op.signs.has_value();
  if (op.signs) object.codec = static_cast<MNKKVCodecName>(c::write(*op.signs));
  object.inverse = op.isInverse;
  return object;
}

MNKMultiRoPE *objectFor(const MultiRoPE &op) {
  MNKMultiRoPE *object = [[MNKMultiRoPE alloc] initWithQueries:objectFor(op.queries)
                                                          keys:op.keys ? objectFor(*op.keys) : nil
                                                     positions:objectFor(op.positions)
                                                        rotary:objectFor(op.rotary)];
  if (op.rotatedQueries) object.rotatedQueries = objectFor(*op.rotatedQueries);
  if (op.rotatedKeys) object.rotatedKeys = objectFor(*op.rotatedKeys);
  if (op.offsets) object.offsets = objectFor(*op.offsets);
  return object;
}

MNKFlashDecode *objectFor(const FlashDecode &op) {
  NSMutableArray<MNKAttendedSequence *> *sequences = [NSMutableArray array];
  for (const AttendedSequence &one : op.sequences) [sequences addObject:objectFor(one)];
  MNKFlashDecode *object = nil;
  if (const auto *dense = std::get_if<KVCacheView>(&op.over)) {
    object = [[MNKFlashDecode alloc] initWithQueriesView:objectFor(op.queries)
                                               overCache:objectFor(*dense)
                                               sequences:sequences
                                                 results:objectFor(op.results)];
  } else {
    object = [[MNKFlashDecode alloc] initWithQueriesView:objectFor(op.queries)
                                      overQuantizedCache:objectFor(std::get<QuantizedKVCacheView>(op.over))
                                               sequences:sequences
                                                 results:objectFor(op.results)];
  }
  object.options = objectFor(op.options);
  object.scratch = objectOver(op.scratch);
  return object;
}

MNKMergePartials *objectFor(const MergePartials &op) {
  MNKMergePartials *object = [[MNKMergePartials alloc] initWithPartials:objectFor(op.partials)
                                                                results:objectFor(op.results)];
  object.sinks = objectOver(op.sinks);
  return object;
}

}  // namespace mnk::objc_test
