#import "ObjC/Core.hpp"
#include "Runtime/FloatElements.hpp"
#include "Support/Errors.hpp"

using namespace mnk;
using objc::Reading;

namespace {

// Runs once, whether the memory was used or refused. A device's threads have no autorelease pool.
void release(void *deallocator) {
  @autoreleasepool {
    if (auto block = (__bridge_transfer void (^)(void))deallocator) block();
  }
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

- (instancetype)init {
  return nil;
}

- (instancetype)initWithHandle:(mnk_tensor *)handle {
  if ((self = [super init])) _handle.reset(handle);
  return self;
}

+ (instancetype)zerosWithShape:(NSArray<NSNumber *> *)shape
                   elementType:(MNKElementType)elementType
                        device:(MNKDevice *)device
                         error:(NSError **)error {
  return objc::make<MNKTensor>(error, "Tensor", [&](Reading &reading) {
    const Shape extents = reading.shape(shape);
    const auto type = objc::enumFrom(reading, elementType, "element type");
    return objc::call(reading, mnk_tensor_make, objc::handleOf(reading, device), type, extents.extents().data(),
                      extents.extents().size());
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
  return objc::make<MNKTensor>(error, "Tensor", [&](Reading &reading) {
    mnk_device *target = objc::handleOf(reading, device);
    const Shape extents = reading.shape(shape);
    const auto type = objc::enumFrom(reading, elementType, "element type");
    if (reading.failed() && deallocator) deallocator();
    // From here on the C API releases the memory, also if it fails.
    void *context = reading.failed() ? nullptr : (__bridge_retained void *)[deallocator copy];
    return objc::call(reading, mnk_tensor_make_wrapping, target, memory, length, type, extents.extents().data(),
                      extents.extents().size(), offset, release, context);
  });
}

- (MNKTensor *)sliceWithRange:(NSRange)range error:(NSError **)error {
  return objc::make<MNKTensor>(error, "Tensor", [&](Reading &reading) {
    return objc::call(reading, mnk_tensor_make_slice, self->_handle.get(), range.location, range.length);
  });
}

- (MNKTensor *)reshapedTo:(NSArray<NSNumber *> *)shape error:(NSError **)error {
  return objc::make<MNKTensor>(error, "Tensor", [&](Reading &reading) {
    const Shape extents = reading.shape(shape);
    return objc::call(reading, mnk_tensor_make_reshaped, self->_handle.get(), extents.extents().data(),
                      extents.extents().size());
  });
}

- (MNKElementType)elementType {
  return static_cast<MNKElementType>(_handle->tensor.dtype());
}
- (NSArray<NSNumber *> *)shape {
  NSMutableArray<NSNumber *> *shape = [NSMutableArray array];
  for (const uint64_t extent : _handle->tensor.shape().extents()) [shape addObject:@(extent)];
  return shape;
}
- (NSUInteger)count {
  return static_cast<NSUInteger>(_handle->tensor.shape().elementCount());
}
- (NSUInteger)byteCount {
  return static_cast<NSUInteger>(_handle->tensor.byteCount());
}
- (NSUInteger)byteOffset {
  return static_cast<NSUInteger>(_handle->tensor.byteOffset());
}

- (BOOL)readFloats:(float *)floats count:(NSUInteger)count error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (count != self.count) return wrongCount("floats", count, self.count);
    return mnk::readFloats(self->_handle->tensor, {floats, count});
  });
}

- (BOOL)writeFloats:(const float *)floats count:(NSUInteger)count error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (count != self.count) return wrongCount("floats", count, self.count);
    return mnk::writeFloats(self->_handle->tensor, {floats, count});
  });
}

- (NSData *)dataWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<NSData *> {
    NSMutableData *data = [NSMutableData dataWithLength:self.byteCount];
    if (!data) return outOfMemory("Tensor", bytesText(self.byteCount));
    auto read = self->_handle->tensor.read({static_cast<std::byte *>(data.mutableBytes), data.length});
    if (!read) return read.error();
    return data;
  });
}

- (BOOL)writeData:(NSData *)data error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    if (!data || data.length != self.byteCount) return wrongCount("bytes", data.length, self.byteCount);
    return self->_handle->tensor.write({static_cast<const std::byte *>(data.bytes), data.length});
  });
}

- (BOOL)isEqualToTensor:(MNKTensor *)tensor {
  if (!tensor) return NO;
  const Tensor &other = tensor->_handle->tensor;
  return _handle->tensor.buffer() == other.buffer() && _handle->tensor.byteOffset() == other.byteOffset() &&
         _handle->tensor.dtype() == other.dtype() && _handle->tensor.shape() == other.shape();
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKTensor class]] && [self isEqualToTensor:other];
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_handle->tensor.buffer().get()) / 16 +
         static_cast<NSUInteger>(_handle->tensor.byteOffset());
}
- (NSString *)description {
  return objc::stringFrom(_handle->tensor.text());
}

@end

namespace mnk::objc {

mnk_tensor *handleOf(Reading &reading, MNKTensor *tensor, std::string_view name) {
  return tensor && reading.isA([MNKTensor class], tensor, name) ? tensor->_handle.get() : nullptr;
}
MNKTensor *tensorFrom(const std::optional<Tensor> &tensor) {
  return tensor ? [[MNKTensor alloc] initWithHandle:new mnk_tensor{*tensor}] : nil;
}
MNKTensor *tensorFrom(const Tensor &tensor) {
  return tensor ? [[MNKTensor alloc] initWithHandle:new mnk_tensor{tensor}] : nil;
}

}  // namespace mnk::objc
