#import "DescriptorChecks.h"

// The properties that make up a descriptor's value, which are private to the framework.
@interface MNKDescriptor (Values)
+ (NSArray<NSString *> *)valueKeys;
@end

@implementation DeviceTestCase (Descriptors)

- (void)checkDescriptor:(MNKDescriptor *)descriptor changes:(NSDictionary<NSString *, id> *)changes {
  Class kind = [descriptor class];
  XCTAssertEqualObjects([NSSet setWithArray:[kind valueKeys]], [NSSet setWithArray:changes.allKeys], @"%@", kind);
  MNKDescriptor *same = [descriptor copy];
  XCTAssertNotIdentical(same, descriptor);
  XCTAssertTrue([same isMemberOfClass:kind]);
  XCTAssertEqualObjects(same, descriptor);
  XCTAssertEqual(same.hash, descriptor.hash);
  XCTAssertNotEqualObjects(descriptor, @"descriptor");
  XCTAssertFalse([descriptor isEqual:nil]);
  for (NSString *key in changes) {
    MNKDescriptor *other = [descriptor copy];
    id before = [descriptor valueForKey:key];
    [other setValue:changes[key] forKey:key];
    XCTAssertEqualObjects([other valueForKey:key], changes[key], @"%@ of %@", key, kind);
    XCTAssertNotEqualObjects(other, descriptor, @"%@ of %@", key, kind);
    XCTAssertNotEqualObjects(descriptor, other, @"%@ of %@", key, kind);
    XCTAssertEqualObjects([descriptor valueForKey:key], before, @"%@ of %@", key, kind);
    XCTAssertEqualObjects([other copy], other, @"%@ of %@", key, kind);
    XCTAssertEqual([[other copy] hash], other.hash, @"%@ of %@", key, kind);
    NSString *shown = [NSString stringWithFormat:@"%@ = ", key];
    XCTAssertTrue([other.description rangeOfString:shown].length > 0, @"%@", other.description);
    [other setValue:before forKey:key];
    XCTAssertEqualObjects(other, descriptor, @"%@ of %@", key, kind);
  }
}

@end
