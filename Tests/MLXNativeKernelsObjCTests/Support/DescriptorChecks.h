// Checks that apply to every descriptor.
#pragma once
#import "DeviceTestCase.h"

NS_ASSUME_NONNULL_BEGIN

@interface DeviceTestCase (Descriptors)
// A copy is equal and independent; changing any one property of the copy makes it differ, and these are all properties.
- (void)checkDescriptor:(MNKDescriptor *)descriptor changes:(NSDictionary<NSString *, id> *)changes;
@end

NS_ASSUME_NONNULL_END
