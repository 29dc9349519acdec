#include "MLXNativeKernels/Device.hpp"
#import "ObjC/Core.hpp"

using namespace mnk;

@implementation MNKKernelLibrary

- (instancetype)init {
  return nil;
}

- (instancetype)initWithCore:(std::shared_ptr<Library>)core {
  if ((self = [super init])) _core = std::move(core);
  return self;
}

+ (instancetype)libraryWithText:(NSString *)text
                          label:(NSString *)label
                         device:(MNKDevice *)device
                          error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKKernelLibrary *> {
    auto target = objc::coreOf(device);
    if (!target) return target.error();
    auto library = (*target)->registry().library(
        {.kind = LibrarySource::Kind::text, .value = objc::textFrom(text), .label = objc::textFrom(label)});
    if (!library) return library.error();
    return [[MNKKernelLibrary alloc] initWithCore:*library];
  });
}

+ (instancetype)libraryWithContentsOfURL:(NSURL *)url device:(MNKDevice *)device error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKKernelLibrary *> {
    auto target = objc::coreOf(device);
    if (!target) return target.error();
    auto path = objc::pathFrom(url, "KernelLibrary");
    if (!path) return path.error();
    auto library = (*target)->registry().library({.kind = LibrarySource::Kind::path, .value = *path, .label = *path});
    if (!library) return library.error();
    return [[MNKKernelLibrary alloc] initWithCore:*library];
  });
}

+ (instancetype)shippedLibraryForDevice:(MNKDevice *)device error:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKKernelLibrary *> {
    auto target = objc::coreOf(device);
    if (!target) return target.error();
    auto library = (*target)->registry().shippedLibrary();
    if (!library) return library.error();
    return [[MNKKernelLibrary alloc] initWithCore:*library];
  });
}

- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[MNKKernelLibrary class]] && static_cast<MNKKernelLibrary *>(other)->_core == _core;
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(_core.get()) / 16;
}

- (MNKLibraryOrigin)origin {
  return static_cast<MNKLibraryOrigin>(_core->origin().kind);
}
- (NSURL *)originURL {
  const std::string &path = _core->origin().path;
  return path.empty() ? nil : [NSURL fileURLWithPath:objc::stringFrom(path)];
}
- (NSArray<NSString *> *)functionNames {
  NSMutableArray<NSString *> *names = [NSMutableArray array];
  for (const std::string &name : _core->functionNames()) [names addObject:objc::stringFrom(name)];
  return names;
}

@end

namespace mnk::objc {

std::shared_ptr<Library> coreOf(MNKKernelLibrary *library) {
  return library ? library->_core : nullptr;
}

}  // namespace mnk::objc
