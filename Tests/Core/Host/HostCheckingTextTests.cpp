// Full checking of kernels compiled from text: faults that would otherwise end the process, faults in vectors and
// conversions, and correct kernels that look suspicious.
#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

struct TextKernel {
  const char* name;
  const char* body;
  std::string_view found = {};  // empty: the kernel is correct
  bool writesData = false;      // the dispatch declares writes of buffer 0, not only reads
};

// These words are in the texts of all compilers: those before LLVM 20 trap where later ones call back.
constexpr TextKernel kTraps[] = {
    {"pointerPastOwnArray",
     "float own[4] = {0.0f, 1.0f, 2.0f, 3.0f};\n"
     "thread float* place = own;\n"
     "place[data[0] + 7] = 5.0f;\n"
     "data[i] = uint(own[i % 4]);",
     "outside of its array", true},
    {"elementPastVector",
     "float4 vector = float4(1.0f);\n"
     "vector[data[0] + 5] = 2.0f;\n"
     "data[i] = uint(vector.x);",
     "outside of its array", true},
    {"indexPastTable",
     "constant float* table = kTable;\n"
     "more[i] = uint(table[data[i] + 100000000]);",
     "outside of its array"},
    {"absentBuffer", "data[i] = extra[i];", "a null pointer to", true},
    {"dividesByZero", "more[i] = 7 / data[i];", "by zero"},
    {"dividesVectorByZero",
     "const uint2 quotient = uint2(7, 9) / uint2(data[i], 1u);\n"
     "more[i] = quotient.x + quotient.y;",
     "an element of a vector is divided by zero"},
    {"recursion", "more[i] = depth(data[i] + 1);", "a stack that overflowed"},
};

constexpr TextKernel kFaults[] = {
    {"endless", "while (data[0] == 0) more[i] = i;", "has not ended after 2^26 accesses"},
    {"fillsTheMargin", "for (uint k = 0; k < 1000000; ++k) more[(k + 1) * 1024 + i] = k;",
     "writes 4 bytes outside of buffer 1 + 4096"},
    {"vectorOverflow",
     "const uint2 index = uint2(i + 1) * uint2(data[0] + 0x80000000u, 1u);\n"
     "more[(index.x + index.y) % 32] = 1;",
     "a multiplication of vectors overflows"},
    {"truncates",
     "const ulong offset = ulong(data[0]) + (1ul << 32);\n"
     "const uint index = offset;\n"
     "more[i] = index;",
     "does not fit into"},
    {"shuffleBeyond", "more[i] = simd_shuffle(i, ushort(lane + 8));",
     "takes the value of lane 32, which does not take part"},
    {"readsItsOutput", "more[i] = more[i] + 1;", "reads buffer 1 + 0, which is uninitialized"},
    {"misalignedAtomic",
     "device uchar* bytes = reinterpret_cast<device uchar*>(data) + 1;\n"
     "atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(bytes), 1u, memory_order_relaxed);\n"
     "more[i] = 0;",
     "an atomic object is misaligned", true},
    {"vectorSumOverflow",
     "const uint2 sum = uint2(0xffffffffu, 0u) + uint2(data[0] + 1u, 0u);\n"
     "more[i] = sum.x;",
     "an addition of vectors overflows"},
    {"subtractionOverflow",
     "const int lowest = int(data[0]) - 0x7fffffff;\n"
     "more[i] = uint(lowest - 2 - int(i));",
     "a subtraction overflows 'int'"},
    {"shiftsTooFar", "more[i] = 1u << (data[0] + 32u);", "by more bits than it has"},
    {"quadShuffleBeyond", "more[i] = quad_shuffle(i, ushort(data[0] + 4u));",
     "takes the value of lane 32, which does not take part"},
    {"copiesStructurePastBuffer",
     "const Wide wide = reinterpret_cast<device const Wide*>(data)[1];\n"
     "more[i] = wide.words[i % 24];",
     "outside of buffer 0 + "},
    {"padding",
     "threadgroup_array(Padded, records, 32);\n"
     "threadgroup_array(float3, triples, 32);\n"
     "records[lane].tag = 1;\n"
     "records[lane].value = 2.0f;\n"
     "triples[lane].x = triples[lane].y = triples[lane].z = 3.0f;\n"
     "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
     "const Padded record = records[lane ^ 1];\n"
     "const float3 triple = triples[lane ^ 1];\n"
     "more[i] = uint(record.value + triple.z) + record.tag;"},
    {"atomicLoads",
     "device atomic_uint* count = reinterpret_cast<device atomic_uint*>(data);\n"
     "more[i] = atomic_load_explicit(count, memory_order_relaxed) + data[0];"},
    {"writesThenReadsItsOutput",
     "more[i] = i;\n"
     "more[i] = more[i] + 1;"},
};

// Upper lanes of 20 take undefined values and do not use them.
constexpr TextKernel kPartialTree = {"treeOfPartialSimdgroup",
                                     "uint sum = i;\n"
                                     "for (ushort distance = 16; distance > 0; distance /= 2) {\n"
                                     "  const uint other = simd_shuffle_down(sum, distance);\n"
                                     "  sum = lane < distance ? sum + (lane + distance < 20 ? other : 0) : sum;\n"
                                     "}\n"
                                     "more[i] = sum;"};

std::string textOfKernels() {
  std::string text = R"(
struct Padded {
  uchar tag;
  float value;
};
struct Wide {
  uint words[24];
};
constant float kTable[4] = {1.0f, 2.0f, 3.0f, 4.0f};
pipeline_constant(bool, hasExtra, 0);
uint depth(uint n) { return n == 0 ? 0 : 1 + depth(n + 1) * depth(n - 1); }
)";
  const auto add = [&](const TextKernel& kernel) {
    text += fmt::format(R"(
kernel void {0}(device uint* data [[buffer(0)]], device uint* more [[buffer(1)]],
    device uint* extra [[buffer(3), function_constant(hasExtra)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {{
{1}
}}
export_kernel({0})
)",
                        kernel.name, kernel.body);
  };
  for (const TextKernel& kernel : kTraps) add(kernel);
  for (const TextKernel& kernel : kFaults) add(kernel);
  add(kPartialTree);
  return text;
}

void expectFound(const TextKernel& kernel, uint32_t threads = 32) {
  const Context context(kernel.name);
  // Never destroyed: at exit, a device would wait for threads that the process has already stopped.
  static const auto& device = *new auto(hostDevice({.checking = HostOptions::Checking::full}));
  static const auto& library = *new auto(REQUIRE(
      device->registry().library({.kind = LibrarySource::Kind::text, .value = textOfKernels(), .label = "text"})));
  std::vector<uint32_t> data(32), more(32);
  auto ready = REQUIRE(makeReady(device,
                                 {.function = kernel.name,
                                  .grid = mnk::test::threads(threads),
                                  .buffers = {bytesOf(data), bytesOf(more)},
                                  .constants = {{0, false}}},
                                 library));
  if (!kernel.writesData) ready.dispatch.buffers[0].writes.clear();
  ready.dispatch.buffers[1].reads.clear();
  const auto outcome = submit(device, {std::move(ready)});
  if (kernel.found.empty()) {
    REQUIRE(outcome);
  } else {
    EXPECT_ERROR(outcome, {.code = ErrorCode::deviceFault, .what = kernel.name, .got = kernel.found});
  }
}

}  // namespace

#if !__has_feature(thread_sanitizer)  // a trap would end the process
TEST(HostCheckingText, StopsKernelsThatWouldCrashTheProcess) {
  for (const TextKernel& kernel : kTraps) expectFound(kernel);
}
#endif

TEST(HostCheckingText, FindsFaultsAndAcceptsCorrectKernels) {
  for (const TextKernel& kernel : kFaults) expectFound(kernel);
  expectFound(kPartialTree, 20);
}
