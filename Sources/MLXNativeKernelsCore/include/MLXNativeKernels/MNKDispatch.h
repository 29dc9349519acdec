#import <MLXNativeKernels/Generated/MNKBasics.h>
#import <MLXNativeKernels/MNKDescriptor.h>

@class MNKKernelLibrary, MNKTensor;

NS_ASSUME_NONNULL_BEGIN

/// One launch of the caller's own kernel.
///
/// Each argument is set at its index, as in Metal, and replaces an earlier one. Barriers are placed from the declared
/// accesses.
///
/// ```objc
/// MNKDispatch *scale = [[MNKDispatch alloc] initWithFunction:@"scale" library:library];
/// [scale setTensor:x access:MNKAccessReadWrite atIndex:0];
/// [scale setBytes:&factor length:sizeof factor atIndex:1];
/// scale.grid = @[ @(x.count) ];
/// ```
@interface MNKDispatch : MNKDescriptor

- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)new NS_UNAVAILABLE;

/// A function of a library; `nil` means the kernels that this framework ships.
- (instancetype)initWithFunction:(NSString *)function
                         library:(nullable MNKKernelLibrary *)library NS_DESIGNATED_INITIALIZER;

@property(nonatomic, copy) NSString *function;
@property(nonatomic, nullable) MNKKernelLibrary *library;
/// Under which `-[MNKSummary countsOfKind:]` counts it; `Custom` by default.
@property(nonatomic, copy) NSString *kind;

/// `nil` removes what was set.
- (void)setTensor:(nullable MNKTensor *)tensor access:(MNKAccess)access atIndex:(NSUInteger)index;
/// Bytes for a `constant` argument, at most 4096; they are copied. NULL removes what was set.
- (void)setBytes:(nullable const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;
/// Values that are fixed when a kernel is prepared.
- (void)setConstantBool:(BOOL)value atIndex:(NSUInteger)index;
- (void)setConstantInt32:(int32_t)value atIndex:(NSUInteger)index;
- (void)setConstantUInt32:(uint32_t)value atIndex:(NSUInteger)index;
- (void)setConstantFloat:(float)value atIndex:(NSUInteger)index;

/// Threads along up to three axes, at least one along each, or threadgroups where `gridIsThreadgroups`; one thread by
/// default.
@property(nonatomic, copy) NSArray<NSNumber *> *grid;
/// Threads of one threadgroup; `nil` lets the encoder choose, only with a grid of threads.
@property(nonatomic, nullable, copy) NSArray<NSNumber *> *threadgroup;
@property(nonatomic) BOOL gridIsThreadgroups;

@end

NS_ASSUME_NONNULL_END
