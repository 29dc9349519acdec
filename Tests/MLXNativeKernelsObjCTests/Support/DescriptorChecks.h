// What holds for every descriptor.
#pragma once
#import "DeviceTestCase.h"

NS_ASSUME_NONNULL_BEGIN

@interface DeviceTestCase (Descriptors)
// A copy is equal and apart; each property by itself makes a difference, in the copy alone, and these are all.
- (void)checkDescriptor:(MNKDescriptor *)descriptor changes:(NSDictionary<NSString *, id> *)changes;
@end

NS_ASSUME_NONNULL_END
