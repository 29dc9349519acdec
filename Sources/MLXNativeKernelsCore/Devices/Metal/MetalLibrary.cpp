#include "Devices/Metal/MetalLibrary.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "MLXNativeKernels/mnk_version.h"
#include "Runtime/ProbeTypes.h"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

std::vector<std::string> sortedNames(const MTL::Library& library) {
  std::vector<std::string> names;
  const NS::Array* functions = library.functionNames();
  const NS::UInteger count = functions ? functions->count() : 0;
  for (NS::UInteger i = 0; i < count; ++i) names.push_back(text(functions->object<NS::String>(i)));
  std::sort(names.begin(), names.end());
  return names;
}

// Makes a label safe as an argument of #line: without line breaks and quotes.
std::string quotable(std::string label) {
  std::replace_if(
      label.begin(), label.end(), [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; }, '_');
  return label;
}

Result<std::string> readText(const std::string& path) {
  constexpr size_t kMaxBytes = 16 << 20;
  const auto close = [](FILE* file) { std::fclose(file); };
  const std::unique_ptr<FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) {
    return metalError(ErrorCode::libraryNotFound, "the file of kernels cannot be read", path,
                      "a file with kernel text, or a .metallib", "Check the path and its permissions.");
  }
  std::string text(kMaxBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (text.size() <= kMaxBytes) return text;
  return metalError(ErrorCode::invalidArgument, "the file of kernels is too long", path,
                    fmt::format("at most {}", bytesText(kMaxBytes)), "Pass a file with kernel text.");
}

Result<std::shared_ptr<NativeLibrary>> loadLibrary(MTL::Device* device, const std::string& path, std::string label,
                                                   LibraryOrigin::Kind origin) {
  const AutoreleasePool pool;
  NS::Error* error = nullptr;
  NS::String* file = nsText(path);
  const NS::URL* url = file ? NS::URL::fileURLWithPath(file) : nullptr;
  auto native = owned(url ? device->newLibrary(url, &error) : nullptr);
  if (!native) {
    return metalError(ErrorCode::libraryNotFound, fmt::format("the library {} cannot be loaded", path), reason(error),
                      "a .metallib that this system can read", "Build it for this system, or correct the path.");
  }
  return std::make_shared<NativeLibrary>(std::move(native), std::move(label), LibraryOrigin{origin, path});
}

// The text must be complete, except for Metal's own headers.
Result<std::shared_ptr<NativeLibrary>> compileText(MTL::Device* device, const std::string& text, std::string label,
                                                   LibraryOrigin origin,
                                                   MTL::LanguageVersion version = MTL::LanguageVersion3_1) {
  const AutoreleasePool pool;
  // Shaders need bfloat, from Metal 3.1, and no fast math, which would fold comparisons with NaN and infinity.
  const auto options = owned(MTL::CompileOptions::alloc()->init());
  options->setLanguageVersion(version);
  options->setFastMathEnabled(false);
  NS::Error* error = nullptr;
  NS::String* source = nsText(text);
  auto native = owned(source ? device->newLibrary(source, options.get(), &error) : nullptr);
  if (!native) {
    return metalError(ErrorCode::shaderBuild, fmt::format("library {} does not compile", label),
                      source ? reason(error) : "text that is not UTF-8", "Metal Shading Language 3.1 with our words",
                      "Correct the text at the lines named.");
  }
  return std::make_shared<NativeLibrary>(std::move(native), std::move(label), std::move(origin));
}

using Numbers = std::array<float, kMathProbePairs + 2 * kMathProbePairCount>;
using Found = std::array<float, kMathProbePairs + kMathProbePairCount>;

// The quotient of each pair differs from the product with the rounded reciprocal.
constexpr Numbers kNumbers{std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           3,
                           7,
                           3,
                           13,
                           5,
                           3,
                           5,
                           6,
                           3,
                           29,
                           5,
                           23,
                           3,
                           58,
                           5,
                           27};

std::optional<Found> probe(MTL::Device* device, MetalLibrary& library) {
  const auto native = library.nativeWith("mathProbe");
  const auto function = owned(native ? (*native)->newFunction(nsText("mathProbe")) : nullptr);
  NS::Error* error = nullptr;
  const auto pipeline = owned(function ? device->newComputePipelineState(function.get(), &error) : nullptr);
  const auto numbers = owned(device->newBuffer(&kNumbers, sizeof kNumbers, MTL::ResourceStorageModeShared));
  const auto results = owned(device->newBuffer(sizeof(Found), MTL::ResourceStorageModeShared));
  const auto queue = owned(device->newCommandQueue());
  MTL::CommandBuffer* const commands = queue ? queue->commandBuffer() : nullptr;
  MTL::ComputeCommandEncoder* const encoder = commands ? commands->computeCommandEncoder() : nullptr;
  if (!encoder) return std::nullopt;
  if (pipeline && numbers && results) {
    encoder->setComputePipelineState(pipeline.get());
    encoder->setBuffer(numbers.get(), 0, kMathProbeNumbers);
    encoder->setBuffer(results.get(), 0, kMathProbeFound);
    encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  }
  encoder->endEncoding();
  if (!pipeline || !numbers || !results) return std::nullopt;
  commands->commit();
  commands->waitUntilCompleted();
  if (commands->status() != MTL::CommandBufferStatusCompleted) return std::nullopt;
  return *static_cast<const Found*>(results->contents());
}

// Whether a compiled library of this package's kernels was compiled with safe math. Build systems choose fast math by
// default, and Metal does not report it. Runs a kernel of the library and waits for it. An error if it cannot run, such
// as in the background.
Result<bool> hasSafeMath(MTL::Device* device, MetalLibrary& library) {
  const AutoreleasePool pool;
  const auto found = probe(device, library);
  if (!found) {
    return metalError(ErrorCode::deviceFault, "the compiled kernels cannot be probed",
                      fmt::format("no result of mathProbe in {}", library.origin().text()), "a GPU that runs it",
                      "Wait until the GPU can be used, and try again.", true);
  }
  bool isSafe = (*found)[kMathProbeNaN] == 0 && std::isnan((*found)[kMathProbeInfinity]);
  for (size_t i = 0; i < kMathProbePairCount; ++i) {
    const float* const pair = &kNumbers[kMathProbePairs + 2 * i];
    isSafe = isSafe && (*found)[kMathProbePairs + i] == pair[0] / pair[1];
  }
  return isSafe;
}

// Reports a slow compilation on stderr while it runs.
class SlowNotice {
 public:
  explicit SlowNotice(std::string text) : text_(std::move(text)) {
    const char* wanted = std::getenv("MNK_METAL_MESSAGES");
    if (wanted && std::string_view(wanted) == "0") return;
    try {
      thread_ = std::thread([this] { wait(); });
    } catch (const std::system_error&) {  // the notice is optional
    }
  }
  ~SlowNotice() {
    {
      std::lock_guard lock(mutex_);
      isOver_ = true;
    }
    over_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (!over_.wait_for(lock, std::chrono::seconds(1), [&] { return isOver_; })) std::fputs(text_.c_str(), stderr);
  }

  std::string text_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool isOver_ = false;
  std::thread thread_;
};

class EmbeddedLibrary final : public MetalLibrary {
 public:
  EmbeddedLibrary(MTL::Device* device, std::string label, std::string tried, std::string instead)
      : MetalLibrary(std::move(label), {LibraryOrigin::Kind::embeddedText, std::move(instead)}),
        device_(retained(device)),
        tried_(std::move(tried)),
        parts_(embeddedFiles().size()) {}
  ~EmbeddedLibrary() override {
    const AutoreleasePool pool;
    parts_.clear();
    device_.reset();
  }

  std::vector<std::string> functionNames() const override {
    std::vector<std::string> all;
    for (const EmbeddedFile& file : embeddedFiles()) {
      for (std::string& name : file.functionNames()) {
        if (hasFences_ || name != kFencesFunction) all.push_back(std::move(name));
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  MTL::Device* device() const override { return device_.get(); }

  // Device-wide fences need Metal 3.2. If the system lacks it, or refuses the kernel with such a fence, kernels run
  // without.
  Result<void> chooseLanguage() {
    if (__builtin_available(macOS 15, iOS 18, tvOS 18, visionOS 2, *)) {
      if (nativeWith(kFencesFunction)) return {};
    }
    hasFences_ = false;
    MNK_TRY(nativeWith(shaderStamp()));
    return {};
  }

  Result<MTL::Library*> nativeWith(std::string_view function) override {
    const auto files = embeddedFiles();
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& each) { return each.has(function); });
    Part& part = parts_[static_cast<size_t>(file - files.begin())];
    std::lock_guard lock(part.mutex);
    if (!part.compiled) {
      MNK_TRY(auto compiled, compile(*file));
      part.compiled = std::move(compiled);
    }
    return part.compiled->native();
  }

 private:
  struct Part {
    std::mutex mutex;  // held during compilation
    std::shared_ptr<NativeLibrary> compiled;
  };

  Result<std::shared_ptr<NativeLibrary>> compile(const EmbeddedFile& file) const {
    const SlowNotice notice(fmt::format(
        "MLXNativeKernels: {} is being compiled, because {}. `prepare` does so ahead; MNK_METAL_MESSAGES=0 turns this "
        "message off.\n",
        file.path,
        origin().path.empty() ? "this program uses no compiled kernels (default.metallib)"
                              : origin().path + " was compiled with fast math"));
    constexpr auto kVersion3_2 = static_cast<MTL::LanguageVersion>((3 << 16) | 2);  // old headers have no name for it
    auto compiled = compileText(device_.get(), file.text(), std::string(label()), origin(),
                                hasFences_ ? kVersion3_2 : MTL::LanguageVersion3_1);
    if (compiled) return compiled;
    Error error = std::move(compiled).error();
    error.code = ErrorCode::libraryNotFound;
    error.what = "the kernels of this package were not found, and their embedded text does not compile";
    error.got += "; tried:" + tried_;
    error.fix = "Build with Xcode, which makes default.metallib, or name the file when the device is made.";
    return error;
  }

  Owned<MTL::Device> device_;
  std::string tried_;
  bool hasFences_ = true;
  std::vector<Part> parts_;  // one for each file
};

// The package's kernels, compiled from embedded text, for systems and builds without a compiled library. A kernel file
// is compiled when a pipeline first needs one of its functions, because compiling all of them at once is slow. Compiles
// the smallest file to find out whether Metal 3.2 is available. `tried` lists, for errors, where else kernels were
// looked for, and `instead` is a compiled library that this one replaces. A compilation of more than a second is
// reported on stderr unless MNK_METAL_MESSAGES=0 is set.
Result<std::shared_ptr<MetalLibrary>> makeEmbeddedLibrary(MTL::Device* device, std::string label, std::string tried,
                                                          std::string instead) {
  auto library = std::make_shared<EmbeddedLibrary>(device, std::move(label), std::move(tried), std::move(instead));
  MNK_TRY(library->chooseLanguage());
  return std::shared_ptr<MetalLibrary>(std::move(library));
}

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

using Argument = Pipeline::Argument;

MTL::DataType dataType(ConstantType type) {
  static constexpr MTL::DataType kTypes[] = {MTL::DataTypeBool, MTL::DataTypeInt, MTL::DataTypeUInt,
                                             MTL::DataTypeFloat};
  const auto number = static_cast<size_t>(type);
  return number < std::size(kTypes) ? kTypes[number] : MTL::DataTypeNone;
}

Error unknownFunction(const MetalLibrary& library, const KernelKey& key) {
  return metalError(ErrorCode::shaderBuild, fmt::format("library {} has no such function", library.label()),
                    key.function, oneOf(library.functionNames(), "a library with kernels"),
                    "Export the kernel with export_kernel or instantiate_kernel, or correct the name.");
}

Error unusable(std::string_view what, const KernelKey& key, const NS::Error* error) {
  return metalError(ErrorCode::shaderBuild, what, reason(error),
                    fmt::format("{} with a value of the declared type for each constant it needs", key.text()),
                    "Correct the kernel or its constants.");
}

// Metal refuses a function if a constant has no value, so none defaults to false or zero.
Result<Owned<MTL::Function>> makeFunction(MetalLibrary& library, const KernelKey& key) {
  const auto names = library.functionNames();
  if (!std::binary_search(names.begin(), names.end(), key.function)) return unknownFunction(library, key);
  MNK_TRY(const auto native, library.nativeWith(key.function));
  const auto values = owned(MTL::FunctionConstantValues::alloc()->init());
  for (const FunctionConstant& constant : key.constants) {
    values->setConstantValue(&constant.bits, dataType(constant.type), constant.index);
  }
  NS::Error* error = nullptr;
  auto function = owned(native->newFunction(nsText(key.function), values.get(), &error));
  if (!function) return unusable(fmt::format("function {} cannot be specialized", key.function), key, error);
  return function;
}

uint32_t number(NS::UInteger value) {
  return static_cast<uint32_t>(value);
}

std::vector<Argument> argumentsOf(const MTL::ComputePipelineReflection* reflection) {
  std::vector<Argument> arguments;
  const NS::Array* bindings = reflection ? reflection->bindings() : nullptr;
  const NS::UInteger count = bindings ? bindings->count() : 0;
  for (NS::UInteger i = 0; i < count; ++i) {
    const auto* binding = bindings->object<MTL::Binding>(i);
    if (!binding->used()) continue;
    Argument argument{.index = number(binding->index())};
    if (binding->type() == MTL::BindingTypeBuffer) {
      argument.kind = Argument::Kind::buffer;
      const auto* buffer = static_cast<const MTL::BufferBinding*>(binding);
      argument.minimumBytes = number(buffer->bufferDataSize());
      argument.alignment = std::max(1u, number(buffer->bufferAlignment()));
      // Metal does not distinguish references from pointers.
      argument.mayBeEmpty = argument.minimumBytes <= kNothingBytes;
      argument.isReadOnly = binding->access() == MTL::ArgumentAccessReadOnly;
    } else if (binding->type() == MTL::BindingTypeThreadgroupMemory && binding->argument()) {
      // An array that the kernel declares is not an argument.
      argument.kind = Argument::Kind::threadgroupMemory;
      argument.minimumBytes = number(static_cast<const MTL::ThreadgroupBinding*>(binding)->threadgroupMemoryDataSize());
    } else {
      continue;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

}  // namespace

NativeLibrary::NativeLibrary(Owned<MTL::Library> native, std::string label, LibraryOrigin origin)
    : MetalLibrary(std::move(label), std::move(origin)),
      native_(std::move(native)),
      names_(sortedNames(*native_.get())) {
  native_->setLabel(nsText(this->label()));
}

NativeLibrary::~NativeLibrary() {
  const AutoreleasePool pool;
  native_.reset();
}

Result<std::shared_ptr<NativeLibrary>> makeUserLibrary(MTL::Device* device, const LibrarySource& source) {
  const bool isFile = source.kind == LibrarySource::Kind::path;
  const std::string& label = source.label.empty() && isFile ? source.value : source.label;
  if (isFile && source.value.ends_with(".metallib")) {
    return loadLibrary(device, source.value, label, LibraryOrigin::Kind::givenFile);
  }
  LibraryOrigin origin{LibraryOrigin::Kind::givenText, {}};
  std::string kernels = source.value;
  if (isFile) {
    origin = {LibraryOrigin::Kind::givenFile, source.value};
    MNK_TRY(auto read, readText(source.value));
    kernels = std::move(read);
  }
  const std::string whole = fmt::format("{}\n#line 1 \"{}\"\n{}", embeddedWords(), quotable(label), kernels);
  return compileText(device, whole, label, std::move(origin));
}

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

MetalPipeline::MetalPipeline(Owned<MTL::ComputePipelineState> native, std::vector<Argument> arguments)
    : native_(std::move(native)),
      arguments_(std::move(arguments)),
      maxThreads_(number(native_->maxTotalThreadsPerThreadgroup())),
      staticThreadgroupBytes_(number(native_->staticThreadgroupMemoryLength())) {}

MetalPipeline::~MetalPipeline() {
  const AutoreleasePool pool;
  native_.reset();
}

Result<std::shared_ptr<Pipeline>> MetalPipeline::make(MTL::Device* device, std::shared_ptr<MetalLibrary> library,
                                                      const KernelKey& key) {
  const AutoreleasePool pool;
  MNK_TRY(auto function, makeFunction(*library, key));
  const auto descriptor = owned(MTL::ComputePipelineDescriptor::alloc()->init());
  descriptor->setComputeFunction(function.get());
  descriptor->setLabel(nsText(key.text()));
  MTL::ComputePipelineReflection* reflection = nullptr;
  NS::Error* error = nullptr;
  auto native =
      owned(device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionArgumentInfo, &reflection, &error));
  if (!native) return unusable(fmt::format("no pipeline can be made of {}", key.text()), key, error);
  if (native->threadExecutionWidth() != kSimdgroupWidth) {
    return metalError(ErrorCode::unsupported, "this GPU's simdgroups have another width",
                      fmt::format("{} threads", native->threadExecutionWidth()),
                      fmt::format("{} threads", kSimdgroupWidth), "Use an Apple GPU, or the Host device.");
  }
  return std::shared_ptr<Pipeline>(std::make_shared<MetalPipeline>(std::move(native), argumentsOf(reflection)));
}

}  // namespace mnk::metal
