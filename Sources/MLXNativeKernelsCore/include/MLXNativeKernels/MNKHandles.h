#import <MLXNativeKernels/MNKAttentionCache.h>
#import <MLXNativeKernels/MNKDevice.h>
#import <MLXNativeKernels/MNKTensor.h>
#import <MLXNativeKernels/mnk.h>

NS_ASSUME_NONNULL_BEGIN

/// An object of the C API and one of this API can share the same underlying object: each can be made from the other
/// without copying memory. A handle that is made belongs to the caller, who releases it with the C API's function; one
/// that is passed is borrowed for the call.
@interface MNKDevice (MNKHandles)
+ (nullable instancetype)deviceWithHandle:(const mnk_device *)handle error:(NSError **)error;
- (nullable mnk_device *)makeHandleWithError:(NSError **)error NS_SWIFT_NAME(makeHandle());
@end

@interface MNKTensor (MNKHandles)
+ (nullable instancetype)tensorWithHandle:(const mnk_tensor *)handle error:(NSError **)error;
- (nullable mnk_tensor *)makeHandleWithError:(NSError **)error NS_SWIFT_NAME(makeHandle());
@end

@interface MNKAttentionCache (MNKHandles)
+ (nullable instancetype)cacheWithHandle:(const mnk_cache *)handle error:(NSError **)error;
- (nullable mnk_cache *)makeHandleWithError:(NSError **)error NS_SWIFT_NAME(makeHandle());
@end

NS_ASSUME_NONNULL_END
