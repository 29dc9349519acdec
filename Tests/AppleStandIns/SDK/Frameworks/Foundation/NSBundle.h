// Stubs for bundles and process information.
#pragma once
#import <Foundation/NSDictionary.h>
#import <Foundation/NSString.h>

@class NSURL;

NS_ASSUME_NONNULL_BEGIN

FOUNDATION_EXPORT NSString *NSTemporaryDirectory(void);

@interface NSBundle : NSObject
@property(class, readonly, strong) NSBundle *mainBundle;
@property(nullable, readonly, copy) NSString *resourcePath;
@property(readonly, copy) NSURL *bundleURL;

+ (NSBundle *)bundleForClass:(Class)type;
- (nullable NSURL *)URLForResource:(nullable NSString *)name withExtension:(nullable NSString *)extension;
@end

@interface NSFileManager : NSObject
@property(class, readonly, strong) NSFileManager *defaultManager;
@property(readonly, copy) NSURL *temporaryDirectory;

- (BOOL)fileExistsAtPath:(NSString *)path;
- (BOOL)removeItemAtPath:(NSString *)path error:(NSError **)error;
- (BOOL)removeItemAtURL:(NSURL *)url error:(NSError **)error;
- (BOOL)createDirectoryAtURL:(NSURL *)url
    withIntermediateDirectories:(BOOL)createIntermediates
                     attributes:(nullable NSDictionary<NSString *, id> *)attributes
                          error:(NSError **)error;
@end

@interface NSProcessInfo : NSObject
@property(class, readonly, strong) NSProcessInfo *processInfo;
@property(readonly, copy) NSDictionary<NSString *, NSString *> *environment;
@property(readonly, copy) NSArray<NSString *> *arguments;
@property(readonly, copy) NSString *globallyUniqueString;
@end

@interface NSUUID : NSObject <NSCopying>
@property(readonly, copy) NSString *UUIDString;
+ (instancetype)UUID;
@end

NS_ASSUME_NONNULL_END
