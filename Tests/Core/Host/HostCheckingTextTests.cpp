// Full checking of kernels compiled from text: faults that would otherwise end the process, faults in vectors and
// conversions, and correct kernels that look suspicious.
#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

constexpr char kText[] = R"(
struct Padded {
  uchar tag;
  float value;
};
constant float kTable[4] = {1.0f, 2.0f, 3.0f, 4.0f};
pipeline_constant(bool, hasExtra, 0);

#define KERNEL(name) kernel void name(device uint* data [[buffer(0)]], device uint* more [[buffer(1)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]])

KERNEL(pointerPastOwnArray) {
  float own[4] = {0.0f, 1.0f, 2.0f, 3.0f};
  thread float* place = own;
  place[data[0] + 7] = 5.0f;
  data[i] = uint(own[i % 4]);
}
export_kernel(pointerPastOwnArray)

KERNEL(elementPastVector) {
  float4 vector = float4(1.0f);
  vector[data[0] + 5] = 2.0f;
  data[i] = uint(vector.x);
}
export_kernel(elementPastVector)

KERNEL(indexPastTable) {
  constant float* table = kTable;
  more[i] = uint(table[data[i] + 100000000]);
}
export_kernel(indexPastTable)

kernel void absentBuffer(device uint* data [[buffer(0)]], device uint* extra [[buffer(3), function_constant(hasExtra)]], uint i [[thread_position_in_grid]]) {
  data[i] = extra[i];
}
export_kernel(absentBuffer)

KERNEL(dividesByZero) {
  more[i] = 7 / data[i];
}
export_kernel(dividesByZero)

KERNEL(dividesVectorByZero) {
  const uint2 quotient = uint2(7, 9) / uint2(data[i], 1u);
  more[i] = quotient.x + quotient.y;
}
export_kernel(dividesVectorByZero)

uint depth(uint n) { return n == 0 ? 0 : 1 + depth(n + 1) * depth(n - 1); }
KERNEL(recursion) {
  more[i] = depth(data[i] + 1);
}
export_kernel(recursion)

KERNEL(endless) {
  while (data[0] == 0) {
    more[i] = i;
  }
}
export_kernel(endless)

KERNEL(fillsTheMargin) {
  for (uint k = 0; k < 1000000; ++k) {
    more[(k + 1) * 1024 + i] = k;
  }
}
export_kernel(fillsTheMargin)

KERNEL(vectorOverflow) {
  const uint2 index = uint2(i + 1) * uint2(data[0] + 0x80000000u, 1u);
  more[(index.x + index.y) % 32] = 1;
}
export_kernel(vectorOverflow)

KERNEL(truncates) {
  const ulong offset = ulong(data[0]) + (1ul << 32);
  const uint index = offset;
  more[i] = index;
}
export_kernel(truncates)

KERNEL(shuffleBeyond) {
  more[i] = simd_shuffle(i, ushort(lane + 8));
}
export_kernel(shuffleBeyond)

KERNEL(readsItsOutput) {
  more[i] = more[i] + 1;
}
export_kernel(readsItsOutput)

KERNEL(misalignedAtomic) {
  device atomic_uint* count = reinterpret_cast<device atomic_uint*>(reinterpret_cast<device uchar*>(data) + 1);
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  more[i] = 0;
}
export_kernel(misalignedAtomic)

KERNEL(vectorSumOverflow) {
  const uint2 sum = uint2(0xffffffffu, 0u) + uint2(data[0] + 1u, 0u);
  more[i] = sum.x;
}
export_kernel(vectorSumOverflow)

KERNEL(subtractionOverflow) {
  const int lowest = int(data[0]) - 0x7fffffff;
  more[i] = uint(lowest - 2 - int(i));
}
export_kernel(subtractionOverflow)

KERNEL(shiftsTooFar) {
  more[i] = 1u << (data[0] + 32u);
}
export_kernel(shiftsTooFar)

KERNEL(quadShuffleBeyond) {
  more[i] = quad_shuffle(i, ushort(data[0] + 4u));
}
export_kernel(quadShuffleBeyond)

struct Wide {
  uint words[24];
};
KERNEL(copiesStructurePastBuffer) {
  device const Wide* from = reinterpret_cast<device const Wide*>(data);
  const Wide wide = from[1];
  more[i] = wide.words[i % 24];
}
export_kernel(copiesStructurePastBuffer)

KERNEL(padding) {
  threadgroup_array(Padded, records, 32);
  threadgroup_array(float3, triples, 32);
  records[lane].tag = 1;
  records[lane].value = 2.0f;
  triples[lane].x = triples[lane].y = triples[lane].z = 3.0f;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const Padded record = records[lane ^ 1];
  const float3 triple = triples[lane ^ 1];
  more[i] = uint(record.value + triple.z) + record.tag;
}
export_kernel(padding)

KERNEL(atomicLoads) {
  device atomic_uint* count = reinterpret_cast<device atomic_uint*>(data);
  more[i] = atomic_load_explicit(count, memory_order_relaxed) + data[0];
}
export_kernel(atomicLoads)

// Upper lanes take undefined values and do not use them.
KERNEL(treeOfPartialSimdgroup) {
  uint sum = i;
  for (ushort distance = 16; distance > 0; distance /= 2) {
    const uint other = simd_shuffle_down(sum, distance);
    sum = lane < distance ? sum + (lane + distance < 20 ? other : 0) : sum;
  }
  more[i] = sum;
}
export_kernel(treeOfPartialSimdgroup)

KERNEL(writesThenReadsItsOutput) {
  more[i] = i;
  more[i] = more[i] + 1;
}
export_kernel(writesThenReadsItsOutput)
)";

// Declares buffer 0 as read and buffer 1 as written; `writesFirst` also declares buffer 0 as written.
Result<void> runChecked(const std::string& function, uint32_t threads = 32, bool writesFirst = false) {
  // Never destroyed: at exit, a device would wait for threads that the process has already stopped.
  static const auto& device = *new auto(hostDevice({.checking = HostOptions::Checking::full}));
  const auto library =
      REQUIRE(device->registry().library({.kind = LibrarySource::Kind::text, .value = kText, .label = "two words"}));
  std::vector<uint32_t> data(32), more(32);
  const Grid grid{Grid::Unit::threads, {threads, 1, 1}, {threads, 1, 1}};
  auto ready = makeReady(
      device,
      {.function = function, .grid = grid, .buffers = {bytesOf(data), bytesOf(more)}, .constants = {{0, false}}},
      library);
  if (!ready) return std::move(ready).error();
  if (!writesFirst) ready->dispatch.buffers[0].writes.clear();
  ready->dispatch.buffers[1].reads.clear();
  return submit(device, {std::move(*ready)});
}

void expectText(const std::string& function, std::string_view text, bool writesFirst = false) {
  const Context context(function);
  EXPECT_ERROR(runChecked(function, 32, writesFirst), {.code = ErrorCode::deviceFault, .what = function, .got = text});
}

}  // namespace

#if !__has_feature(thread_sanitizer)  // a trap would end the process
TEST(HostCheckingText, StopsKernelsThatWouldCrashTheProcess) {
  // These words are in the texts of all compilers: those before LLVM 20 trap where later ones call back.
  expectText("pointerPastOwnArray", "outside of its array", true);
  expectText("elementPastVector", "outside of its array", true);
  expectText("indexPastTable", "outside of its array");
  expectText("absentBuffer", "a null pointer to", true);
  expectText("dividesByZero", "by zero");
  expectText("dividesVectorByZero", "an element of a vector is divided by zero");
  expectText("recursion", "a stack that overflowed");
}
#endif

TEST(HostCheckingText, StopsEndlessKernels) {
  expectText("endless", "has not ended after 2^26 accesses");
  expectText("fillsTheMargin", "writes 4 bytes outside of buffer 1 + 4096");
}

TEST(HostCheckingText, FindsFaultsInVectorsAndConversions) {
  expectText("vectorOverflow", "a multiplication of vectors overflows");
  expectText("truncates", "does not fit into");
  expectText("shuffleBeyond", "takes the value of lane 32, which does not take part");
  expectText("misalignedAtomic", "an atomic object is misaligned", true);
  expectText("vectorSumOverflow", "an addition of vectors overflows");
  expectText("subtractionOverflow", "a subtraction overflows 'int'");
  expectText("shiftsTooFar", "by more bits than it has");
  expectText("quadShuffleBeyond", "takes the value of lane 32, which does not take part");
  expectText("copiesStructurePastBuffer", "outside of buffer 0 + ");
}

TEST(HostCheckingText, FindsAnOutputReadBeforeItIsWritten) {
  expectText("readsItsOutput", "reads buffer 1 + 0, which is uninitialized");
  EXPECT(runChecked("writesThenReadsItsOutput"));
}

TEST(HostCheckingText, ReportsLinesForLabelsWithSpaces) {
  const auto outcome = runChecked("readsItsOutput");
  EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .got = "two words:"});
}

TEST(HostCheckingText, FindsNothingInCorrectKernels) {
  for (const char* function : {"padding", "atomicLoads"}) {
    const auto outcome = runChecked(function);
    if (!outcome) fail(__FILE__, __LINE__, fmt::format("{}: {}", function, outcome.error().message()));
  }
  const auto outcome = runChecked("treeOfPartialSimdgroup", 20);
  if (!outcome) fail(__FILE__, __LINE__, outcome.error().message());
}
