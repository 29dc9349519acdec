#include "SoftLibrary.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace softmetal {

struct SoftConstantValues : Object {
  std::vector<mnk::FunctionConstant> values;

  void set(const void* bytes, MTL::DataType type, NS::UInteger index) {
    std::erase_if(values, [&](const mnk::FunctionConstant& value) { return value.index == index; });
    const auto read = [&](auto value) {
      std::memcpy(&value, bytes, sizeof value);
      values.emplace_back(static_cast<uint32_t>(index), value);
    };
    switch (type) {
      case MTL::DataTypeBool:
        return read(false);
      case MTL::DataTypeInt:
        return read(int32_t(0));
      case MTL::DataTypeUInt:
        return read(uint32_t(0));
      case MTL::DataTypeFloat:
        return read(0.0f);
      default:
        violate("a function constant has MTLDataType {}; SoftMetal knows bool, int, uint and float",
                static_cast<unsigned long>(type));
    }
  }
};

struct SoftCompileOptions : Object {
  // The newest language version, used by default.
  CompileOptions values = {.languageVersion = (4 << 16)};

  void setLanguageVersion(MTL::LanguageVersion version) { values.languageVersion = version; }
  void setFastMathEnabled(bool enabled) { values.fastMathEnabled = enabled; }
};

struct SoftPipelineDescriptor : Object {
  Ref<SoftFunction> function;

  void finish() { function = {}; }
};

struct SoftBinding : Object {
  bool isUsed = true;
  bool isArgument = true;
  mnk::Pipeline::Argument argument;

  MTL::BindingType type() {
    const bool isBuffer = argument.kind == mnk::Pipeline::Argument::Kind::buffer;
    return isBuffer ? MTL::BindingTypeBuffer : MTL::BindingTypeThreadgroupMemory;
  }
  MTL::BindingAccess access() { return argument.isReadOnly ? MTL::BindingAccessReadOnly : MTL::BindingAccessReadWrite; }
  NS::UInteger index() { return argument.index; }
  NS::UInteger dataSize() { return argument.minimumBytes; }
  NS::UInteger alignment() { return argument.alignment; }
};

struct SoftReflection : Object {
  Ref<SoftArray> bindings;

  void finish() { bindings = {}; }
};

namespace {

constexpr uint64_t kVersion3_2 = (3 << 16) | 2;
constexpr const char* kFirstLine = "soft metallib 1";

std::nullptr_t refuse(SoftError** error, MTL::LibraryError code, std::string_view description) {
  return giveError(error, "MTLLibraryErrorDomain", code, description);
}

// A file that replaces a metallib: a first line that identifies it, lines of names, then optional kernel source. Empty
// if the file is not one.
std::optional<Metallib> readMetallib(std::ifstream& file) {
  std::string line;
  if (!std::getline(file, line) || line != kFirstLine) return std::nullopt;
  Metallib contents;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "text") {
      contents.text.assign(std::istreambuf_iterator<char>(file), {});
    } else if (word == "linked") {
      contents.linked = rest;
    } else if (word == "add") {
      contents.added.push_back(rest);
    } else if (word == "hide") {
      contents.hidden.push_back(rest);
    } else {
      return std::nullopt;
    }
  }
  return contents;
}

// The shipped kernel file with this text or function.
template <typename Fits>
const mnk::metal::EmbeddedFile* findFile(Fits fits) {
  const auto files = mnk::metal::embeddedFiles();
  const auto found = std::find_if(files.begin(), files.end(), fits);
  return found == files.end() ? nullptr : &*found;
}
// The text as is, or as user text, which follows MetalCompat.h.
const mnk::metal::EmbeddedFile* fileWithText(const std::string& text) {
  static const std::string words = mnk::metal::embeddedWords();
  const size_t begin = text.starts_with(words + "\n#line 1 \"") ? text.find('\n', words.size() + 1) + 1 : 0;
  return findFile([&](const auto& file) { return text.compare(begin, std::string::npos, file.text()) == 0; });
}

SoftLibrary* makeLibrary(SoftDevice* device, std::shared_ptr<mnk::Library> host, uint64_t language,
                         const std::string& text) {
  auto* library = make<SoftLibrary>();
  library->owner = Ref<SoftDevice>(device);
  const auto* file = fileWithText(text);
  library->names = file ? file->functionNames() : host->functionNames();
  std::erase_if(library->names, [&](const std::string& name) {
    const bool isOfHost = name.ends_with("_fewLanes");
    return isOfHost || (language < kVersion3_2 && name == mnk::metal::kFencesFunction);
  });
  library->host = std::move(host);
  library->text = text;
  return library;
}

// Host libraries are cached by their text for the life of the process, like the system's shader cache.
mnk::Result<std::shared_ptr<mnk::Library>> compiledLibrary(SoftDevice* device, const std::string& text) {
  // The program already has these functions, compiled from the same files. The suite EmbeddedShaders checks that the
  // text is equivalent.
  if (fileWithText(text)) return device->host->registry().shippedLibrary();
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, std::shared_ptr<mnk::Library>>;
  std::lock_guard lock(mutex);
  if (const auto found = known.find(text); found != known.end()) return found->second;
  auto library = device->host->registry().library({mnk::LibrarySource::Kind::text, text, "program_source"});
  if (library) known.emplace(text, *library);
  return library;
}

SoftLibrary* openFile(SoftDevice* device, const std::string& path, SoftError** error) {
  if (shallFail(Call::library)) return refuse(error, MTL::LibraryErrorInternal, "the library was made to fail");
  std::ifstream file(path);
  if (!file) return refuse(error, MTL::LibraryErrorFileNotFound, fmt::format("library not found: {}", path));
  const auto read = readMetallib(file);
  if (!read) return refuse(error, MTL::LibraryErrorInternal, fmt::format("Invalid library file: {}", path));
  const Metallib& contents = *read;
  // Forces the shipped kernels to be linked in.
  if (contents.linked == "MLXNativeKernels") (void)device->host->registry().shippedLibrary();
  auto host =
      contents.linked.empty() ? compiledLibrary(device, contents.text) : mnk::host::linkedLibrary(contents.linked);
  if (!host) return refuse(error, MTL::LibraryErrorInternal, host.error().message());
  SoftLibrary* const library = makeLibrary(device, std::move(*host), machine().newestLanguage, contents.text);
  for (const std::string& name : contents.hidden) std::erase(library->names, name);
  library->names.insert(library->names.end(), contents.added.begin(), contents.added.end());
  return library;
}

}  // namespace

bool writeMetallib(const std::string& path, const Metallib& contents) {
  std::ofstream file(path);
  file << kFirstLine << '\n';
  if (!contents.linked.empty()) file << "linked " << contents.linked << '\n';
  for (const std::string& name : contents.added) file << "add " << name << '\n';
  for (const std::string& name : contents.hidden) file << "hide " << name << '\n';
  if (contents.linked.empty()) file << "text\n" << contents.text;
  file.close();
  return bool(file);
}

SoftLibrary* SoftDevice::newLibraryWithURL(SoftURL* url, SoftError** error) {
  SoftURL* const checked = usable(url);
  return checked ? openFile(this, checked->path, error) : nullptr;
}

SoftLibrary* SoftDevice::newLibraryWithSource(Object* source, SoftCompileOptions* options, SoftError** error) {
  const auto text = textOf(source);
  if (!text) return violate("{}: newLibraryWithSource: was given no text", describe());
  if (options && !usable(options)) return nullptr;
  count(&Counters::compiles);
  addCompiledText(*text);
  std::this_thread::sleep_for(std::chrono::duration<double>(machine().compileSeconds));
  setLastCompileOptions(options ? std::optional(options->values) : std::nullopt);
  if (shallFail(Call::library)) return refuse(error, MTL::LibraryErrorInternal, "the library was made to fail");
  const uint64_t language = options ? options->values.languageVersion : machine().newestLanguage;
  if (language > machine().newestLanguage) {
    return refuse(error, MTL::LibraryErrorUnsupported,
                  fmt::format("language version {}.{} is not supported", language >> 16, language & 0xffff));
  }
  auto host = compiledLibrary(this, *text);
  if (!host) return refuse(error, MTL::LibraryErrorCompileFailure, host.error().message());
  return makeLibrary(this, std::move(*host), language, *text);
}

void SoftLibrary::finish() {
  owner = {};
  host.reset();
}

bool SoftLibrary::has(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Object* SoftLibrary::functionNames() {
  std::vector<Ref<Object>> strings;
  for (const std::string& name : names) strings.push_back(Ref<Object>::adopt(makeString(name)));
  return autoreleased(makeArray(std::move(strings)));
}

SoftFunction* SoftLibrary::newFunction(Object* name) {
  const auto text = textOf(name);
  if (!text || shallFail(Call::function) || !has(*text)) return nullptr;
  auto* function = make<SoftFunction>();
  function->library = Ref<SoftLibrary>(this);
  function->key = {.library = host, .function = *text, .constants = {}};
  return function;
}

SoftFunction* SoftLibrary::newFunctionWithConstants(Object* name, SoftConstantValues* values, SoftError** error) {
  const auto text = textOf(name);
  SoftConstantValues* const checked = usable(values);
  if (!text || !checked) return nullptr;
  if (!has(*text)) {
    return refuse(error, MTL::LibraryErrorFunctionNotFound,
                  fmt::format("Function {} was not found in the library", *text));
  }
  SoftFunction* function = newFunction(name);
  if (!function) return refuse(error, MTL::LibraryErrorInternal, "the function was made to fail");
  function->key.constants = checked->values;
  // As in Metal, a constant needs a value even if another constant disables its use; extra values are ignored.
  const auto& linked = static_cast<const mnk::host::HostLibrary&>(*host);
  const auto* file = findFile([&](const auto& each) { return this->text.empty() && each.has(*text); });
  const std::string missing = missingConstant(file ? file->text() : this->text, *text, linked, function->key.constants);
  if (!missing.empty()) {
    release(function);
    return refuse(error, MTL::LibraryErrorCompileFailure,
                  fmt::format("Function {} cannot be specialized: constant {} has no value", *text, missing));
  }
  std::erase_if(function->key.constants, [&](const auto& value) { return linked.constants(value.index).empty(); });
  std::sort(function->key.constants.begin(), function->key.constants.end());
  // As on a Mac, constants are applied now; an invalid one is an error of this call.
  auto pipeline = owner->host->registry().pipeline(function->key);
  if (!pipeline) {
    release(function);
    return refuse(error, MTL::LibraryErrorCompileFailure, pipeline.error().message());
  }
  return function;
}

void SoftFunction::finish() {
  key.library.reset();
  library = {};
}

// ---- Pipelines ----

namespace {

SoftReflection* reflect(const mnk::Pipeline& pipeline) {
  std::vector<Ref<Object>> bindings;
  for (const mnk::Pipeline::Argument& argument : pipeline.arguments()) {
    auto* binding = make<SoftBinding>();
    binding->argument = argument;
    bindings.push_back(Ref<Object>::adopt(binding));
  }
  if (machine().reflectsOthers) {
    auto* unused = make<SoftBinding>();
    unused->argument = {.index = 30, .minimumBytes = 4};
    unused->isUsed = false;
    auto* array = make<SoftBinding>();
    array->argument = {.kind = mnk::Pipeline::Argument::Kind::threadgroupMemory, .index = 0, .minimumBytes = 64};
    array->isArgument = false;
    for (SoftBinding* other : {unused, array}) bindings.push_back(Ref<Object>::adopt(other));
  }
  auto* reflection = make<SoftReflection>();
  reflection->bindings = Ref<SoftArray>::adopt(makeArray(std::move(bindings)));
  return autoreleased(reflection);
}

SoftPipeline* makePipeline(SoftDevice* device, SoftFunction* function, SoftError** error) {
  addPipeline(fmt::format("{} {}", function->key.text(), std::hash<std::string>()(function->library->text)));
  if (function->library->owner.get() != device) {
    return violate("{}: a pipeline was requested with function {} of another device", device->describe(),
                   function->key.function);
  }
  if (shallFail(Call::pipeline)) return giveError(error, "CompilerError", 2, "the pipeline was made to fail");
  auto host = device->host->registry().pipeline(function->key);
  if (!host) return giveError(error, "CompilerError", 2, host.error().message());
  auto* pipeline = make<SoftPipeline>();
  pipeline->owner = Ref<SoftDevice>(device);
  pipeline->key = function->key;
  pipeline->host = std::move(*host);
  return pipeline;
}

}  // namespace

void SoftPipeline::finish() {
  key.library.reset();
  host.reset();
  owner = {};
}

SoftPipeline* SoftDevice::newPipeline(SoftFunction* function, SoftError** error) {
  SoftFunction* const checked = usable(function);
  return checked ? makePipeline(this, checked, error) : nullptr;
}

SoftPipeline* SoftDevice::newPipelineDescribed(SoftPipelineDescriptor* descriptor, MTL::PipelineOption options,
                                               SoftReflection** reflection, SoftError** error) {
  SoftPipelineDescriptor* const checked = usable(descriptor);
  if (!checked) return nullptr;
  if (!checked->function) return violate("{} has no computeFunction", checked->describe());
  SoftPipeline* const pipeline = newPipeline(checked->function.get(), error);
  if (!pipeline) return nullptr;
  pipeline->setLabelText(checked->labelText());
  if (reflection && options != MTL::PipelineOptionNone) *reflection = reflect(*pipeline->host);
  return pipeline;
}

void defineLibraries() {
  define<SoftConstantValues>("MTLFunctionConstantValues")
      .withAlloc()
      .on<&SoftConstantValues::set>("setConstantValue:type:atIndex:");
  define<SoftCompileOptions>("MTLCompileOptions")
      .withAlloc()
      .on<&SoftCompileOptions::setLanguageVersion>("setLanguageVersion:")
      .on<&SoftCompileOptions::setFastMathEnabled>("setFastMathEnabled:");
  define<SoftLibrary>("MTLLibrary")
      .on<&SoftLibrary::owner>("device")
      .on<&SoftLibrary::functionNames>("functionNames")
      .on<&SoftLibrary::newFunction>("newFunctionWithName:")
      .on<&SoftLibrary::newFunctionWithConstants>("newFunctionWithName:constantValues:error:");
  define<SoftFunction>("MTLFunction");
  define<SoftPipelineDescriptor>("MTLComputePipelineDescriptor")
      .withAlloc()
      .sets<&SoftPipelineDescriptor::function>("setComputeFunction:");
  define<SoftPipeline>("MTLComputePipelineState")
      .on<&SoftPipeline::maxThreads>("maxTotalThreadsPerThreadgroup")
      .on<&SoftPipeline::threadExecutionWidth>("threadExecutionWidth")
      .on<&SoftPipeline::staticMemory>("staticThreadgroupMemoryLength");
  define<SoftReflection>("MTLComputePipelineReflection").on<&SoftReflection::bindings>("bindings");
  define<SoftBinding>("MTLBinding")
      .on<&SoftBinding::type>("type")
      .on<&SoftBinding::access>("access")
      .on<&SoftBinding::index>("index")
      .on<&SoftBinding::isUsed>("isUsed")
      .on<&SoftBinding::isArgument>("isArgument")
      .on<&SoftBinding::dataSize>("bufferDataSize")
      .on<&SoftBinding::alignment>("bufferAlignment")
      .on<&SoftBinding::dataSize>("threadgroupMemoryDataSize");
}

}  // namespace softmetal
