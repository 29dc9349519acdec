// Stands for Apple's header: the protocols that our Objective-C++ takes and gives.
#pragma once
#import <Foundation/Foundation.h>

@protocol MTLDevice <NSObject>
@property(readonly) NSString* name;
@end

@protocol MTLResource <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@protocol MTLBuffer <MTLResource>
@property(readonly) NSUInteger length;
- (void*)contents;
@end

@protocol MTLLibrary <NSObject>
@property(readonly) NSArray<NSString*>* functionNames;
@end

@protocol MTLCommandQueue <NSObject>
@property(readonly) id<MTLDevice> device;
@end

@protocol MTLCommandBuffer <NSObject>
@property(readonly) id<MTLCommandQueue> commandQueue;
@property(readonly) NSError* error;
@end

FOUNDATION_EXPORT id<MTLDevice> MTLCreateSystemDefaultDevice(void) NS_RETURNS_RETAINED;
