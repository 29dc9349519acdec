#include <algorithm>
#include <bit>

#import "ObjC/Core.hpp"
#include "Support/Errors.hpp"

using namespace mnk;
using objc::Reading;

@interface MNKDispatch ()
// The arguments by index. Copies and comparisons use these dictionaries directly.
@property(nonatomic, copy) NSDictionary<NSNumber *, MNKTensor *> *tensors;
@property(nonatomic, copy) NSDictionary<NSNumber *, NSNumber *> *accesses;
@property(nonatomic, copy) NSDictionary<NSNumber *, NSData *> *inlineBytes;
@property(nonatomic, copy) NSDictionary<NSNumber *, NSNumber *> *memoryLengths;
@property(nonatomic, copy) NSDictionary<NSNumber *, NSNumber *> *constantTypes;
@property(nonatomic, copy) NSDictionary<NSNumber *, NSNumber *> *constantBits;
@end

namespace {

// Replaces the value at this index; nil removes it.
template <typename Value>
NSDictionary<NSNumber *, Value> *with(NSDictionary<NSNumber *, Value> *old, NSUInteger index, Value value) {
  NSMutableDictionary<NSNumber *, Value> *changed = old ? [old mutableCopy] : [NSMutableDictionary dictionary];
  if (value) {
    changed[@(index)] = value;
  } else {
    [changed removeObjectForKey:@(index)];
  }
  return changed;
}

// Sorted, so that an error names the first.
NSArray<NSNumber *> *sortedIndices(NSDictionary<NSNumber *, id> *arguments) {
  return [arguments.allKeys sortedArrayUsingSelector:@selector(compare:)];
}

Size3 readSize(Reading &reading, NSArray<NSNumber *> *extents, std::string_view name) {
  const auto numbers = reading.integers<uint32_t>(extents, name);
  if (numbers.empty() || numbers.size() > 3) {
    reading.fail(fmt::format("{} has a wrong number of axes", name), fmt::format("{}", numbers.size()), "1 to 3",
                 "Pass one number for each axis.");
    return {};
  }
  Size3 size{1, 1, 1};
  std::copy(numbers.begin(), numbers.end(), size.begin());
  return size;
}

}  // namespace

@implementation MNKDispatch

+ (NSArray<NSString *> *)valueKeys {
  return @[
    @"function", @"library", @"kind", @"tensors", @"accesses", @"inlineBytes", @"memoryLengths", @"constantTypes",
    @"constantBits", @"grid", @"threadgroup", @"gridIsThreadgroups"
  ];
}

- (instancetype)initWithFunction:(NSString *)function library:(MNKKernelLibrary *)library {
  if ((self = [super init])) {
    _function = [function copy];
    _library = library;
    _kind = @"Custom";
    _grid = @[ @1 ];
  }
  return self;
}

// Tensors and bytes share one index space, as in Metal.
- (void)setTensor:(MNKTensor *)tensor access:(MNKAccess)access bytes:(NSData *)bytes atIndex:(NSUInteger)index {
  self.tensors = with(_tensors, index, tensor);
  self.accesses = with(_accesses, index, tensor ? @(access) : nil);
  self.inlineBytes = with(_inlineBytes, index, bytes);
}

- (void)setTensor:(MNKTensor *)tensor access:(MNKAccess)access atIndex:(NSUInteger)index {
  [self setTensor:tensor access:access bytes:nil atIndex:index];
}

- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  // Encoding refuses more bytes than Metal accepts, so one byte over the limit is enough.
  const NSUInteger most = DeviceLimits().maxInlineBytes + 1;
  NSData *copy = bytes ? [NSData dataWithBytes:bytes length:std::min(length, most)] : nil;
  [self setTensor:nil access:MNKAccessRead bytes:copy atIndex:index];
}

- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  self.memoryLengths = with(_memoryLengths, index, @(length));
}

- (void)setConstant:(ConstantType)type bits:(uint32_t)bits atIndex:(NSUInteger)index {
  self.constantTypes = with(_constantTypes, index, @(static_cast<uint32_t>(type)));
  self.constantBits = with(_constantBits, index, @(bits));
}
- (void)setConstantBool:(BOOL)value atIndex:(NSUInteger)index {
  [self setConstant:ConstantType::boolean bits:value ? 1 : 0 atIndex:index];
}
- (void)setConstantInt32:(int32_t)value atIndex:(NSUInteger)index {
  [self setConstant:ConstantType::i32 bits:static_cast<uint32_t>(value) atIndex:index];
}
- (void)setConstantUInt32:(uint32_t)value atIndex:(NSUInteger)index {
  [self setConstant:ConstantType::u32 bits:value atIndex:index];
}
- (void)setConstantFloat:(float)value atIndex:(NSUInteger)index {
  [self setConstant:ConstantType::f32 bits:std::bit_cast<uint32_t>(value) atIndex:index];
}

@end

namespace mnk::objc {

Result<Dispatch> coreOf(MNKDispatch *input) {
  Reading reading("MNKDispatch");
  if (!reading.needed(input, "the dispatch") || !reading.needed(input.function, "the function")) return reading.error();
  Dispatch dispatch;
  dispatch.kind = textFrom(input.kind);
  dispatch.kernel.function = textFrom(input.function);
  if (input.library) dispatch.kernel.library = input.library->_handle->library;
  for (NSNumber *index in sortedIndices(input.constantTypes)) {
    dispatch.kernel.constants.emplace_back(reading.integer<uint32_t>(index, "a constant's index"),
                                           static_cast<ConstantType>(input.constantTypes[index].intValue),
                                           input.constantBits[index].unsignedIntValue);
  }
  for (NSNumber *index in sortedIndices(input.tensors)) {
    Access access{};
    read(reading, access, enumFrom(reading, static_cast<MNKAccess>(input.accesses[index].unsignedIntValue), "access"));
    const mnk_tensor *tensor = handleOf(reading, input.tensors[index], "a buffer");
    dispatch.buffers.push_back(
        Binding::whole(reading.integer<uint32_t>(index, "a buffer index"), tensor ? tensor->tensor : Tensor(), access));
  }
  for (NSNumber *index in sortedIndices(input.inlineBytes)) {
    NSData *data = input.inlineBytes[index];
    const auto *bytes = static_cast<const std::byte *>(data.bytes);
    dispatch.inlines.push_back(
        {reading.integer<uint32_t>(index, "an inline index"), std::vector<std::byte>(bytes, bytes + data.length)});
  }
  for (NSNumber *index in sortedIndices(input.memoryLengths)) {
    dispatch.threadgroupMemory.push_back(
        {reading.integer<uint32_t>(index, "a threadgroup memory index"),
         reading.integer<uint32_t>(input.memoryLengths[index], "the size of threadgroup memory")});
  }
  dispatch.grid.unit = input.gridIsThreadgroups ? Grid::Unit::threadgroups : Grid::Unit::threads;
  dispatch.grid.extent = readSize(reading, input.grid, "the grid");
  if (input.threadgroup) dispatch.grid.threadgroup = readSize(reading, input.threadgroup, "the threadgroup");
  return reading.result(std::move(dispatch));
}

}  // namespace mnk::objc
