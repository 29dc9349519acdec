// Messages: to objects, to nil, to what is not there.
#include <algorithm>

#include "SoftMetal/Rig.hpp"

using namespace mnk::test;

namespace {

struct Sender : NS::Object {
  using NS::Object::respondsToSelector;
  using NS::Object::sendMessage;
};

SEL selector(const char* name) {
  return sel_registerName(name);
}

bool contains(const std::vector<std::string>& list, const char* text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

TEST(SoftMetalRuntime, InternsSelectorsAndClasses) {
  EXPECT(selector("commit") == selector(std::string("commit").c_str()));
  EXPECT(selector("commit") != selector("enqueue"));
  EXPECT(objc_lookUpClass("NSString") == objc_lookUpClass("NSString"));
}

TEST(SoftMetalRuntime, ReturnsStructsAndDoubles) {
  const SoftRig rig;
  softmetal::machine().devices[0].maxThreadsPerThreadgroup = {11, 22, 33};
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  const MTL::Size size = other->maxThreadsPerThreadgroup();
  EXPECT_EQ(NS::UInteger(size.width), NS::UInteger(11));
  EXPECT_EQ(NS::UInteger(size.height), NS::UInteger(22));
  EXPECT_EQ(NS::UInteger(size.depth), NS::UInteger(33));
  EXPECT_EQ(NS::Number::number(2.5)->doubleValue(), 2.5);
  EXPECT_EQ(NS::Number::number(1.5f)->floatValue(), 1.5f);
}

TEST(SoftMetalRuntime, AnswersNilWithZero) {
  const SoftRig rig;
  MTL::CommandBuffer* const commands = nullptr;
  EXPECT_EQ(Sender::sendMessage<double>(commands, selector("GPUStartTime")), 0.0);
  EXPECT_EQ(Sender::sendMessage<NS::UInteger>(commands, selector("length")), NS::UInteger(0));
  EXPECT(Sender::sendMessage<void*>(commands, selector("label")) == nullptr);
  Sender::sendMessage<void>(commands, selector("commit"));
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalRuntime, TellsOfAStructFromNil) {
  const SoftRig rig;
  const auto size = Sender::sendMessage<MTL::Size>(nullptr, selector("maxThreadsPerThreadgroup"));
  EXPECT_EQ(NS::UInteger(size.width + size.height + size.depth), NS::UInteger(0));
  EXPECT_VIOLATIONS("maxThreadsPerThreadgroup was sent to nil");
}

TEST(SoftMetalRuntime, TellsOfUnknownSelectors) {
  const SoftRig rig;
  EXPECT(Sender::sendMessage<void*>(rig.device(), selector("foo:"), 3) == nullptr);
  EXPECT_EQ(Sender::sendMessage<double>(rig.device(), selector("bar")), 0.0);
  EXPECT(Sender::sendMessage<void*>(objc_lookUpClass("MTLHeapDescriptor"), selector("alloc")) == nullptr);
  EXPECT_VIOLATIONS("unrecognized selector -[MTLDevice foo:]", "unrecognized selector -[MTLDevice bar]",
                    "unrecognized selector +[MTLHeapDescriptor alloc]");
}

TEST(SoftMetalRuntime, KnowsWhatItRespondsTo) {
  const SoftRig rig;
  EXPECT(Sender::respondsToSelector(rig.device(), selector("newCommandQueue")));
  EXPECT(!Sender::respondsToSelector(rig.device(), selector("newHeapWithDescriptor:")));
  EXPECT(Sender::respondsToSelector(rig.queue(), selector("retain")));
  Class const itsClass = objc_lookUpClass("MTLCompileOptions");
  EXPECT(Sender::respondsToSelector(itsClass, selector("alloc")));
  EXPECT(!Sender::respondsToSelector(itsClass, selector("setFastMathEnabled:")));
  EXPECT(Sender::sendMessage<bool>(itsClass, selector("instancesRespondToSelector:"), selector("setFastMathEnabled:")));
  const auto options = NS::TransferPtr(MTL::CompileOptions::alloc()->init());
  EXPECT(!Sender::respondsToSelector(options.get(), selector("setMathMode:")));
  softmetal::machine().hasMathMode = true;
  EXPECT(Sender::respondsToSelector(options.get(), selector("setMathMode:")));
}

TEST(SoftMetalRuntime, ListsSelectors) {
  const SoftRig rig;
  EXPECT(contains(softmetal::selectorsImplemented(), "-[MTLDevice newCommandQueueWithMaxCommandBufferCount:]"));
  EXPECT(contains(softmetal::selectorsImplemented(), "+[NSString stringWithCString:encoding:]"));
  EXPECT(contains(softmetal::selectorsSent(), "-[MTLDevice newCommandQueue]"));
  EXPECT(!contains(softmetal::selectorsSent(), "-[NSDictionary copy]"));
  const auto sent = softmetal::selectorsSent();
  EXPECT(std::is_sorted(sent.begin(), sent.end()));
}
