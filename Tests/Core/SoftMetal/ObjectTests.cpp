// Messages, reference counts, pools, strings, arrays, buffers, functions and pipelines, and what is reported when they
// are misused. MetalLibrary and MetalPipeline have the rest of libraries.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"
#include "SoftObject.hpp"

using namespace mnk::test;

namespace {

// Calls a function on a thread of its own.
template <typename Body>
void onThread(const Body& body) {
  std::thread(body).join();
}

}  // namespace

TEST(SoftMetalObjects, ReportLeaksAndUseAfterFree) {
  const SoftMetalFixture fixture;
  const auto before = softmetal::mark();
  MTL::CommandQueue* const leaked = fixture.device()->newCommandQueue();
  {
    const Pool pool;
    leaked->setLabel(text("forgotten"));
  }
  EXPECT_EQ(softmetal::reportLeaks(before), size_t(1));
  leaked->release();
  MTL::Buffer* const buffer = fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared);
  buffer->setLabel(text("keys"));
  buffer->release();
  EXPECT_EQ(buffer->length(), NS::UInteger(0));
  buffer->release();
}

// Deallocated objects are kept while a pool has them.
TEST(SoftMetalObjects, ReportAnOverReleaseInAPool) {
  const SoftMetalFixture fixture;
  for (const bool isReset : {true, false}) {  // a reset forgets violations
    {
      const Pool pool;
      fixture.commandBuffer("twice")->release();
      if (isReset) softmetal::reset();
    }
  }
}

// What Metal does inside may autorelease, so each of its calls counts, and so does the release that deallocates.
TEST(SoftMetalObjects, ReportAMissingPool) {
  const SoftMetalFixture fixture;
  NS::String* leaked = nullptr;
  onThread([&] { leaked = text("lonely"); });
  leaked->release();
  auto buffer = fixture.buffer("lonely", 16);
  onThread([&] { buffer->length(); });
  onThread([&] {
    buffer->retain();
    buffer->release();
    const Pool pool;
    text("at home");
  });
  onThread([&] { buffer.reset(); });
}

TEST(SoftMetalObjects, ReportPoolsOutOfOrder) {
  const SoftMetalFixture fixture;
  NS::AutoreleasePool* const outer = NS::AutoreleasePool::alloc()->init();
  NS::AutoreleasePool* const inner = NS::AutoreleasePool::alloc()->init();
  outer->release();
  inner->release();
  NS::AutoreleasePool* const ours = NS::AutoreleasePool::alloc()->init();
  ours->retain();
  ours->release();
  onThread([] {
    NS::AutoreleasePool* pool = NS::AutoreleasePool::alloc()->init();
    onThread([&] { pool->release(); });
  });
}

TEST(SoftMetalRuntime, ReportsStructsOfNilAndUnknownSelectors) {
  const SoftMetalFixture fixture;
  Sender::sendMessage<MTL::Size>(nullptr, sel_registerName("maxThreadsPerThreadgroup"));
  EXPECT(Sender::sendMessage<void*>(fixture.device(), sel_registerName("foo:"), 3) == nullptr);
  EXPECT(Sender::sendMessage<void*>(objc_lookUpClass("MTLHeapDescriptor"), sel_registerName("alloc")) == nullptr);
}

TEST(SoftMetalFoundation, ReportsMisuseOfStringsAndArrays) {
  const SoftMetalFixture fixture;
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80"}) EXPECT(text(bad) == nullptr);  // the last: half a pair
  EXPECT(text(nullptr) == nullptr);
  EXPECT(NS::String::string("x", NS::UTF16StringEncoding) == nullptr);
  EXPECT(fixture.device()->counterSets()->object(1) == nullptr);
}

TEST(SoftMetalBuffers, HaveRules) {
  const SoftMetalFixture fixture;
  MTL::Device* const device = fixture.device();
  auto buffer = fixture.buffer("new", 100);
  auto* bytes = static_cast<unsigned char*>(buffer->contents());
  for (size_t i = 0; i < 100; ++i) EXPECT(bytes[i] != 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, uintptr_t(0));
  bytes[100] = 1;
  buffer.reset();
  const auto hidden = NS::TransferPtr(device->newBuffer(64, MTL::ResourceStorageModePrivate));
  EXPECT(hidden->contents() == nullptr);
  constexpr auto kShared = MTL::ResourceStorageModeShared;
  EXPECT(device->newBuffer(static_cast<const void*>(nullptr), 16, kShared) == nullptr);
  EXPECT(device->newBuffer(NS::UInteger(0), kShared) == nullptr);
  EXPECT(device->newBuffer(device->maxBufferLength() + 1, kShared) == nullptr);
}

TEST(SoftMetalBuffers, WrapPagesAlone) {
  const SoftMetalFixture fixture;
  const auto page = static_cast<size_t>(getpagesize());
  const std::unique_ptr<void, decltype(&free)> memory(aligned_alloc(page, 2 * page), free);
  const auto wrap = [&](size_t offset, size_t length, MTL::ResourceOptions options) {
    return fixture.device()->newBuffer(static_cast<char*>(memory.get()) + offset, length, options, nullptr);
  };
  EXPECT(!wrap(64, page, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected the start of a page");
  EXPECT(!wrap(0, page + 1, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected whole pages");
  EXPECT(!wrap(0, page, MTL::ResourceStorageModePrivate));
}

TEST(SoftMetalLibrary, RefusesFunctionsAndPipelines) {
  const SoftMetalFixture fixture;
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const float real = 1;
  values->setConstantValue(&real, MTL::DataTypeHalf, NS::UInteger(0));
  MTL::Device* const device = fixture.device();
  NS::Error* error = nullptr;
  EXPECT(!device->newComputePipelineState(static_cast<MTL::Function*>(nullptr), &error));
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  EXPECT(!device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  const auto copy = fixture.function("copy16");
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(!other->newComputePipelineState(copy.get(), &error));
}

TEST(SoftMetalText, RefusesAReferencedConstantWithoutAValue) {
  const SoftMetalFixture fixture;
  const char* const source = R"(
#define TWICE(x) (x + x * factor)
pipeline_constant(bool, isOn, 0);
pipeline_constant(uint, added, 1);
pipeline_constant(uint, factor, 2);
pipeline_constant(uint, asked, 3);
pipeline_constant(uint, unused, 4);
inline uint more(uint x) { return isOn ? x + added : TWICE(x); }
struct Sum {
  uint of(uint x) { return more(x) + (is_function_constant_defined(asked) ? 1u : 0u); }
};
kernel void uses(device uint* out [[buffer(0)]]) { out[0] = Sum().of(1); }
export_kernel(uses)
kernel void does_not(device uint* out [[buffer(0)]]) { out[0] = 1; }
export_kernel(does_not)
)";
  NS::Error* error = nullptr;
  const auto library = NS::TransferPtr(fixture.device()->newLibrary(text(source), nullptr, &error));
  const auto values = NS::TransferPtr(MTL::FunctionConstantValues::alloc()->init());
  const auto refusal = [&](const char* function) {
    error = nullptr;
    NS::TransferPtr(library->newFunction(text(function), values.get(), &error));
    return error ? utf8(error->localizedDescription()) : "no error";
  };
  EXPECT_EQ(refusal("does_not"), "no error");
  const bool isOn = true;
  const uint32_t number = 7;
  values->setConstantValue(&isOn, MTL::DataTypeBool, NS::UInteger(0));
  EXPECT(refusal("uses").ends_with("uses cannot be specialized: constant added has no value"));
  values->setConstantValue(&number, MTL::DataTypeUInt, NS::UInteger(1));
  EXPECT(refusal("uses").ends_with("constant factor has no value"));  // although it is not read
  for (const NS::UInteger index : {2, 30}) {                          // there is no 30
    values->setConstantValue(&number, MTL::DataTypeUInt, index);
    EXPECT_EQ(refusal("uses"), "no error");
  }
}
