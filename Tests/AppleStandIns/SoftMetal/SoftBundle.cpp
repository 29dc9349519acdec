// NSBundle, based on a test's descriptions.
#include <filesystem>

#include "SoftValues.hpp"
#include "State.hpp"

namespace softmetal {

namespace {

struct SoftBundle : Object {
  BundleDescription about;

  static SoftBundle* pooled(BundleDescription about) {
    auto* bundle = make<SoftBundle>();
    bundle->setLabelText(about.path);
    bundle->about = std::move(about);
    return autoreleased(bundle);
  }
  static SoftBundle* main() { return pooled(mainBundle().value_or(BundleDescription{.path = "."})); }
  // Nil if the folder does not exist, as on a Mac.
  static SoftBundle* withPath(Object* path) {
    const auto text = textOf(path, "bundleWithPath:");
    std::error_code ignored;
    if (!text || !std::filesystem::is_directory(*text, ignored)) return nullptr;
    for (const BundleDescription& known : bundles()) {
      if (known.path == *text) return pooled(known);
    }
    return pooled(BundleDescription{.path = *text});
  }
  static SoftBundle* withURL(SoftURL* url) {
    const Ref<SoftString> path = Ref<SoftString>::adopt(makeString(url ? url->path : ""));
    return withPath(path.get());
  }
  static SoftArray* list(bool frameworks) {
    std::vector<Ref<Object>> found;
    if (!frameworks) found.emplace_back(main());
    for (const BundleDescription& known : bundles()) {
      if (known.isFramework == frameworks) found.emplace_back(pooled(known));
    }
    return autoreleased(makeArray(std::move(found)));
  }
  static SoftArray* allBundles() { return list(false); }
  static SoftArray* allFrameworks() { return list(true); }

  std::string resources() const {
    if (!about.resources.empty()) return about.resources;
    std::error_code ignored;
    for (const char* inside : {"Contents/Resources", "Resources"}) {
      const auto path = std::filesystem::path(about.path) / inside;
      if (std::filesystem::is_directory(path, ignored)) return path.string();
    }
    return about.path;
  }
  Object* bundlePath() { return pooledString(about.path); }
  Object* resourcePath() { return pooledString(resources()); }
  Object* bundleURL() { return pooledURL(about.path); }
  Object* resourceURL() { return pooledURL(resources()); }
  Object* identifier() { return about.identifier.empty() ? nullptr : pooledString(about.identifier); }
};

}  // namespace

// metal-cpp sends allBundles and allFrameworks to an instance, where they are unknown selectors, as on a Mac.
void defineBundles() {
  define<SoftBundle>("NSBundle")
      .onClass<&SoftBundle::main>("mainBundle")
      .onClass<&SoftBundle::withPath>("bundleWithPath:")
      .onClass<&SoftBundle::withURL>("bundleWithURL:")
      .onClass<&SoftBundle::allBundles>("allBundles")
      .onClass<&SoftBundle::allFrameworks>("allFrameworks")
      .on<&SoftBundle::bundlePath>("bundlePath")
      .on<&SoftBundle::resourcePath>("resourcePath")
      .on<&SoftBundle::bundleURL>("bundleURL")
      .on<&SoftBundle::resourceURL>("resourceURL")
      .on<&SoftBundle::identifier>("bundleIdentifier");
}

}  // namespace softmetal
