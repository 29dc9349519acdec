#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A value with properties: options, views of memory, and the description of an op.
///
/// A copy has the same properties. Two descriptors are equal where they are of one class and all their properties are
/// equal; tensors are equal where they are the same memory with the same type and shape. Nothing is checked before a
/// descriptor is used.
@interface MNKDescriptor : NSObject <NSCopying>
@end

NS_ASSUME_NONNULL_END
