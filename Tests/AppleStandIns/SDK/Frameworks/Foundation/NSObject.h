#pragma once
#import <Foundation/NSObjCRuntime.h>

NS_ASSUME_NONNULL_BEGIN

typedef struct _NSZone NSZone;

@protocol NSObject
@property(readonly) NSUInteger hash;
@property(readonly) Class superclass;
@property(readonly, copy) NSString *description;
- (BOOL)isEqual:(null_unspecified id)object;
- (Class)class;
- (instancetype)self;
- (BOOL)isKindOfClass:(Class)type;
- (BOOL)isMemberOfClass:(Class)type;
- (BOOL)conformsToProtocol:(Protocol *)protocol;
- (BOOL)respondsToSelector:(SEL)selector;
@end

@protocol NSCopying
- (id)copyWithZone:(nullable NSZone *)zone;
@end

@protocol NSMutableCopying
- (id)mutableCopyWithZone:(nullable NSZone *)zone;
@end

__attribute__((objc_root_class))
@interface NSObject<NSObject>
+ (instancetype)new;
+ (instancetype)alloc;
+ (instancetype)allocWithZone:(nullable NSZone *)zone;
+ (Class)class;
+ (BOOL)isSubclassOfClass:(Class)type;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
- (instancetype)init NS_DESIGNATED_INITIALIZER;
- (void)dealloc;
- (id)copy;
- (id)mutableCopy;
@end

@interface NSObject (NSKeyValueCoding)
- (nullable id)valueForKey:(NSString *)key;
- (void)setValue:(nullable id)value forKey:(NSString *)key;
- (nullable id)valueForKeyPath:(NSString *)keyPath;
- (void)setValue:(nullable id)value forKeyPath:(NSString *)keyPath;
@end

NS_ASSUME_NONNULL_END
