#include <filesystem>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalFoundation, MakesStrings) {
  const SoftMetalFixture fixture;
  NS::String* const string = text("Größe 𝄞");
  EXPECT_EQ(string->length(), NS::UInteger(8));  // counted in UTF-16
  EXPECT_EQ(utf8(string), "Größe 𝄞");
  EXPECT(string->isEqualToString(NS::String::string(string)) && !string->isEqualToString(text("Größe")));
  EXPECT_EQ(NS::String::string()->length(), NS::UInteger(0));
  const auto owned = NS::TransferPtr(NS::String::alloc()->init("owned", NS::UTF8StringEncoding));
  EXPECT_EQ(std::string(owned->cString(NS::UTF8StringEncoding)), "owned");
  EXPECT_EQ(utf8(owned->stringByAppendingString(text(" twice"))), "owned twice");
  EXPECT(NS::String::string("\xff", NS::UTF8StringEncoding) == nullptr);
  EXPECT(NS::String::string("\xed\xa0\x80", NS::UTF8StringEncoding) == nullptr);  // half of a surrogate pair
  EXPECT(NS::String::string("ö", NS::ASCIIStringEncoding) == nullptr);
  EXPECT(NS::String::alloc()->init("\xc3", NS::UTF8StringEncoding) == nullptr);
  EXPECT(NS::String::string(nullptr, NS::UTF8StringEncoding) == nullptr);
  EXPECT(NS::String::string("x", NS::UTF16StringEncoding) == nullptr);
}

TEST(SoftMetalFoundation, HoldsObjects) {
  const SoftMetalFixture fixture;
  NS::String* const constant = MTLSTR("constant");
  constant->retain();
  constant->release();
  constant->release();
  EXPECT(text("constant")->isEqualToString(constant) && constant->isEqualToString(text("constant")));
  const NS::Object* items[] = {constant, text("b")};
  NS::Array* const array = NS::Array::array(items, 2);
  EXPECT(array->object(0) == constant && array->object(2) == nullptr);
  const NS::Object* keys[] = {text("x"), text("y")};
  NS::Dictionary* const dictionary = NS::Dictionary::dictionary(items, keys, 2);
  EXPECT(dictionary->object(text("y")) == items[1] && dictionary->object(text("z")) == nullptr);
  NS::Error* const error = NS::Error::error(text("SomeDomain"), 7, nullptr);
  EXPECT(error->code() == 7 && utf8(error->domain()) == "SomeDomain" && error->userInfo()->count() == 0);
  EXPECT(utf8(error->localizedDescription()).find("SomeDomain 7") != std::string::npos);
}

TEST(SoftMetalFoundation, FindsBundles) {
  const SoftMetalFixture fixture;
  const CacheFolder folder;
  const std::string app = folder.path("App.app"), bundle = folder.path("Kernels.bundle");
  std::filesystem::create_directories(app + "/Contents/Resources");
  std::filesystem::create_directories(bundle);
  softmetal::setMainBundle({.path = app, .identifier = "org.app", .resources = {}});
  softmetal::setBundles({{.path = bundle, .identifier = {}, .resources = {}},
                         {.path = "/A.framework", .identifier = "a", .resources = "/R", .isFramework = true}});
  NS::Bundle* const main = NS::Bundle::mainBundle();
  EXPECT_EQ(utf8(main->bundlePath()), app);
  EXPECT_EQ(utf8(main->resourcePath()), app + "/Contents/Resources");
  EXPECT_EQ(utf8(main->bundleIdentifier()), "org.app");
  NS::Bundle* const kernels = NS::Bundle::bundle(text(bundle.c_str()));
  EXPECT_EQ(utf8(kernels->resourcePath()), bundle);
  EXPECT_EQ(std::string(kernels->resourceURL()->fileSystemRepresentation()), bundle);
  EXPECT(kernels->bundleIdentifier() == nullptr);
  EXPECT(NS::Bundle::bundle(text(folder.path("Missing.bundle").c_str())) == nullptr);
  const auto list = [](const char* selector) {
    return Sender::sendMessage<NS::Array*>(objc_lookUpClass("NSBundle"), sel_registerName(selector));
  };
  EXPECT_EQ(list("allBundles")->count(), NS::UInteger(2));
  EXPECT_EQ(utf8(list("allFrameworks")->object<NS::Bundle>(0)->resourcePath()), "/R");
  // metal-cpp 14 sends a class's message to an instance; Apple ends the process over it.
  EXPECT(main->allBundles() == nullptr);
}
