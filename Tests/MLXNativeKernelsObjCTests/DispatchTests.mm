#import "Support/Checks.hpp"
#import "Support/DeviceTestCase.h"

using namespace mnk::objc_test;

// User kernels, in source that every device compiles.
static NSString *const kText =
    @"#include <metal_stdlib>\n"
     "using namespace metal;\n"
     "pipeline_constant(bool, doubles, 0);\n"
     "pipeline_constant(int, shift, 1);\n"
     "pipeline_constant(uint, addend, 2);\n"
     "pipeline_constant(float, factor, 3);\n"
     "struct Numbers { float a; float b; };\n"
     "kernel void constants(device float* x [[buffer(0)]], constant Numbers& numbers [[buffer(2)]],\n"
     "                      uint i [[thread_position_in_grid]]) {\n"
     "  x[i] = (doubles ? 2 * x[i] : x[i]) + float(shift) + float(addend) * factor + numbers.a - numbers.b;\n"
     "}\n"
     "export_kernel(constants)\n"
     "kernel void sumOfGroup(device const uint* x [[buffer(0)]], device uint* sums [[buffer(1)]],\n"
     "                       threadgroup uint* shared [[threadgroup_memory(0)]], uint i [[thread_position_in_grid]],\n"
     "                       uint lane [[thread_position_in_threadgroup]], uint group "
     "[[threadgroup_position_in_grid]],\n"
     "                       uint width [[threads_per_threadgroup]]) {\n"
     "  shared[lane] = x[i];\n"
     "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "  if (lane == 0) {\n"
     "    uint sum = 0;\n"
     "    for (uint j = 0; j < width; ++j) sum += shared[j];\n"
     "    sums[group] = sum;\n"
     "  }\n"
     "}\n"
     "export_kernel(sumOfGroup)\n"
     "kernel void copies(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],\n"
     "                   uint3 i [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {\n"
     "  uint at = (i.z * size.y + i.y) * size.x + i.x;\n"
     "  y[at] = x[at];\n"
     "}\n"
     "export_kernel(copies)\n";

@interface DispatchTests : DeviceTestCase
@end

// The device retains compiled libraries until their last reference is released.
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
  NSError *error = nil;
  MNKKernelLibrary *library = [MNKKernelLibrary libraryWithText:kText
                                                          label:@"own kernels"
                                                         device:self.device
                                                          error:&error];
  XCTAssertNotNil(library, @"%@", error);
  _library = library;
}

- (MNKDispatch *)constantsOf:(MNKTensor *)x {
  const float numbers[2] = {100, 1};
  MNKDispatch *dispatch = [[MNKDispatch alloc] initWithFunction:@"constants" library:_library];
  [dispatch setTensor:x access:MNKAccessReadWrite atIndex:0];
  [dispatch setBytes:numbers length:sizeof numbers atIndex:2];
  [dispatch setConstantBool:YES atIndex:0];
  [dispatch setConstantInt32:-5 atIndex:1];
  [dispatch setConstantUInt32:4 atIndex:2];
  [dispatch setConstantFloat:0.25f atIndex:3];
  dispatch.grid = @[ @(x.count) ];
  return dispatch;
}

- (void)testConstantsAndInlineBytes {
  MNKTensor *x = [self floats:{1, 2, 3} shape:@[ @3 ]];
  MNKDispatch *dispatch = [self constantsOf:x];
  MNKCommandEncoder *step = [self.device commandEncoder];
  NSError *error = nil;
  XCTAssertTrue([step encodeDispatch:dispatch error:&error], @"%@", error);
  // Encoding copies a dispatch, so later changes do not affect it.
  [dispatch setConstantBool:NO atIndex:0];
  [dispatch setConstantInt32:5 atIndex:1];
  dispatch.kind = @"Other";
  XCTAssertTrue([step encodeDispatch:dispatch error:&error], @"%@", error);
  MNKCompletion *done = [step commitWithError:nil];
  XCTAssertTrue([done waitWithError:&error], @"%@", error);
  for (NSUInteger i = 0; i < 3; ++i) {
    const float once = 2 * static_cast<float>(i + 1) - 5 + 1 + 99;
    XCTAssertEqual([self floatOf:x at:i], once + 5 + 1 + 99);
  }
  XCTAssertEqual(done.summary.barriers, 1u);
  XCTAssertEqual([done.summary countsOfKind:@"Custom"].dispatches, 1u);
  XCTAssertEqual([done.summary countsOfKind:@"Other"].bytesWritten, 12u);
}

- (void)testThreadgroupsShareMemory {
  std::vector<uint32_t> numbers(96);
  for (uint32_t i = 0; i < 96; ++i) numbers[i] = i;
  MNKTensor *x = [MNKTensor tensorWithData:[NSData dataWithBytes:numbers.data() length:384]
                                     shape:@[ @96 ]
                               elementType:MNKElementTypeUInt32
                                    device:self.device
                                     error:nil];
  MNKTensor *sums = [self zeros:@[ @3 ] type:MNKElementTypeUInt32];
  MNKDispatch *dispatch = [[MNKDispatch alloc] initWithFunction:@"sumOfGroup" library:_library];
  [dispatch setTensor:x access:MNKAccessRead atIndex:0];
  [dispatch setTensor:sums access:MNKAccessWrite atIndex:1];
  [dispatch setThreadgroupMemoryLength:128 atIndex:0];
  dispatch.grid = @[ @3 ];
  dispatch.threadgroup = @[ @32 ];
  dispatch.gridIsThreadgroups = YES;
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step encodeDispatch:dispatch error:error];
  }];
  const uint32_t expected[] = {496, 1520, 2544};
  XCTAssertEqualObjects([sums dataWithError:nil], [NSData dataWithBytes:expected length:sizeof expected]);
}

- (void)testSlicesAndGridsOfThreeAxes {
  MNKTensor *x = [self numbers:@[ @3, @24 ] seed:1], *y = [self zeros:@[ @24 ]];
  MNKTensor *slice = [x sliceWithRange:NSMakeRange(1, 1) error:nil];
  MNKDispatch *dispatch = [[MNKDispatch alloc] initWithFunction:@"copies" library:_library];
  [dispatch setTensor:slice access:MNKAccessRead atIndex:0];
  [dispatch setTensor:y access:MNKAccessWrite atIndex:1];
  dispatch.grid = @[ @2, @3, @4 ];
  dispatch.threadgroup = @[ @2, @1, @2 ];
  [self step:^BOOL(MNKCommandEncoder *step, NSError **error) {
    return [step encodeDispatch:dispatch error:error];
  }];
  XCTAssertEqualObjects([y dataWithError:nil], [slice dataWithError:nil]);
}

- (void)testCopiesAreEqualAndIndependent {
  MNKTensor *x = [self zeros:@[ @3 ]];
  MNKDispatch *dispatch = [self constantsOf:x];
  [dispatch setThreadgroupMemoryLength:16 atIndex:0];
  const uint64_t other = 1;
  const std::vector<std::function<void(MNKDispatch *)>> changes{
      [=](MNKDispatch *d) { d.function = @"copies"; },
      [=](MNKDispatch *d) { d.library = nil; },
      [=](MNKDispatch *d) { d.kind = @"Kind"; },
      [=](MNKDispatch *d) { d.grid = @[ @4 ]; },
      [=](MNKDispatch *d) { d.threadgroup = @[ @4 ]; },
      [=](MNKDispatch *d) { d.gridIsThreadgroups = YES; },
      [=](MNKDispatch *d) { [d setTensor:[self zeros:@[ @3 ]] access:MNKAccessReadWrite atIndex:0]; },
      [=](MNKDispatch *d) { [d setTensor:x access:MNKAccessRead atIndex:0]; },
      [=](MNKDispatch *d) { [d setTensor:x access:MNKAccessReadWrite atIndex:1]; },
      [=](MNKDispatch *d) { [d setBytes:&other length:8 atIndex:2]; },
      [=](MNKDispatch *d) { [d setThreadgroupMemoryLength:32 atIndex:0]; },
      [=](MNKDispatch *d) { [d setConstantBool:NO atIndex:0]; },
      [=](MNKDispatch *d) { [d setConstantUInt32:1 atIndex:0]; },
      [=](MNKDispatch *d) { [d setConstantFloat:1 atIndex:7]; },
  };
  for (const auto &change : changes) {
    MNKDispatch *copy = [dispatch copy];
    XCTAssertEqualObjects(copy, dispatch);
    XCTAssertEqual(copy.hash, dispatch.hash);
    change(copy);
    XCTAssertNotEqualObjects(copy, dispatch, @"%@", copy);
  }
  XCTAssertEqualObjects([self constantsOf:x], ([self constantsOf:x]));
}

- (void)testInvalidDispatchesAreRefused {
  MNKTensor *x = [self zeros:@[ @3 ]];
  MNKCommandEncoder *step = [self.device commandEncoder];
  const std::vector<std::pair<std::function<void(MNKDispatch *)>, MNKErrorCode>> changes{
      {[=](MNKDispatch *d) { d.function = @"unheard"; }, MNKErrorShaderBuild},
      {[=](MNKDispatch *d) { d.function = absentObject(); }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.grid = absentObject(); }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.grid = @[]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) {
         d.grid = @[ @1, @1, @1, @1 ];
       },
       MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.grid = @[ @-1 ]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.grid = @[ @4294967296 ]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.grid = @[ (id) @"1" ]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.threadgroup = @[ @4096 ]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.threadgroup = @[ (id)[NSNull null] ]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { d.gridIsThreadgroups = YES; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setTensor:x access:static_cast<MNKAccess>(3) atIndex:0]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setTensor:x access:MNKAccessRead atIndex:NSUIntegerMax]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setBytes:"" length:0 atIndex:2]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setBytes:"1" length:1 atIndex:NSUInteger{1} << 32]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setThreadgroupMemoryLength:NSUIntegerMax atIndex:0]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setThreadgroupMemoryLength:16 atIndex:NSUIntegerMax]; }, MNKErrorInvalidArgument},
      {[=](MNKDispatch *d) { [d setConstantBool:YES atIndex:NSUIntegerMax]; }, MNKErrorInvalidArgument},
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    MNKDispatch *dispatch = [self constantsOf:x];
    changes[i].first(dispatch);
    NSError *error = nil;
    XCTAssertFalse([step encodeDispatch:dispatch error:&error], @"change %zu", i);
    XCTAssertEqualObjects(error.domain, MNKErrorDomain);
    XCTAssertEqual(error.code, changes[i].second, @"change %zu: %@", i, error.localizedDescription);
    XCTAssertFalse([step encodeDispatch:dispatch error:nil]);
  }
  // Setting nil removes the binding, so the kernel lacks an argument.
  MNKDispatch *bare = [self constantsOf:x];
  [bare setTensor:nil access:MNKAccessRead atIndex:0];
  XCTAssertFalse([step encodeDispatch:bare error:nil]);
  bare = [self constantsOf:x];
  [bare setBytes:nullptr length:8 atIndex:2];
  XCTAssertFalse([step encodeDispatch:bare error:nil]);
  // Tensors and bytes share indices: the last one set counts.
  const uint64_t number = 1;
  bare = [self constantsOf:x];
  [bare setBytes:&number length:8 atIndex:0];
  [bare setTensor:x access:MNKAccessReadWrite atIndex:0];
  XCTAssertEqualObjects(bare, [self constantsOf:x]);
  NSMutableData *long4K = [NSMutableData dataWithLength:4097];
  [bare setBytes:long4K.bytes length:long4K.length atIndex:2];
  NSError *error = nil;
  XCTAssertFalse([step encodeDispatch:bare error:&error]);
  XCTAssertNotNil(error);
  XCTAssertEqual([step commitWithError:nil].summary.total.dispatches, 0u);
}

- (void)testLibraries {
  XCTAssertEqualObjects([_library.functionNames sortedArrayUsingSelector:@selector(compare:)],
                        (@[ @"constants", @"copies", @"sumOfGroup" ]));
  XCTAssertEqual(_library.origin, MNKLibraryOriginGivenText);
  XCTAssertNil(_library.originURL);
  NSError *error = nil;
  MNKKernelLibrary *shipped = [MNKKernelLibrary shippedLibraryForDevice:self.device error:&error];
  XCTAssertTrue([[shipped.functionNames componentsJoinedByString:@" "] rangeOfString:@"kvCache"].length > 0);
  XCTAssertNotEqual(shipped.origin, MNKLibraryOriginGivenText);
  XCTAssertNil([MNKKernelLibrary libraryWithText:@"kernel void broken() { undeclared = 1; }"
                                           label:@"broken"
                                          device:self.device
                                           error:&error]);
  XCTAssertEqual(error.code, MNKErrorShaderBuild);
  XCTAssertTrue([error.localizedDescription rangeOfString:@"undeclared"].length > 0, @"%@", error);
  NSURL *missing = [NSURL fileURLWithPath:@"/no/such/file.metal"];
  XCTAssertNil([MNKKernelLibrary libraryWithContentsOfURL:missing device:self.device error:&error]);
  XCTAssertEqual(error.code, MNKErrorLibraryNotFound);
  XCTAssertNil([MNKKernelLibrary libraryWithContentsOfURL:absentObject() device:self.device error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"KernelLibrary", @"names no file"));
  XCTAssertNil([MNKKernelLibrary libraryWithText:@"" label:@"" device:absentObject() error:&error]);
  XCTAssertNil([MNKKernelLibrary libraryWithContentsOfURL:missing device:absentObject() error:nil]);
  XCTAssertNil([MNKKernelLibrary shippedLibraryForDevice:absentObject() error:&error]);
  XCTAssertNil(wrongIn(error, MNKErrorInvalidArgument, @"MNKDevice", @"nil was passed for the device"));
}

- (void)testAFileIsReadAgainAfterClearing {
  NSString *name = [[[NSUUID UUID] UUIDString] stringByAppendingString:@".metal"];
  NSURL *url = [NSURL fileURLWithPath:[NSTemporaryDirectory() stringByAppendingPathComponent:name]];
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
  XCTAssertEqualObjects(names(@"second"), @[ @"first" ]);
  [self.device clearKernels];
  XCTAssertEqualObjects(names(@"second"), @[ @"second" ]);
  [[NSFileManager defaultManager] removeItemAtPath:(NSString *_Nonnull)url.path error:nil];
}

- (void)testLibrariesWithTheSameKernelsAreEqual {
  NSError *error = nil;
  MNKKernelLibrary *again = [MNKKernelLibrary libraryWithText:kText
                                                        label:@"own kernels"
                                                       device:self.device
                                                        error:&error];
  XCTAssertEqualObjects(again, _library, @"%@", error);
  XCTAssertEqual(again.hash, _library.hash);
  XCTAssertNotEqualObjects([MNKKernelLibrary shippedLibraryForDevice:self.device error:&error], _library);
  XCTAssertNotEqualObjects(_library, @"own kernels");
}

@end
