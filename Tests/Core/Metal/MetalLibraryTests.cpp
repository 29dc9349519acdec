#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Devices/Metal/MetalLibrary.hpp"
#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

using Kind = LibraryOrigin::Kind;

constexpr std::string_view kText = R"(
kernel void twice(device float* x [[buffer(0)]], uint at [[thread_position_in_grid]]) { x[at] *= 2; }
export_kernel(twice)
)";

// A library under a path whose folders are made.
void writeLibrary(const std::string& path, const softmetal::Metallib& contents) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  EXPECT(softmetal::writeMetallib(path, contents));
}
const softmetal::Metallib kShipped{.linked = "MLXNativeKernels"};
softmetal::Metallib staleLibrary() {
  return {.linked = "MLXNativeKernels",
          .added = {"mnkStamp_0000000000000000"},
          .hidden = {std::string(metal::shaderStamp())}};
}
softmetal::Metallib otherLibrary() {
  return {.linked = "MLXNativeKernels", .hidden = {std::string(metal::shaderStamp())}};
}

// What a compiler makes of the probe that assumes one thing and keeps to all others.
softmetal::Metallib libraryWithMath(std::string_view nan, std::string_view infinity, std::string_view quotient) {
  constexpr std::string_view kProbe = R"(
kernel void mathProbe(device const float* in [[buffer(0)]], device float* out [[buffer(1)]]) {{
  out[0] = {};
  out[1] = {};
  for (uint i = 0; i < 8; ++i) out[2 + i] = {};
}}
export_kernel(mathProbe)
)";
  return {.text = std::string(metal::embeddedWords()) + fmt::format(kProbe, nan, infinity, quotient),
          .added = {std::string(metal::shaderStamp())}};
}

struct FinderFixture : MetalFixture {
  NS::SharedPtr<MTL::Device> native = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  std::vector<metal::Candidate> places = {{Kind::moduleBundle, path("module/default.metallib")},
                                          {Kind::frameworkBundle, path("framework/default.metallib")},
                                          {Kind::besideCode, path("beside/default.metallib")},
                                          {Kind::mainBundle, path("main/default.metallib")}};

  ~FinderFixture() {
    const AutoreleasePool pool;
    native.reset();
  }
  Result<std::shared_ptr<metal::MetalLibrary>> find(const std::string& given = "") {
    return metal::findShippedLibrary(native.get(), given, places);
  }
};

}  // namespace

TEST(MetalLibrary, WithFastMathIsReplacedByTheText) {
  FinderFixture fixture;
  const std::string& path = fixture.places[1].path;
  const std::string_view quotient = "in[2 + 2 * i] / in[3 + 2 * i]", nan = "in[0] == in[0]", none = "in[1] - in[1]";
  writeLibrary(path, libraryWithMath(nan, none, quotient));
  EXPECT(REQUIRE(fixture.find())->origin().kind == Kind::frameworkBundle);
  for (const auto& fast : {libraryWithMath("1", none, quotient), libraryWithMath(nan, "0", quotient),
                           libraryWithMath(nan, none, "in[2 + 2 * i] * (1 / in[3 + 2 * i])")}) {
    writeLibrary(path, fast);
    const auto found = REQUIRE(fixture.find());
    EXPECT_EQ(found->origin().text(), "embedded text, because " + path + " was compiled with fast math");
    EXPECT_ERROR(
        fixture.find(path),
        {.code = ErrorCode::libraryNotFound, .what = "the given library was compiled with fast math", .got = path});
  }
  // Without work, nothing is known.
  softmetal::faults().failAt(softmetal::Call::pipeline);
  EXPECT_ERROR(fixture.find(), {.code = ErrorCode::deviceFault, .what = "the compiled kernels cannot be probed"});
  EXPECT(REQUIRE(fixture.find())->origin().kind == Kind::embeddedText);
}

TEST(MetalLibrary, IsTheTextWhereThatIsAskedFor) {
  MetalFixture fixture;
  const auto origin = [&](const metal::Options& options) {
    return REQUIRE(REQUIRE(metal::makeDevice(options))->registry().shippedLibrary())->origin().text();
  };
  EXPECT_EQ(origin({.libraryPath = fixture.shippedLibrary()}), "given file (" + fixture.shippedLibrary() + ")");
  EXPECT_EQ(origin({.libraryPath = fixture.shippedLibrary(), .usesEmbeddedText = true}), "embedded text");
  setenv("MNK_METAL_LIBRARY", "embedded", 1);
  EXPECT_EQ(origin({.libraryPath = fixture.shippedLibrary()}), "embedded text");
  unsetenv("MNK_METAL_LIBRARY");
}

TEST(MetalLibrary, IsSearchedForInTheDocumentedOrder) {
  const auto expectSearched = [](const metal::SearchRoots& roots, const std::vector<std::string>& bundles,
                                 const std::vector<std::string>& files) {
    std::vector<std::string> found, expected;
    for (const auto& candidate : metal::candidates(roots)) {
      found.push_back(fmt::format("{}: {}", name(candidate.kind), candidate.path));
    }
    for (const std::string& root : bundles) {
      const std::string bundle = fmt::format("module bundle: {}/MLXNativeKernels_MLXNativeKernelsShaders.bundle", root);
      expected.push_back(bundle + "/Contents/Resources/default.metallib");
      expected.push_back(bundle + "/default.metallib");
    }
    for (const std::string& file : files) expected.push_back(file + "/default.metallib");
    EXPECT_EQ(fmt::format("{}", fmt::join(found, "\n")), fmt::format("{}", fmt::join(expected, "\n")));
  };
  const std::string code = "/app/MLX.framework/Versions/A";
  expectSearched(
      {.image = code, .mainResources = "/app/Contents/Resources", .mainBundle = "/app", .previews = "/previews"},
      {"/previews", "/app/Contents/Resources", code + "/Resources", code + "/../Resources", code, code + "/../../..",
       "/app"},
      {"framework bundle: " + code + "/Resources", "framework bundle: " + code,
       "main bundle: /app/Contents/Resources"});
  expectSearched({.image = "/bin", .mainResources = "/bin", .mainBundle = "/bin"},
                 {"/bin", "/bin/Resources", "/bin/../Resources", "/bin/../../.."}, {"beside the code: /bin"});
  expectSearched({}, {}, {});
  for (const auto& candidate : metal::candidates({.image = "/my.frameworks/bin"})) {
    EXPECT(candidate.kind != Kind::frameworkBundle);
  }
}

TEST(MetalLibrary, TheRootsAreThoseOfTheProgram) {
  MetalFixture fixture;
  softmetal::setMainBundle({.path = "/the/app", .resources = "/the/app/Resources"});
  setenv("PACKAGE_RESOURCE_BUNDLE_PATH", "/the/previews", 1);
  const auto roots = metal::searchRoots();
  unsetenv("PACKAGE_RESOURCE_BUNDLE_PATH");
  EXPECT_EQ(roots.previews, "/the/previews");
  EXPECT_EQ(metal::searchRoots().previews, "");
  EXPECT_EQ(roots.mainBundle, "/the/app");
  EXPECT_EQ(roots.mainResources, "/the/app/Resources");
  EXPECT_EQ(std::filesystem::canonical(roots.image).string(),
            std::filesystem::canonical("/proc/self/exe").parent_path().string());
}

TEST(MetalLibrary, TheFirstOfOursIsUsed) {
  FinderFixture fixture;
  for (size_t i = fixture.places.size(); i-- > 0;) {
    writeLibrary(fixture.places[i].path, kShipped);
    const auto library = REQUIRE(fixture.find());
    EXPECT_EQ(library->origin().text(), fmt::format("{} ({})", name(fixture.places[i].kind), fixture.places[i].path));
    EXPECT_EQ(library->label(), "MLXNativeKernels");
  }
  EXPECT_EQ(softmetal::counters().compiles, 0u);
}

TEST(MetalLibrary, LibrariesOfOthersAndBrokenOnesArePassedOver) {
  FinderFixture fixture;
  writeLibrary(fixture.places[0].path, otherLibrary());
  std::filesystem::create_directories(fixture.path("framework"));
  std::ofstream(fixture.places[1].path) << "gibberish";
  std::ofstream(fixture.path("empty"));
  fixture.places[2].path = fixture.path("empty");
  writeLibrary(fixture.places[3].path, kShipped);
  EXPECT_EQ(REQUIRE(fixture.find())->origin().kind, Kind::mainBundle);
}

TEST(MetalLibrary, AStaleOneIsAnErrorAndNotPassedOver) {
  FinderFixture fixture;
  writeLibrary(fixture.places[1].path, staleLibrary());
  writeLibrary(fixture.places[2].path, kShipped);
  const std::string expected = "which exports " + std::string(metal::shaderStamp());
  EXPECT_ERROR(fixture.find(), {.code = ErrorCode::libraryNotFound,
                                .op = "Metal device",
                                .what = "of another version than this code",
                                .got = fixture.places[1].path,
                                .expected = expected,
                                .fix = "Clean the build folder"});
}

TEST(MetalLibrary, TellsWhetherItWasCompiledWithFencesForTheDevice) {
  MetalFixture fixture;
  softmetal::Metallib older = kShipped;
  older.hidden = {"ordersThreadgroups"};
  writeLibrary(fixture.path("older"), older);
  const auto orders = [](const std::string& path) {
    return REQUIRE(metal::makeDevice({.libraryPath = path}))->profile().ordersThreadgroups;
  };
  EXPECT(orders(fixture.shippedLibrary()));
  EXPECT(!orders(fixture.path("older")));
}

TEST(MetalLibrary, WhenNothingHelpsTheErrorListsAllThatWasTried) {
  FinderFixture fixture;
  writeLibrary(fixture.places[0].path, otherLibrary());
  std::filesystem::create_directories(fixture.path("beside"));
  std::ofstream(fixture.places[2].path) << "gibberish";
  // The file with other kernels and the broken one take a turn each before a text is compiled, in two versions.
  softmetal::faults().failAt(softmetal::Call::library, 2, 2);
  const auto found = fixture.find();
  EXPECT_ERROR(found, {.code = ErrorCode::libraryNotFound,
                       .what = "were not found, and their embedded text does not compile",
                       .fix = "Build with Xcode"});
  const std::string got = found ? "" : found.error().got;
  for (const auto& place : fixture.places) EXPECT(got.find(place.path) != std::string::npos);
  EXPECT(got.find("module bundle (" + fixture.places[0].path + "): holds other kernels") != std::string::npos);
  EXPECT(got.find("framework bundle (" + fixture.places[1].path + "): not there") != std::string::npos);
  EXPECT(got.ends_with("embedded text"));
}

TEST(MetalLibrary, AGivenPathIsTheOnlyOneThatIsTried) {
  FinderFixture fixture;
  writeLibrary(fixture.places[0].path, kShipped);
  EXPECT_EQ(REQUIRE(fixture.find(fixture.shippedLibrary()))->origin().text(),
            fmt::format("given file ({})", fixture.shippedLibrary()));
  EXPECT_ERROR(fixture.find(fixture.path("missing")),
               {.code = ErrorCode::libraryNotFound, .what = "missing cannot be loaded", .fix = "correct the path"});
  writeLibrary(fixture.path("stale"), staleLibrary());
  EXPECT_ERROR(fixture.find(fixture.path("stale")),
               {.code = ErrorCode::libraryNotFound, .what = "of another version than this code"});
  writeLibrary(fixture.path("other"), otherLibrary());
  EXPECT_ERROR(fixture.find(fixture.path("other")),
               {.code = ErrorCode::libraryNotFound, .what = "does not hold the kernels of this package"});
}

TEST(MetalLibrary, ADeviceTellsWhereItsKernelsCameFrom) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  EXPECT_EQ(REQUIRE(device->registry().shippedLibrary())->origin().path, fixture.shippedLibrary());
  const std::string bundle = fixture.path("Main.app");
  const std::string file = bundle + "/MLXNativeKernels_MLXNativeKernelsShaders.bundle/default.metallib";
  writeLibrary(file, kShipped);
  softmetal::setMainBundle({.path = bundle});
  const auto found = REQUIRE(REQUIRE(metal::makeDevice({}))->registry().shippedLibrary());
  EXPECT_EQ(found->origin().text(), fmt::format("module bundle ({})", file));
}

TEST(MetalText, UsersTextHasOurWordsAndItsOwnLines) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const auto library = REQUIRE(device->registry().library({.value = std::string(kText), .label = "doubling"}));
  EXPECT_EQ(library->origin().text(), "given text");
  EXPECT_EQ(library->label(), "doubling");
  EXPECT(library->functionNames() == std::vector<std::string>{"twice"});
  EXPECT_ERROR(device->registry().library({.value = "kernel void broken(", .label = "a \"b\"\n\\c"}),
               {.code = ErrorCode::shaderBuild, .what = "does not compile", .got = "a _b___c", .fix = "lines named"});
  EXPECT_ERROR(device->registry().library({.value = "\xff\xfe", .label = "binary"}),
               {.code = ErrorCode::shaderBuild, .got = "not UTF-8"});
}

TEST(MetalText, UsersFilesAreTextOrCompiled) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const auto load = [&](const std::string& path) {
    return device->registry().library({.kind = LibrarySource::Kind::path, .value = path});
  };
  std::ofstream(fixture.path("twice.metal")) << kText;
  const auto text = REQUIRE(load(fixture.path("twice.metal")));
  EXPECT_EQ(text->origin().text(), fmt::format("given file ({})", fixture.path("twice.metal")));
  EXPECT_EQ(text->label(), fixture.path("twice.metal"));
  EXPECT(text->functionNames() == std::vector<std::string>{"twice"});
  EXPECT_EQ(REQUIRE(load(fixture.shippedLibrary()))->origin().text(),
            fmt::format("given file ({})", fixture.shippedLibrary()));
  EXPECT_ERROR(load(fixture.path("missing.metal")),
               {.code = ErrorCode::libraryNotFound, .what = "cannot be read", .got = "missing.metal"});
  EXPECT_ERROR(load(fixture.path("missing.metallib")),
               {.code = ErrorCode::libraryNotFound, .what = "cannot be loaded"});
  std::ofstream(fixture.path("long.metal")) << std::string((16 << 20) + 1, ' ');
  EXPECT_ERROR(load(fixture.path("long.metal")), {.what = "too long", .expected = "at most 16.8 MB"});
}

}  // namespace mnk::test
