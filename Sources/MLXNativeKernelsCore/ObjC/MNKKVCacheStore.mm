#import "ObjC/Core.hpp"

@implementation MNKKVCacheStore

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"keysView", @"valuesView", @"sourceLayout", @"sourceOffset", @"tokens", @"sourceIsRing", @"sequence", @"position",
    @"rowSequences", @"rowPositions"
  ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _sourceLayout = MNKKVLayoutTokenMajor;
    _sequence = MNKOnlySequence;
  }
  return self;
}

- (MNKTensor *)keys {
  return _keysView.tensor;
}
- (void)setKeys:(MNKTensor *)keys {
  self.keysView = [[MNKHeadsView alloc] initWithTensor:keys];
}
- (MNKTensor *)values {
  return _valuesView.tensor;
}
- (void)setValues:(MNKTensor *)values {
  self.valuesView = values ? [[MNKHeadsView alloc] initWithTensor:(MNKTensor *_Nonnull)values] : nil;
}

@end
