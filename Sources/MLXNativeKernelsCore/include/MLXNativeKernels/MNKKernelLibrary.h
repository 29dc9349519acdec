#import <MLXNativeKernels/Generated/MNKBasics.h>

@class MNKDevice;

NS_ASSUME_NONNULL_BEGIN

/// The caller's own compiled kernels, or those that ship.
///
/// The source is Metal Shading Language with five macros for what only a Metal compiler parses; they need no include:
/// `export_kernel(f)`, `instantiate_kernel("name", f, type…)`, `pipeline_constant(type, name, index)`,
/// `threadgroup_array(type, name, count)` and `[[threadgroup_memory(n)]]`. A device compiles a source or a file once
/// and keeps it until `-[MNKDevice clearKernels]`.
NS_SWIFT_SENDABLE
__attribute__((objc_subclassing_restricted))
@interface MNKKernelLibrary : NSObject

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// Compiles kernels from source; the label names them in messages.
+ (nullable instancetype)libraryWithText:(NSString *)text
                                   label:(NSString *)label
                                  device:(MNKDevice *)device
                                   error:(NSError **)error;
/// Loads kernels from a file.
+ (nullable instancetype)libraryWithContentsOfURL:(NSURL *)url device:(MNKDevice *)device error:(NSError **)error;
/// The kernels that this framework ships.
+ (nullable instancetype)shippedLibraryForDevice:(MNKDevice *)device
                                           error:(NSError **)error NS_SWIFT_NAME(shipped(for:));

@property(nonatomic, readonly) MNKLibraryOrigin origin;
/// The file, if it was one. Of embedded text: the compiled file that it replaces, because that has fast math.
@property(nonatomic, readonly, nullable, copy) NSURL *originURL;
/// The names that can be dispatched.
@property(nonatomic, readonly, copy) NSArray<NSString *> *functionNames;

@end

NS_ASSUME_NONNULL_END
