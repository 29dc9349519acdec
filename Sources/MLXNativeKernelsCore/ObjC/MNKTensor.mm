#include <functional>

#import "ObjC/Core.hpp"
#include "Runtime/FloatElements.hpp"
#include "Support/Errors.hpp"

using namespace mnk;
using objc::Reading;

namespace {

// Runs once, whether the memory was used or refused. A device's threads have no autorelease pool.
std::function<void()> releasing(void (^deallocator)(void)) {
  return [deallocator] {
    @autoreleasepool {
      if (deallocator) deallocator();
    }
  };
}

Error wrongCount(std::string_view what, uint64_t got, uint64_t expected) {
  return {.op = "Tensor",
          .what = fmt::format("the number of {} is not the tensor's", what),
          .got = fmt::format("{}", got),
          .expected = fmt::format("{}", expected),
          .fix = fmt::format("Pass exactly the {} of the tensor.", what)};
}

}  // namespace

NSUInteger MNKElementTypeSize(MNKElementType type) {
  return static_cast<NSUInteger>(byteSize(static_cast<DType>(type)));
}

@implementation MNKTensor

- (instancetype)initWithCore:(Tensor)core {
  if ((self = [super init])) _handle.tensor = std::move(core);
  return self;
}

+ (instancetype)zerosWithShape:(NSArray<NSNumber *> *)shape
                   elementType:(MNKElementType)elementType
                        device:(MNKDevice *)device
                         error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKTensor *> {
    Reading reading("Tensor");
    const Shape extents = reading.shape(shape);
    const DType type = objc::read(reading, elementType);
    const auto target = reading.take(objc::coreOf(device));
    if (reading.failed()) return reading.error();
    auto tensor = Tensor::zeros(target, type, extents);
    if (!tensor) return tensor.error();
    return [[MNKTensor alloc] initWithCore:*tensor];
  });
}

+ (instancetype)tensorWithFloats:(const float *)floats
                           shape:(NSArray<NSNumber *> *)shape
                     elementType:(MNKElementType)elementType
                          device:(MNKDevice *)device
                           error:(NSError **)error {
  MNKTensor *tensor = [self zerosWithShape:shape elementType:elementType device:device error:error];
  return [tensor writeFloats:floats count:tensor.count error:error] ? tensor : nil;
}

+ (instancetype)tensorWithData:(NSData *)data
                         shape:(NSArray<NSNumber *> *)shape
                   elementType:(MNKElementType)elementType
                        device:(MNKDevice *)device
                         error:(NSError **)error {
  MNKTensor *tensor = [self zerosWithShape:shape elementType:elementType device:device error:error];
  return [tensor writeData:data error:error] ? tensor : nil;
}

+ (instancetype)tensorWrappingMemory:(void *)memory
                              length:(NSUInteger)length
                              offset:(NSUInteger)offset
                               shape:(NSArray<NSNumber *> *)shape
                         elementType:(MNKElementType)elementType
                              device:(MNKDevice *)device
                         deallocator:(void (^)(void))deallocator
                               error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKTensor *> {
    Reading reading("Tensor");
    const auto target = reading.take(objc::coreOf(device));
    const Shape extents = reading.shape(shape);
    const DType type = objc::read(reading, elementType);
    if (reading.failed()) {
      if (deallocator) deallocator();
      return reading.error();
    }
    // From here on the buffer releases the memory, also if creating it fails.
    auto buffer = target->wrapMemory(memory, length, releasing(deallocator));
    if (!buffer) return buffer.error();
    auto tensor = Tensor::over(*buffer, type, extents, offset);
    if (!tensor) return tensor.error();
    return [[MNKTensor alloc] initWithCore:*tensor];
  });
}

- (MNKTensor *)sliceWithRange:(NSRange)range error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKTensor *> {
    auto slice = _handle.tensor.slice(range.location, range.length);
    if (!slice) return slice.error();
    return [[MNKTensor alloc] initWithCore:*slice];
  });
}

- (MNKTensor *)reshapedTo:(NSArray<NSNumber *> *)shape error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKTensor *> {
    Reading reading("Tensor");
    const Shape extents = reading.shape(shape);
    if (reading.failed()) return reading.error();
    auto reshaped = _handle.tensor.reshaped(extents);
    if (!reshaped) return reshaped.error();
    return [[MNKTensor alloc] initWithCore:*reshaped];
  });
}

- (MNKElementType)elementType {
  return static_cast<MNKElementType>(_handle.tensor.dtype());
}
- (NSArray<NSNumber *> *)shape {
  NSMutableArray<NSNumber *> *shape = [NSMutableArray array];
  for (const uint64_t extent : _handle.tensor.shape().extents()) [shape addObject:@(extent)];
  return shape;
}
- (NSUInteger)count {
  return static_cast<NSUInteger>(_handle.tensor.shape().elementCount());
}
- (NSUInteger)byteCount {
  return static_cast<NSUInteger>(_handle.tensor.byteCount());
}
- (NSUInteger)byteOffset {
  return static_cast<NSUInteger>(_handle.tensor.byteOffset());
}

- (BOOL)readFloats:(float *)floats count:(NSUInteger)count error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (count != self.count) return wrongCount("floats", count, self.count);
    return mnk::readFloats(_handle.tensor, {floats, count});
  });
}

- (BOOL)writeFloats:(const float *)floats count:(NSUInteger)count error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (count != self.count) return wrongCount("floats", count, self.count);
    return mnk::writeFloats(_handle.tensor, {floats, count});
  });
}

- (NSData *)dataWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<NSData *> {
    NSMutableData *data = [NSMutableData dataWithLength:self.byteCount];
    if (!data) return outOfMemory("Tensor", bytesText(self.byteCount));
    auto read = _handle.tensor.read({static_cast<std::byte *>(data.mutableBytes), data.length});
    if (!read) return read.error();
    return data;
  });
}

- (BOOL)writeData:(NSData *)data error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (!data || data.length != self.byteCount) return wrongCount("bytes", data.length, self.byteCount);
    return _handle.tensor.write({static_cast<const std::byte *>(data.bytes), data.length});
  });
}

- (BOOL)isEqualToTensor:(MNKTensor *)tensor {
  if (!tensor) return NO;
  const Tensor &other = tensor->_handle.tensor;
  return _handle.tensor.buffer() == other.buffer() && _handle.tensor.byteOffset() == other.byteOffset() &&
         _handle.tensor.dtype() == other.dtype() && _handle.tensor.shape() == other.shape();
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKTensor class]] && [self isEqualToTensor:other];
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_handle.tensor.buffer().get()) / 16 +
         static_cast<NSUInteger>(_handle.tensor.byteOffset());
}
- (NSString *)description {
  return objc::stringFrom(_handle.tensor.text());
}

@end

namespace mnk::objc {

Tensor coreOf(MNKTensor *tensor) {
  return optionalCoreOf(tensor).value_or(Tensor());
}
mnk_tensor *handleOf(MNKTensor *tensor) {
  // A property that was set with key-value coding may hold any object.
  return [tensor isKindOfClass:[MNKTensor class]] ? &tensor->_handle : nullptr;
}
mnk_tensor *handleOf(Reading &reading, MNKTensor *tensor, std::string_view name) {
  return !tensor || reading.isA([MNKTensor class], tensor, name) ? handleOf(tensor) : nullptr;
}
std::optional<Tensor> optionalCoreOf(MNKTensor *tensor) {
  return c::optional(handleOf(tensor));
}
MNKTensor *tensorFrom(const std::optional<Tensor> &tensor) {
  return tensor ? [[MNKTensor alloc] initWithCore:*tensor] : nil;
}
MNKTensor *tensorFrom(const Tensor &tensor) {
  return tensor ? [[MNKTensor alloc] initWithCore:tensor] : nil;
}
DType read(Reading &reading, MNKElementType type, std::string_view name) {
  return reading.choice(type, DType::i32, name, "MNKElementType");
}

}  // namespace mnk::objc
