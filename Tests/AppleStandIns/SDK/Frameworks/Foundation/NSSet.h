#pragma once
#import <Foundation/NSArray.h>

NS_ASSUME_NONNULL_BEGIN

NS_SWIFT_BRIDGE(Swift.Set)
@interface NSSet<__covariant ObjectType> : NSObject <NSCopying, NSMutableCopying, NSFastEnumeration>
@property(readonly) NSUInteger count;
@property(readonly, copy) NSArray<ObjectType> *allObjects;

+ (instancetype)set;
+ (instancetype)setWithArray:(NSArray<ObjectType> *)array;
+ (instancetype)setWithObjects:(ObjectType)first, ... NS_REQUIRES_NIL_TERMINATION;
- (BOOL)containsObject:(ObjectType)object;
- (BOOL)isEqualToSet:(NSSet<ObjectType> *)set;
@end

@interface NSMutableSet<ObjectType> : NSSet <ObjectType>
- (void)addObject:(ObjectType)object;
- (void)removeObject:(ObjectType)object;
@end

NS_ASSUME_NONNULL_END
