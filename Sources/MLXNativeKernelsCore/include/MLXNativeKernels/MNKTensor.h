#import <MLXNativeKernels/Generated/MNKBasics.h>

@class MNKDevice;

NS_ASSUME_NONNULL_BEGIN

/// Bytes of one element; 0 if the number is not a type.
FOUNDATION_EXPORT NSUInteger MNKElementTypeSize(MNKElementType type)
    NS_SWIFT_NAME(getter:MNKElementType.byteSize(self:));

/// A part of a device's memory with an element type and a shape, elements in row-major order without gaps.
///
/// Slices and reshaped tensors share memory. Shapes are arrays of at most eight extents, outermost first.
///
/// Reading and writing wait for work that was committed before the call and touches the same bytes: a read waits for
/// work that writes them, a write for work that reads or writes them. A read fails if the work that was to write the
/// bytes failed, until they are written again. If waiting could never end, in a handler of finished work or for a
/// command buffer that the app has not committed, they fail with `MNKErrorWouldDeadlock`.
///
/// ```objc
/// MNKTensor *queries = [MNKTensor tensorWithFloats:numbers shape:@[ @32, @128 ] elementType:MNKElementTypeFloat16
///                                           device:device error:&error];
/// ```
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKTensor : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// New memory, all zero.
+ (nullable instancetype)zerosWithShape:(NSArray<NSNumber *> *)shape
                            elementType:(MNKElementType)elementType
                                 device:(MNKDevice *)device
                                  error:(NSError **)error NS_SWIFT_NAME(zeros(shape:elementType:device:));

/// New memory with these numbers, converted to a float type; one number for each element.
+ (nullable instancetype)tensorWithFloats:(const float *)floats
                                    shape:(NSArray<NSNumber *> *)shape
                              elementType:(MNKElementType)elementType
                                   device:(MNKDevice *)device
                                    error:(NSError **)error;

/// New memory with the bytes of all elements.
+ (nullable instancetype)tensorWithData:(NSData *)data
                                  shape:(NSArray<NSNumber *> *)shape
                            elementType:(MNKElementType)elementType
                                 device:(MNKDevice *)device
                                  error:(NSError **)error;

/// Caller-owned memory, without a copy.
///
/// - Parameters:
///   - memory: Stays valid until the deallocator is called. What the caller does with it directly is not checked: wait
///     for submitted work first.
///   - length: Bytes of the memory.
///   - offset: Where the tensor starts in it, in bytes.
///   - deallocator: Called once, on any thread, after the last user of the memory is gone; if this call fails, before
///     it returns. It must not wait for the device's work.
+ (nullable instancetype)tensorWrappingMemory:(void *)memory
                                       length:(NSUInteger)length
                                       offset:(NSUInteger)offset
                                        shape:(NSArray<NSNumber *> *)shape
                                  elementType:(MNKElementType)elementType
                                       device:(MNKDevice *)device
                                  deallocator:(nullable void(NS_SWIFT_SENDABLE ^)(void))deallocator
                                        error:(NSError **)error;

/// Entries of the outermost axis. They share memory with this tensor.
- (nullable MNKTensor *)sliceWithRange:(NSRange)range error:(NSError **)error NS_SWIFT_NAME(slice(_:));

/// The same memory with another shape of the same number of elements.
- (nullable MNKTensor *)reshapedTo:(NSArray<NSNumber *> *)shape error:(NSError **)error;

@property(nonatomic, readonly) MNKElementType elementType;
@property(nonatomic, readonly, copy) NSArray<NSNumber *> *shape;
/// Elements.
@property(nonatomic, readonly) NSUInteger count;
@property(nonatomic, readonly) NSUInteger byteCount;
/// Where it starts in the buffer under it.
@property(nonatomic, readonly) NSUInteger byteOffset;

/// Copies all elements of a float type out, as `float`. `count` must be the tensor's.
- (BOOL)readFloats:(float *)floats count:(NSUInteger)count error:(NSError **)error;
/// Copies numbers into all elements of a float type. `count` must be the tensor's.
- (BOOL)writeFloats:(const float *)floats count:(NSUInteger)count error:(NSError **)error;
/// A copy of its bytes.
- (nullable NSData *)dataWithError:(NSError **)error NS_SWIFT_NAME(data());
/// Copies bytes into the tensor; their number must be that of the tensor.
- (BOOL)writeData:(NSData *)data error:(NSError **)error;

/// Whether the other is the same memory with the same type and shape.
- (BOOL)isEqualToTensor:(MNKTensor *)tensor;

@end

NS_ASSUME_NONNULL_END
