#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@implementation MNKKernelLibrary

- (instancetype)init {
  return nil;
}

- (instancetype)initWithHandle:(mnk_library *)handle {
  if ((self = [super init])) _handle.reset(handle);
  return self;
}

+ (instancetype)libraryWithText:(NSString *)text
                          label:(NSString *)label
                         device:(MNKDevice *)device
                          error:(NSError **)error {
  return objc::make<MNKKernelLibrary>(error, "KernelLibrary", [&](Reading &reading) {
    return objc::call(reading, mnk_library_make_from_text, objc::handleOf(reading, device),
                      reading.text(text, "the text"), reading.text(label, "the label"));
  });
}

+ (instancetype)libraryWithContentsOfURL:(NSURL *)url device:(MNKDevice *)device error:(NSError **)error {
  return objc::make<MNKKernelLibrary>(error, "KernelLibrary", [&](Reading &reading) {
    return objc::call(reading, mnk_library_make_from_path, objc::handleOf(reading, device), reading.path(url));
  });
}

+ (instancetype)shippedLibraryForDevice:(MNKDevice *)device error:(NSError **)error {
  return objc::make<MNKKernelLibrary>(error, "KernelLibrary", [&](Reading &reading) {
    return objc::call(reading, mnk_library_make_shipped, objc::handleOf(reading, device));
  });
}

- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKKernelLibrary class]] &&
         static_cast<MNKKernelLibrary *>(other)->_handle->library == _handle->library;
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_handle->library.get()) / 16;
}

- (MNKLibraryOrigin)origin {
  return static_cast<MNKLibraryOrigin>(mnk_library_get_origin(_handle.get()));
}
- (NSURL *)originURL {
  const std::string_view path = mnk_library_origin_path(_handle.get());
  return path.empty() ? nil : [NSURL fileURLWithPath:objc::stringFrom(path)];
}
- (NSArray<NSString *> *)functionNames {
  NSMutableArray<NSString *> *names = [NSMutableArray array];
  for (const std::string &name : _handle->functions) [names addObject:objc::stringFrom(name)];
  return names;
}

@end
