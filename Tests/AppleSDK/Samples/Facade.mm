// A class of Objective-C++ over metal-cpp, as a framework would have it: shows that .ci/check-apple compiles such files,
// with automatic reference counting.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <memory>
#include <string>

#include "Devices/Metal/MetalCpp.hpp"

NS_ASSUME_NONNULL_BEGIN

typedef NS_CLOSED_ENUM(NSInteger, SampleKind) { SampleKindShared, SampleKindPrivate } NS_SWIFT_NAME(Sample.Kind);

NS_SWIFT_SENDABLE NS_SWIFT_NAME(Sample)
@interface MNKSample : NSObject
@property(nonatomic, readonly) id<MTLDevice> device;
@property(nonatomic, readonly) SampleKind kind;
- (nullable instancetype)initWithDevice:(id<MTLDevice>)device
                                  error:(NSError* _Nullable*)error NS_DESIGNATED_INITIALIZER;
- (instancetype)init NS_UNAVAILABLE;
- (nullable id<MTLBuffer>)bufferOfLength:(NSUInteger)length;
@end

NS_ASSUME_NONNULL_END

namespace {

struct State {
  NS::SharedPtr<MTL::Device> device;
};

}  // namespace

@implementation MNKSample {
  std::unique_ptr<State> _state;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device error:(NSError**)error {
  if (!(self = [super init])) return nil;
  if (device.name.length == 0) {
    const std::string text = "a device without a name";
    id values[] = {[NSString stringWithUTF8String:text.c_str()]};
    NSErrorUserInfoKey keys[] = {NSLocalizedDescriptionKey};
    if (error) {
      *error = [NSError errorWithDomain:@"MNKSample"
                                   code:1
                               userInfo:[NSDictionary dictionaryWithObjects:values forKeys:keys count:1]];
    }
    return nil;
  }
  _device = device;
  _state = std::make_unique<State>(State{NS::RetainPtr((__bridge MTL::Device*)device)});
  return self;
}

- (SampleKind)kind {
  return _state->device->hasUnifiedMemory() ? SampleKindShared : SampleKindPrivate;
}

- (id<MTLBuffer>)bufferOfLength:(NSUInteger)length {
  return (__bridge_transfer id<MTLBuffer>)_state->device->newBuffer(length, MTL::ResourceStorageModeShared);
}

@end
