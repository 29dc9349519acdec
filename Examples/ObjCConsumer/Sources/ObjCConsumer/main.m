// Appends ten tokens to a ring of four slots. A zero query weights all keys equally, so attention returns their mean.
#import <Foundation/Foundation.h>
#import <MLXNativeKernels/MLXNativeKernels.h>
#include <stdio.h>

enum { kHeadDim = 32, kTokens = 10 };

// Returns NO and stores the error of the first call that fails.
static BOOL run(NSError **error) {
  MNKDevice *device = [MNKDevice defaultDeviceWithError:error];
  if (!device) return NO;

  MNKAttentionCacheDescriptor *descriptor = [MNKAttentionCacheDescriptor descriptorWithKVHeads:1
                                                                                       headDim:kHeadDim
                                                                                      capacity:4];
  descriptor.elementType = MNKElementTypeFloat32;
  descriptor.whenFull = MNKKVWrapRing;
  MNKAttentionCache *cache = [[MNKAttentionCache alloc] initWithDevice:device descriptor:descriptor error:error];
  if (!cache) return NO;

  // Every element of a token is its number.
  float numbers[kTokens * kHeadDim];
  for (int i = 0; i < kTokens * kHeadDim; ++i) numbers[i] = (float)(i / kHeadDim);
  MNKTensor *tokens = [MNKTensor tensorWithFloats:numbers
                                            shape:@[ @(kTokens), @1, @(kHeadDim) ]
                                      elementType:MNKElementTypeFloat32
                                           device:device
                                            error:error];
  if (!tokens) return NO;
  MNKTensor *query = [MNKTensor zerosWithShape:@[ @1, @(kHeadDim) ]
                                   elementType:MNKElementTypeFloat32
                                        device:device
                                         error:error];
  if (!query) return NO;
  MNKTensor *output = [MNKTensor zerosWithShape:@[ @1, @(kHeadDim) ]
                                    elementType:MNKElementTypeFloat32
                                         device:device
                                          error:error];
  if (!output) return NO;

  MNKSummary *summary = [device runWithError:error
                                       block:^BOOL(MNKCommandEncoder *step, NSError **failure) {
                                         return [step appendKeys:tokens values:tokens toCache:cache error:failure] &&
                                                [step attendQueries:query
                                                          overCache:cache
                                                         intoTensor:output
                                                            options:nil
                                                              error:failure];
                                       }];
  if (!summary) return NO;

  float mean[kHeadDim];
  if (![output readFloats:mean count:kHeadDim error:error]) return NO;
  printf("next position %lu, attention %g\n", (unsigned long)cache.nextPosition, (double)mean[0]);
  return YES;
}

int main(void) {
  @autoreleasepool {
    NSError *error = nil;
    if (run(&error)) return 0;
    fprintf(stderr, "%s\n", error.localizedDescription.UTF8String);
    return 1;
  }
}
