#import "ObjC/Core.hpp"

@implementation MNKAttentionResults (MNKOutputs)

+ (instancetype)resultsIntoTensor:(MNKTensor *)output {
  MNKAttentionResults *results = [[self alloc] init];
  results.output = output;
  return results;
}
+ (instancetype)resultsIntoPartials:(MNKAttentionPartials *)partials {
  MNKAttentionResults *results = [[self alloc] init];
  results.partials = partials;
  return results;
}

@end
