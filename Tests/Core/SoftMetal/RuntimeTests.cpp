// Messages: to objects, to nil, to what is not there.
#include <algorithm>

#include "SoftMetal/SoftMetalFixture.hpp"
#include "SoftObject.hpp"

using namespace mnk::test;

namespace {

SEL selector(const char* name) {
  return sel_registerName(name);
}

// Has arguments in every register that can hold one, and on the stack.
struct Probe : softmetal::Object {
  double sum(int a, int b, int c, int d, double x0, double x1, double x2, double x3, double x4, double x5, double x6,
             double x7, int e, int f, int g, double x8) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + x0 + 10 * x1 + 100 * x2 + 1000 * x3 + 10000 * x4 +
           100000 * x5 + 1000000 * x6 + 10000000 * x7 + 100000000 * x8;
  }
  MTL::Size size(NS::UInteger width, double height, NS::UInteger depth) {
    return MTL::Size(width, static_cast<NS::UInteger>(height), depth);
  }
};

// Asked during the lookup; leaves none of those registers as it was.
bool spoilRegisters() {
#if defined(__x86_64__)
  asm volatile(
      "mov $-1, %%rax; mov %%rax, %%rdi; mov %%rax, %%rsi; mov %%rax, %%rdx; mov %%rax, %%rcx; mov %%rax, %%r8;"
      "mov %%rax, %%r9; movq %%rax, %%xmm0; movq %%rax, %%xmm1; movq %%rax, %%xmm2; movq %%rax, %%xmm3;"
      "movq %%rax, %%xmm4; movq %%rax, %%xmm5; movq %%rax, %%xmm6; movq %%rax, %%xmm7" ::
          : "rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
            "xmm7");
#elif defined(__aarch64__)
  asm volatile(
      "mov x0, #-1; mov x1, x0; mov x2, x0; mov x3, x0; mov x4, x0; mov x5, x0; mov x6, x0; mov x7, x0; mov x8, x0;"
      "fmov d0, x0; fmov d1, x0; fmov d2, x0; fmov d3, x0; fmov d4, x0; fmov d5, x0; fmov d6, x0; fmov d7, x0" ::
          : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7");
#endif
  return true;
}

bool contains(const std::vector<std::string>& list, const char* text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

TEST(SoftMetalRuntime, KeepsArgumentsAndReturnsStructs) {
  const SoftMetalFixture fixture;
  EXPECT(selector("commit") == selector(std::string("commit").c_str()) && selector("commit") != selector("enqueue"));
  EXPECT(objc_lookUpClass("NSString") == objc_lookUpClass("NSString"));
  softmetal::machine().devices[0].maxThreadsPerThreadgroup = {11, 22, 33};
  const MTL::Size most = NS::TransferPtr(MTL::CreateSystemDefaultDevice())->maxThreadsPerThreadgroup();
  EXPECT(most.width == 11 && most.height == 22 && most.depth == 33);
  EXPECT_EQ(NS::Number::number(2.5)->doubleValue(), 2.5);
  EXPECT_EQ(NS::Number::number(1.5f)->floatValue(), 1.5f);
  softmetal::define<Probe>("SoftMetalProbe")
      .withAlloc()
      .on<&Probe::sum>("sum:", spoilRegisters)
      .on<&Probe::size>("size:", spoilRegisters);
  void* const probe = Sender::sendMessage<void*>(objc_lookUpClass("SoftMetalProbe"), selector("alloc"));
  EXPECT_EQ(Sender::sendMessage<double>(probe, selector("sum:"), 1, 2, 3, 4, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 5,
                                        6, 7, 9.0),
            987654321.0 + 1 + 4 + 9 + 16 + 25 + 36 + 49);
  const auto size = Sender::sendMessage<MTL::Size>(probe, selector("size:"), NS::UInteger(3), 4.0, NS::UInteger(5));
  EXPECT(size.width == 3 && size.height == 4 && size.depth == 5);
  Sender::sendMessage<void>(probe, selector("release"));
}

TEST(SoftMetalRuntime, AnswersNilWithZeroAndReportsStructsOfIt) {
  const SoftMetalFixture fixture;
  EXPECT_EQ(Sender::sendMessage<double>(nullptr, selector("GPUStartTime")), 0.0);
  EXPECT_EQ(Sender::sendMessage<NS::UInteger>(nullptr, selector("length")), NS::UInteger(0));
  EXPECT(Sender::sendMessage<void*>(nullptr, selector("label")) == nullptr);
  Sender::sendMessage<void>(nullptr, selector("commit"));
  const auto size = Sender::sendMessage<MTL::Size>(nullptr, selector("maxThreadsPerThreadgroup"));
  EXPECT_EQ(NS::UInteger(size.width + size.height + size.depth), NS::UInteger(0));
}

TEST(SoftMetalRuntime, ReportsUnknownSelectorsAndListsThem) {
  const SoftMetalFixture fixture;
  EXPECT(Sender::sendMessage<void*>(fixture.device(), selector("foo:"), 3) == nullptr);
  EXPECT_EQ(Sender::sendMessage<double>(fixture.device(), selector("bar")), 0.0);
  EXPECT(Sender::sendMessage<void*>(objc_lookUpClass("MTLHeapDescriptor"), selector("alloc")) == nullptr);
  const auto sent = softmetal::selectorsSent(), implemented = softmetal::selectorsImplemented();
  EXPECT(contains(sent, "-[MTLDevice foo:]") && !contains(implemented, "-[MTLDevice foo:]"));
  EXPECT(contains(sent, "-[MTLDevice newCommandQueue]") && !contains(sent, "-[NSDictionary copy]"));
  EXPECT(contains(implemented, "-[MTLDevice newCommandQueueWithMaxCommandBufferCount:]"));
  EXPECT(contains(implemented, "+[NSString stringWithCString:encoding:]"));
  EXPECT(std::is_sorted(sent.begin(), sent.end()));
}

TEST(SoftMetalRuntime, KnowsWhatItRespondsTo) {
  const SoftMetalFixture fixture;
  const auto responds = [](const void* object, const char* name) {
    return Sender::respondsToSelector(object, selector(name));
  };
  EXPECT(responds(fixture.device(), "newCommandQueue") && !responds(fixture.device(), "newHeapWithDescriptor:"));
  EXPECT(responds(fixture.queue(), "retain"));
  Class const itsClass = objc_lookUpClass("MTLCompileOptions");
  EXPECT(responds(itsClass, "alloc") && !responds(itsClass, "setFastMathEnabled:"));
  EXPECT(Sender::sendMessage<bool>(itsClass, selector("instancesRespondToSelector:"), selector("setFastMathEnabled:")));
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  EXPECT(!responds(options.get(), "setMathMode:"));
  softmetal::machine().hasMathMode = true;
  EXPECT(responds(options.get(), "setMathMode:"));
}
