#import "ObjC/Core.hpp"

@implementation MNKIntegers

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"list", @"tensor" ];
}

- (instancetype)initWithList:(NSArray<NSNumber *> *)list tensor:(MNKTensor *)tensor {
  if ((self = [super init])) {
    _list = [list copy];
    _tensor = tensor;
  }
  return self;
}

+ (instancetype)integersWithList:(NSArray<NSNumber *> *)list {
  return [[self alloc] initWithList:list tensor:nil];
}
+ (instancetype)integersWithTensor:(MNKTensor *)tensor {
  return [[self alloc] initWithList:nil tensor:tensor];
}
- (id)copyWithZone:(NSZone *)zone {
  return self;  // immutable
}

@end
