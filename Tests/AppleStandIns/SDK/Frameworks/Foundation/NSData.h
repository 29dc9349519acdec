#pragma once
#import <Foundation/NSObject.h>

@class NSError, NSURL;

NS_ASSUME_NONNULL_BEGIN

NS_SWIFT_BRIDGE(Foundation.Data)
@interface NSData : NSObject <NSCopying, NSMutableCopying>
@property(readonly) NSUInteger length;
@property(readonly) const void *bytes NS_RETURNS_INNER_POINTER;

+ (instancetype)data;
+ (instancetype)dataWithBytes:(nullable const void *)bytes length:(NSUInteger)length;
+ (instancetype)dataWithBytesNoCopy:(void *)bytes length:(NSUInteger)length freeWhenDone:(BOOL)freeWhenDone;
+ (nullable instancetype)dataWithContentsOfURL:(NSURL *)url;
- (void)getBytes:(void *)buffer length:(NSUInteger)length;
- (BOOL)isEqualToData:(NSData *)data;
- (BOOL)writeToURL:(NSURL *)url atomically:(BOOL)atomically;
@end

@interface NSMutableData : NSData
@property(readonly) void *mutableBytes NS_RETURNS_INNER_POINTER;
@property NSUInteger length;

+ (nullable instancetype)dataWithCapacity:(NSUInteger)capacity;
+ (nullable instancetype)dataWithLength:(NSUInteger)length;
- (void)appendBytes:(const void *)bytes length:(NSUInteger)length;
@end

NS_ASSUME_NONNULL_END
