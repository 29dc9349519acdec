#import "ObjC/Core.hpp"

@implementation MNKDescriptor

+ (NSArray<NSString *> *)valueKeys {
  return @[];
}

- (id)copyWithZone:(NSZone *)zone {
  MNKDescriptor *copy = [[[self class] allocWithZone:zone] init];
  for (NSString *key in [[self class] valueKeys]) [copy setValue:[self valueForKey:key] forKey:key];
  return copy;
}

- (BOOL)isEqual:(id)other {
  if (other == self) return YES;
  if (![other isMemberOfClass:[self class]]) return NO;
  for (NSString *key in [[self class] valueKeys]) {
    id mine = [self valueForKey:key];
    id others = [other valueForKey:key];
    if (mine != others && ![mine isEqual:others]) return NO;
  }
  return YES;
}

- (NSUInteger)hash {
  NSUInteger hash = 17;
  for (NSString *key in [[self class] valueKeys]) hash = hash * 31 + [[self valueForKey:key] hash];
  return hash;
}

- (NSString *)description {
  NSMutableArray<NSString *> *parts = [NSMutableArray array];
  for (NSString *key in [[self class] valueKeys]) {
    id value = [self valueForKey:key];
    if (value) [parts addObject:[NSString stringWithFormat:@"%@ = %@", key, value]];
  }
  return [NSString stringWithFormat:@"<%@: %@>", [self class], [parts componentsJoinedByString:@", "]];
}

@end
