#pragma once
#import <Foundation/NSObject.h>

NS_ASSUME_NONNULL_BEGIN

NS_SWIFT_BRIDGE(Foundation.URL)
@interface NSURL : NSObject <NSCopying>
@property(nullable, readonly, copy) NSString *absoluteString;
@property(nullable, readonly, copy) NSString *path;
@property(nullable, readonly, copy) NSString *lastPathComponent;
@property(readonly, getter=isFileURL) BOOL fileURL;
@property(nullable, readonly, copy) NSURL *URLByDeletingLastPathComponent;

+ (NSURL *)fileURLWithPath:(NSString *)path;
+ (NSURL *)fileURLWithPath:(NSString *)path isDirectory:(BOOL)isDirectory;
+ (nullable instancetype)URLWithString:(NSString *)text;
- (nullable NSURL *)URLByAppendingPathComponent:(NSString *)component;
@end

NS_ASSUME_NONNULL_END
