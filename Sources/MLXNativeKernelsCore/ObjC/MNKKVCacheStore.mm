#import "ObjC/Core.hpp"

@implementation MNKKVCacheStore

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"keys", @"values", @"sourceLayout", @"sourceOffset", @"tokens", @"sourceIsRing", @"sequence", @"position",
    @"rowSequences", @"rowPositions"
  ];
}

- (instancetype)init {
  if ((self = [super init])) _sourceLayout = MNKKVLayoutTokenMajor;
  return self;
}

@end
