#import <MLXNativeKernels/Generated/MNKAttentionOptions.h>

NS_ASSUME_NONNULL_BEGIN

@interface MNKAttentionResults (MNKOutputs)

+ (instancetype)resultsIntoTensor:(MNKTensor *)output;
+ (instancetype)resultsIntoPartials:(MNKAttentionPartials *)partials;

@end

NS_ASSUME_NONNULL_END
