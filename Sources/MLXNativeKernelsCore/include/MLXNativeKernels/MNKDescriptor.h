#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// A value with properties: options, views of memory, and the description of an op.
///
/// A copy has the same properties. Two descriptors are equal if they are of one class and all their properties are
/// equal; tensors are equal if they are the same memory with the same type and shape. A descriptor is checked when it
/// is used.
@interface MNKDescriptor : NSObject <NSCopying>
@end

NS_ASSUME_NONNULL_END
