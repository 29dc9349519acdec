#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// A user kernel, in source that every device compiles.
static constexpr char kText[] = R"(
#include <metal_stdlib>
using namespace metal;
pipeline_constant(bool, doubles, 0);
pipeline_constant(int, shift, 1);
pipeline_constant(uint, addend, 2);
pipeline_constant(float, factor, 3);
struct Numbers { float a; float b; };
kernel void sumsOfGroups(device const uint* x [[buffer(0)]], device float* sums [[buffer(1)]],
                         constant Numbers& numbers [[buffer(2)]], threadgroup uint* shared [[threadgroup_memory(0)]],
                         uint3 group [[threadgroup_position_in_grid]], uint3 lane [[thread_position_in_threadgroup]],
                         uint3 width [[threads_per_threadgroup]]) {
  uint index = group.y * 3 + group.x;
  shared[lane.x] = x[index * width.x + lane.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane.x == 0) {
    uint sum = 0;
    for (uint i = 0; i < width.x; ++i) sum += shared[i];
    sums[index] = float(doubles ? 2 * sum : sum) + float(shift) + float(addend) * factor + numbers.a - numbers.b;
  }
}
export_kernel(sumsOfGroups)
)";

@interface DispatchTests : DeviceTestCase
@end

// The device retains compiled libraries until its last reference is released.
static MNKDevice *heldDevice = nil;

@implementation DispatchTests {
  MNKKernelLibrary *_library;
}

+ (void)setUp {
  [super setUp];
  heldDevice = [MNKDevice defaultDeviceWithError:nil];
}

+ (void)tearDown {
  heldDevice = nil;
  [super tearDown];
}

- (void)setUp {
  [super setUp];
  _library = [self library];
}

- (MNKKernelLibrary *)library {
  NSError *error = nil;
  MNKKernelLibrary *library = [MNKKernelLibrary libraryWithText:(NSString *_Nonnull)@(kText)
                                                          label:@"own kernels"
                                                         device:self.device
                                                          error:&error];
  XCTAssertNotNil(library, @"%@", error);
  return library;
}

// Sums 6 groups of 32 numbers.
- (MNKDispatch *)sumsOf:(MNKTensor *)x into:(MNKTensor *)sums {
  const float numbers[2] = {100, 1};
  MNKDispatch *dispatch = [[MNKDispatch alloc] initWithFunction:@"sumsOfGroups" library:_library];
  [dispatch setTensor:x access:MNKAccessRead atIndex:0];
  [dispatch setTensor:sums access:MNKAccessWrite atIndex:1];
  [dispatch setBytes:numbers length:sizeof numbers atIndex:2];
  [dispatch setThreadgroupMemoryLength:128 atIndex:0];
  [dispatch setConstantBool:YES atIndex:0];
  [dispatch setConstantInt32:-5 atIndex:1];
  [dispatch setConstantUInt32:4 atIndex:2];
  [dispatch setConstantFloat:0.25f atIndex:3];
  dispatch.grid = @[ @3, @2 ];
  dispatch.threadgroup = @[ @32 ];
  dispatch.gridIsThreadgroups = YES;
  return dispatch;
}

- (void)testArgumentsReachTheKernel {
  std::vector<uint32_t> numbers(2 * 192);
  for (uint32_t i = 0; i < 192; ++i) numbers[192 + i] = i;
  MNKTensor *both = [MNKTensor tensorWithData:[NSData dataWithBytes:numbers.data() length:numbers.size() * 4]
                                        shape:@[ @2, @192 ]
                                  elementType:MNKElementTypeUInt32
                                       device:self.device
                                        error:nil];
  MNKTensor *x = [both sliceWithRange:NSMakeRange(1, 1) error:nil], *sums = [self zeros:@[ @6 ]];
  MNKTensor *others = [self zeros:@[ @6 ]];
  MNKDispatch *dispatch = [self sumsOf:x into:sums];
  MNKCommandEncoder *step = [self.device commandEncoder];
  NSError *error = nil;
  XCTAssertTrue([step encodeDispatch:dispatch error:&error], @"%@", error);
  // Encoding copies a dispatch, so later changes do not affect it.
  [dispatch setConstantBool:NO atIndex:0];
  [dispatch setTensor:others access:MNKAccessWrite atIndex:1];
  dispatch.kind = @"Other";
  XCTAssertTrue([step encodeDispatch:dispatch error:&error], @"%@", error);
  MNKCompletion *done = [step commitWithError:nil];
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
  for (NSUInteger i = 0; i < 6; ++i) {
    const auto sum = static_cast<float>(1024 * i + 496);
    XCTAssertEqual([self floatOf:sums at:i], 2 * sum - 5 + 1 + 99);
    XCTAssertEqual([self floatOf:others at:i], sum - 5 + 1 + 99);
  }
  XCTAssertEqual([done.summary countsOfKind:@"Custom"].dispatches, 1u);
  XCTAssertEqual([done.summary countsOfKind:@"Other"].bytesWritten, 24u);
}

// Arguments are part of the value, beside the properties that DescriptorTests checks for other classes.
- (void)testCopiesAreEqualAndIndependent {
  MNKTensor *x = [self zeros:@[ @3 ]], *other = [self zeros:@[ @3 ]];
  MNKDispatch *dispatch = [self sumsOf:x into:x];
  const uint64_t bytes = 1;
  const std::vector<std::function<void(MNKDispatch *)>> changes{
      [=](MNKDispatch *d) { d.gridIsThreadgroups = NO; },
      [=](MNKDispatch *d) { [d setTensor:other access:MNKAccessRead atIndex:0]; },
      [=](MNKDispatch *d) { [d setTensor:x access:MNKAccessReadWrite atIndex:0]; },
      [=](MNKDispatch *d) { [d setBytes:&bytes length:8 atIndex:2]; },
      [=](MNKDispatch *d) { [d setThreadgroupMemoryLength:32 atIndex:0]; },
      [=](MNKDispatch *d) { [d setConstantBool:NO atIndex:0]; },
      [=](MNKDispatch *d) { [d setConstantUInt32:1 atIndex:0]; },
  };
  for (const auto &change : changes) {
    MNKDispatch *copy = [dispatch copy];
    XCTAssertEqualObjects(copy, dispatch);
    XCTAssertEqual(copy.hash, dispatch.hash);
    change(copy);
    XCTAssertNotEqualObjects(copy, dispatch, @"%@", copy);
  }
  // Tensors and bytes share indices: the last one set counts.
  MNKDispatch *replaced = [dispatch copy];
  [replaced setBytes:&bytes length:8 atIndex:0];
  [replaced setTensor:x access:MNKAccessRead atIndex:0];
  XCTAssertEqualObjects(replaced, dispatch);
}

- (void)testInvalidDispatchesAreRefused {
  MNKTensor *x = [self zeros:@[ @192 ] type:MNKElementTypeUInt32], *sums = [self zeros:@[ @6 ]];
  MNKCommandEncoder *step = [self.device commandEncoder];
  constexpr NSUInteger kTooLarge = NSUInteger{1} << 32;
  NSMutableData *long4K = [NSMutableData dataWithLength:4097];
  const std::vector<std::pair<NSString *, std::function<void(MNKDispatch *)>>> changes{
      {@"nil was passed for the function", [=](MNKDispatch *d) { d.function = absentObject(); }},
      {@"nil was passed for the grid", [=](MNKDispatch *d) { d.grid = absentObject(); }},
      {@"has a wrong number of axes", [=](MNKDispatch *d) { d.grid = @[]; }},
      {@"the number for the grid is out of range", [=](MNKDispatch *d) { d.grid = @[ @4294967296 ]; }},
      {@"another class was passed for the threadgroup",
       [=](MNKDispatch *d) { d.threadgroup = @[ (id)[NSNull null] ]; }},
      {@"the number for access is unknown",
       [=](MNKDispatch *d) { [d setTensor:x access:static_cast<MNKAccess>(3) atIndex:0]; }},
      {@"the number for a buffer index is out of range",
       [=](MNKDispatch *d) { [d setTensor:x access:MNKAccessRead atIndex:kTooLarge]; }},
      {@"the number for an inline index is out of range",
       [=](MNKDispatch *d) { [d setBytes:"1" length:1 atIndex:kTooLarge]; }},
      {@"the number for the size of threadgroup memory is out of range",
       [=](MNKDispatch *d) { [d setThreadgroupMemoryLength:kTooLarge atIndex:0]; }},
      {@"the number for a threadgroup memory index is out of range",
       [=](MNKDispatch *d) { [d setThreadgroupMemoryLength:16 atIndex:kTooLarge]; }},
      {@"the number for a constant's index is out of range",
       [=](MNKDispatch *d) { [d setConstantBool:YES atIndex:kTooLarge]; }},
      // The core's rules: nil removes an argument, and long bytes are not cut to a valid length.
      {@"", [=](MNKDispatch *d) { [d setTensor:nil access:MNKAccessRead atIndex:0]; }},
      {@"", [=](MNKDispatch *d) { [d setBytes:nullptr length:8 atIndex:2]; }},
      {@"", [=](MNKDispatch *d) { [d setBytes:long4K.bytes length:long4K.length atIndex:2]; }},
  };
  for (const auto &[what, change] : changes) {
    MNKDispatch *dispatch = [self sumsOf:x into:sums];
    change(dispatch);
    NSError *error = nil;
    XCTAssertFalse([step encodeDispatch:dispatch error:&error], @"%@", what);
    NSString *op = what.length > 0 ? @"MNKDispatch" : @(partsOf(error).op.c_str());
    XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, op, what));
  }
  XCTAssertEqual([step commitWithError:nil].summary.total.dispatches, 0u);
}

- (void)testLibraries {
  MNKDevice *device = self.device;
  XCTAssertEqualObjects(_library.functionNames, @[ @"sumsOfGroups" ]);
  XCTAssertEqual(_library.origin, MNKLibraryOriginGivenText);
  XCTAssertNil(_library.originURL);
  MNKKernelLibrary *again = self.library;
  XCTAssertEqualObjects(again, _library);
  XCTAssertEqual(again.hash, _library.hash);
  XCTAssertNotEqualObjects(_library, @"own kernels");
  NSError *error = nil;
  MNKKernelLibrary *shipped = [MNKKernelLibrary shippedLibraryForDevice:device error:&error];
  XCTAssertTrue([[shipped.functionNames componentsJoinedByString:@" "] rangeOfString:@"kvCache"].length > 0);
  XCTAssertNotEqualObjects(shipped, _library);
  const auto withText = [](NSString *text, MNKDevice *on) {
    return [=](NSError **e) { return [MNKKernelLibrary libraryWithText:text label:@"label" device:on error:e] != nil; };
  };
  XCTAssertFalse(withText(@"kernel void broken() { undeclared = 1; }", device)(&error));
  XCTAssertEqual(error.code, MNKErrorShaderBuild);
  XCTAssertTrue([error.localizedDescription rangeOfString:@"undeclared"].length > 0, @"%@", error);
  NSString *noDevice = @"nil was passed for the device";
  XCTAssertNil(wrongIn({
      {@"KernelLibrary", @"the text has a null character", withText(@"text\0more", device)},
      {@"MNKDevice", noDevice, withText(@"", absentObject())},
      {@"KernelLibrary", @"the URL names no file",
       [=](NSError **e) {
         return [MNKKernelLibrary libraryWithContentsOfURL:absentObject() device:device error:e] != nil;
       }},
      {@"MNKDevice", noDevice,
       [=](NSError **e) { return [MNKKernelLibrary shippedLibraryForDevice:absentObject() error:e] != nil; }},
  }));
}

- (void)testAFileIsReadAgainAfterClearing {
  NSURL *url = self.temporaryFile;
  NSArray<NSString *> * (^names)(NSString *) = ^(NSString *kernel) {
    NSString *text =
        [NSString stringWithFormat:@"kernel void %@(device uint* x [[buffer(0)]]) { x[0] = 1; }\nexport_kernel(%@)\n",
                                   kernel, kernel];
    XCTAssertTrue([[text dataUsingEncoding:NSUTF8StringEncoding] writeToURL:url atomically:YES]);
    NSError *error = nil;
    MNKKernelLibrary *library = [MNKKernelLibrary libraryWithContentsOfURL:url device:self.device error:&error];
    XCTAssertEqual(library.origin, MNKLibraryOriginGivenFile, @"%@", error);
    XCTAssertEqualObjects(library.originURL.path, url.path);
    return library.functionNames;
  };
  XCTAssertEqualObjects(names(@"first"), @[ @"first" ]);
  [self.device clearKernels];
  XCTAssertEqualObjects(names(@"second"), @[ @"second" ]);
}

@end
