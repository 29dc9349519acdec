// Classes for the bridge's tests: a class and its subclass in two files, whose modules load in either order, with
// variables in their implementations.
#pragma once
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

struct alignas(16) SampleVector {
  float elements[4];
};

struct SampleSums {  // returned in memory
  double values[5];
};

@protocol SampleShape <NSObject>
- (double)area;
@optional
- (NSString *)nickname;
@end

NS_SWIFT_NAME(Sample.Square)
@interface SampleSquare : NSObject <SampleShape>
@property(atomic, copy) NSString *title;
@property(nonatomic) double side;
@property(class, nonatomic, readonly) int liveCount;
@property(nonatomic, readonly) SampleVector vector;
@property(nonatomic, readonly) SampleSums sums;
- (instancetype)initWithTitle:(NSString *)title NS_DESIGNATED_INITIALIZER;
- (instancetype)init NS_UNAVAILABLE;
+ (instancetype)squareWithTitle:(NSString *)title;
@end

// A node of a tree: owns its children and has a weak reference to its parent.
@interface SampleNode : SampleSquare
@property(nonatomic, strong) NSMutableArray<SampleNode *> *children;
@property(nonatomic, weak, nullable) SampleNode *parent;
@property(atomic, copy, nullable) int (^work)(int);
@property(nonatomic, readonly) NSString *path;
- (void)adopt:(SampleNode *)child;
@end

NS_ASSUME_NONNULL_END
