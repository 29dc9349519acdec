#include <cstring>
#include <filesystem>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

struct Sender : NS::Object {
  using NS::Object::sendMessage;
};

}  // namespace

TEST(SoftMetalFoundation, MakesStrings) {
  const SoftMetalFixture fixture;
  NS::String* const string = text("Größe 𝄞");
  EXPECT_EQ(std::string(string->utf8String()), "Größe 𝄞");
  EXPECT_EQ(string->length(), NS::UInteger(8));  // counted in UTF-16
  EXPECT(string->isEqualToString(NS::String::string(string)));
  EXPECT(!string->isEqualToString(text("Größe")));
  EXPECT_EQ(NS::String::string()->length(), NS::UInteger(0));
  const auto owned = NS::TransferPtr(NS::String::alloc()->init("owned", NS::UTF8StringEncoding));
  EXPECT_EQ(std::string(owned->cString(NS::UTF8StringEncoding)), "owned");
  EXPECT_EQ(std::string(owned->stringByAppendingString(text(" twice"))->utf8String()), "owned twice");
}

TEST(SoftMetalFoundation, RefusesWhatIsNoText) {
  const SoftMetalFixture fixture;
  EXPECT(NS::String::string("\xff", NS::UTF8StringEncoding) == nullptr);
  EXPECT(NS::String::string("\xed\xa0\x80", NS::UTF8StringEncoding) == nullptr);  // half of a surrogate pair
  EXPECT(NS::String::string("ö", NS::ASCIIStringEncoding) == nullptr);
  EXPECT(NS::String::alloc()->init("\xc3", NS::UTF8StringEncoding) == nullptr);
  EXPECT_NO_VIOLATION();
  EXPECT(NS::String::string(nullptr, NS::UTF8StringEncoding) == nullptr);
  EXPECT_VIOLATIONS("an NSString was made from a null pointer");
  EXPECT(NS::String::string("x", NS::UTF16StringEncoding) == nullptr);
  EXPECT_VIOLATIONS("encoding 10");
}

TEST(SoftMetalFoundation, TakesConstantStrings) {
  const SoftMetalFixture fixture;
  NS::String* const constant = MTLSTR("constant");
  constant->retain();
  constant->release();
  constant->release();
  EXPECT_EQ(constant->length(), NS::UInteger(8));
  EXPECT(text("constant")->isEqualToString(constant));
  EXPECT(constant->isEqualToString(text("constant")));
  const auto buffer = fixture.buffer("", 16);
  buffer->setLabel(constant);
  EXPECT_EQ(std::string(buffer->label()->utf8String()), "constant");
}

TEST(SoftMetalFoundation, HoldsObjectsInCollections) {
  const SoftMetalFixture fixture;
  const NS::Object* items[] = {text("a"), text("b")};
  NS::Array* const array = NS::Array::array(items, 2);
  EXPECT_EQ(array->count(), NS::UInteger(2));
  EXPECT_EQ(std::string(array->object<NS::String>(1)->utf8String()), "b");
  EXPECT(array->object(2) == nullptr);
  EXPECT_VIOLATIONS("object 2 of an NSArray of 2");
  const NS::Object* keys[] = {text("x"), text("y")};
  NS::Dictionary* const dictionary = NS::Dictionary::dictionary(items, keys, 2);
  EXPECT_EQ(dictionary->count(), NS::UInteger(2));
  EXPECT_EQ(std::string(dictionary->object<NS::String>(text("y"))->utf8String()), "b");
  EXPECT(dictionary->object(text("z")) == nullptr);
}

TEST(SoftMetalFoundation, DescribesErrors) {
  const SoftMetalFixture fixture;
  NS::Error* const error = NS::Error::error(text("SomeDomain"), 7, nullptr);
  EXPECT_EQ(error->code(), NS::Integer(7));
  EXPECT_EQ(std::string(error->domain()->utf8String()), "SomeDomain");
  EXPECT(std::string(error->localizedDescription()->utf8String()).find("SomeDomain 7") != std::string::npos);
  EXPECT_EQ(error->userInfo()->count(), NS::UInteger(0));
}

TEST(SoftMetalFoundation, FindsBundles) {
  const SoftMetalFixture fixture;
  const Folder folder;
  std::filesystem::create_directories(folder.path("App.app/Contents/Resources"));
  std::filesystem::create_directories(folder.path("Kernels.bundle"));
  softmetal::setMainBundle({.path = folder.path("App.app"), .identifier = "org.app", .resources = {}});
  softmetal::setBundles({{.path = folder.path("Kernels.bundle"), .identifier = {}, .resources = {}},
                         {.path = "/A.framework", .identifier = "a", .resources = "/R", .isFramework = true}});
  NS::Bundle* const main = NS::Bundle::mainBundle();
  EXPECT_EQ(std::string(main->bundlePath()->utf8String()), folder.path("App.app"));
  EXPECT_EQ(std::string(main->resourcePath()->utf8String()), folder.path("App.app/Contents/Resources"));
  EXPECT_EQ(std::string(main->bundleIdentifier()->utf8String()), "org.app");
  NS::Bundle* const kernels = NS::Bundle::bundle(text(folder.path("Kernels.bundle").c_str()));
  EXPECT_EQ(std::string(kernels->resourcePath()->utf8String()), folder.path("Kernels.bundle"));
  EXPECT_EQ(std::string(kernels->resourceURL()->fileSystemRepresentation()), folder.path("Kernels.bundle"));
  EXPECT(kernels->bundleIdentifier() == nullptr);
  EXPECT(NS::Bundle::bundle(text(folder.path("Missing.bundle").c_str())) == nullptr);
  const auto list = [](const char* selector) {
    return Sender::sendMessage<NS::Array*>(objc_lookUpClass("NSBundle"), sel_registerName(selector));
  };
  EXPECT_EQ(list("allBundles")->count(), NS::UInteger(2));
  EXPECT_EQ(std::string(list("allFrameworks")->object<NS::Bundle>(0)->resourcePath()->utf8String()), "/R");
  EXPECT_NO_VIOLATION();
}

// metal-cpp 14 sends a class's message to an instance; Apple ends the process over it.
TEST(SoftMetalFoundation, TellsOfMetalCppsOwnMistake) {
  const SoftMetalFixture fixture;
  EXPECT(NS::Bundle::mainBundle()->allBundles() == nullptr);
  EXPECT_VIOLATIONS("unrecognized selector -[NSBundle allBundles]");
}
