#include "LibraryFinder.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "Devices/Metal/EmbeddedLibrary.hpp"
#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Devices/Metal/MathProbe.hpp"
#include "MLXNativeKernels/mnk_version.h"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

using Kind = LibraryOrigin::Kind;

constexpr std::string_view kLabel = "MLXNativeKernels";
constexpr std::string_view kModuleBundle = "MLXNativeKernels_MLXNativeKernelsShaders.bundle";
constexpr std::string_view kFile = "default.metallib";

// Opens the file: reading its attributes would need a reason in an app's privacy manifest.
bool canBeRead(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  std::fclose(file);
  return true;
}

std::string folderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

enum class Stamp { ours, stale, none };

Stamp stampOf(const MetalLibrary& library) {
  Stamp stamp = Stamp::none;
  for (const std::string& name : library.functionNames()) {
    if (name == shaderStamp()) return Stamp::ours;
    if (name.starts_with(kStampPrefix)) stamp = Stamp::stale;
  }
  return stamp;
}

Error staleError(const std::string& path) {
  return metalError(ErrorCode::libraryNotFound, "the compiled kernels are of another version than this code", path,
                    fmt::format("the library of MLXNativeKernels {}, which exports {}", MNK_VERSION, shaderStamp()),
                    "Clean the build folder and build again, so that both come from the same sources.");
}

Result<std::shared_ptr<MetalLibrary>> loadGiven(MTL::Device* device, const std::string& path) {
  MNK_TRY(auto loaded, loadLibrary(device, path, std::string(kLabel), Kind::givenFile));
  switch (stampOf(*loaded)) {
    case Stamp::ours: {
      MNK_TRY(const bool isSafe, hasSafeMath(device, *loaded));
      if (isSafe) return std::shared_ptr<MetalLibrary>(std::move(loaded));
      return metalError(ErrorCode::libraryNotFound, "the given library was compiled with fast math", path,
                        "a library that handles NaN and infinity and rounds divisions correctly",
                        "Compile it with -fno-fast-math, or pass no path: the device then compiles its embedded text.");
    }
    case Stamp::stale:
      return staleError(path);
    case Stamp::none:
      break;
  }
  return metalError(ErrorCode::libraryNotFound, "the given library does not hold the kernels of this package", path,
                    fmt::format("a library that exports {}", shaderStamp()),
                    "Pass the default.metallib that was built from Shaders/, or no path.");
}

}  // namespace

SearchRoots searchRoots() {
  const AutoreleasePool pool;
  SearchRoots roots;
  static const char mark = 0;
  Dl_info image{};
  if (dladdr(&mark, &image) && image.dli_fname) roots.image = folderOf(image.dli_fname);
  if (const NS::Bundle* bundle = NS::Bundle::mainBundle()) {
    roots.mainResources = text(bundle->resourcePath());
    roots.mainBundle = text(bundle->bundlePath());
  }
  if (const char* previews = std::getenv("PACKAGE_RESOURCE_BUNDLE_PATH")) roots.previews = previews;
  return roots;
}

std::vector<Candidate> candidates(const SearchRoots& roots) {
  std::vector<Candidate> found;
  const auto add = [&](Kind kind, const std::string& folder, std::string_view below) {
    if (folder.empty()) return;
    Candidate candidate{kind, fmt::format("{}/{}{}", folder, below, kFile)};
    const bool isNew = std::none_of(found.begin(), found.end(),
                                    [&](const Candidate& earlier) { return earlier.path == candidate.path; });
    if (isNew) found.push_back(std::move(candidate));
  };
  const auto fromImage = [&](const char* path) { return roots.image.empty() ? "" : roots.image + path; };
  const std::string inFramework = fromImage("/Resources"), inTestBundle = fromImage("/../Resources"),
                    besideTestBundle = fromImage("/../../..");
  for (const std::string& root : {roots.previews, roots.mainResources, inFramework, inTestBundle, roots.image,
                                  besideTestBundle, roots.mainBundle}) {
    add(Kind::moduleBundle, root, fmt::format("{}/Contents/Resources/", kModuleBundle));  // macOS layout
    add(Kind::moduleBundle, root, fmt::format("{}/", kModuleBundle));                     // iOS layout
  }
  if ((roots.image + "/").find(".framework/") != std::string::npos) {
    add(Kind::frameworkBundle, roots.image, "Resources/");
    add(Kind::frameworkBundle, roots.image, "");
  }
  add(Kind::besideCode, roots.image, "");
  add(Kind::mainBundle, roots.mainResources, "");
  return found;
}

Result<std::shared_ptr<MetalLibrary>> findShippedLibrary(MTL::Device* device, const std::string& givenPath,
                                                         std::span<const Candidate> places, bool usesText) {
  if (!usesText && !givenPath.empty()) return loadGiven(device, givenPath);
  std::string tried, fast;
  if (usesText) places = {};
  for (const Candidate& place : places) {
    const auto note = [&](std::string_view why) {
      tried += fmt::format("\n  {} ({}): {}", name(place.kind), place.path, why);
    };
    if (!canBeRead(place.path)) {
      note("not there");
      continue;
    }
    auto loaded = loadLibrary(device, place.path, std::string(kLabel), place.kind);
    if (!loaded) {
      note(loaded.error().got);
      continue;
    }
    switch (stampOf(**loaded)) {
      case Stamp::ours: {
        MNK_TRY(const bool isSafe, hasSafeMath(device, **loaded));
        if (isSafe) return std::shared_ptr<MetalLibrary>(std::move(*loaded));
        note("was compiled with fast math");
        fast = place.path;
        break;
      }
      case Stamp::stale:
        return staleError(place.path);
      case Stamp::none:
        note("holds other kernels");
        break;
    }
  }
  return makeEmbeddedLibrary(device, std::string(kLabel), tried + "\n  embedded text", std::move(fast));
}

}  // namespace mnk::metal
