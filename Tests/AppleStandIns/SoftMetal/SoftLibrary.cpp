#include "SoftLibrary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "Devices/Metal/EmbeddedShaders.hpp"
#include "HostLibrary.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Metallib.hpp"
#include "ReferencedConstants.hpp"

namespace softmetal {

namespace {

constexpr uint64_t kVersion3_2 = (3 << 16) | 2;

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

SoftLibrary* openFile(SoftDevice* device, const std::string& path, SoftError** error) {
  if (shallFail(Call::library)) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorInternal, "the library was made to fail");
    return nullptr;
  }
  const MetallibFile file = readMetallib(path);
  if (!file.isThere) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorFileNotFound, fmt::format("library not found: {}", path));
    return nullptr;
  }
  if (!file.contents) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorInternal, fmt::format("Invalid library file: {}", path));
    return nullptr;
  }
  const Metallib& contents = *file.contents;
  // Forces the shipped kernels to be linked in.
  if (contents.linked == "MLXNativeKernels") (void)device->host->registry().shippedLibrary();
  auto host =
      contents.linked.empty() ? compiledLibrary(device, contents.text) : mnk::host::linkedLibrary(contents.linked);
  if (!host) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorInternal, host.error().message());
    return nullptr;
  }
  SoftLibrary* const library = makeLibrary(device, std::move(*host), machine().newestLanguage, contents.text);
  for (const std::string& name : contents.hidden) std::erase(library->names, name);
  library->names.insert(library->names.end(), contents.added.begin(), contents.added.end());
  return library;
}

}  // namespace

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

SoftLibrary* SoftDevice::newDefaultLibrary() {
  return nullptr;
}

SoftLibrary* SoftDevice::newLibraryWithURL(SoftURL* url, SoftError** error) {
  SoftURL* const checked = usable(url, "newLibraryWithURL:error:");
  return checked ? openFile(this, checked->path, error) : nullptr;
}

SoftLibrary* SoftDevice::newLibraryWithFile(Object* path, SoftError** error) {
  const auto text = textOf(path, "newLibraryWithFile:error:");
  return text ? openFile(this, *text, error) : nullptr;
}

SoftLibrary* SoftDevice::newLibraryWithSource(Object* source, SoftCompileOptions* options, SoftError** error) {
  const auto text = textOf(source, "newLibraryWithSource:options:error:");
  if (!text) {
    violate(fmt::format("{}: newLibraryWithSource: was given no text", describe()));
    return nullptr;
  }
  if (options && !usable(options, "newLibraryWithSource:options:error:")) return nullptr;
  count(&Counters::compiles);
  addCompiledText(*text);
  std::this_thread::sleep_for(std::chrono::duration<double>(machine().compileSeconds));
  setLastCompileOptions(options ? std::optional(options->values) : std::nullopt);
  if (shallFail(Call::library)) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorInternal, "the library was made to fail");
    return nullptr;
  }
  const uint64_t language = options ? options->values.languageVersion : machine().newestLanguage;
  if (language > machine().newestLanguage) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorUnsupported,
              fmt::format("language version {}.{} is not supported", language >> 16, language & 0xffff));
    return nullptr;
  }
  std::string whole;
  if (options) {
    for (const auto& [name, value] : options->values.macros) whole += fmt::format("#define {} {}\n", name, value);
  }
  if (!whole.empty()) whole += "#line 1\n";
  whole += *text;
  auto host = compiledLibrary(this, whole);
  if (!host) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorCompileFailure, host.error().message());
    return nullptr;
  }
  return makeLibrary(this, std::move(*host), language, whole);
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
  const auto text = textOf(name, "newFunctionWithName:");
  if (!text || shallFail(Call::function) || !has(*text)) return nullptr;
  auto* function = make<SoftFunction>();
  function->library = Ref<SoftLibrary>(this);
  function->key = {.library = host, .function = *text, .constants = {}};
  return function;
}

SoftFunction* SoftLibrary::newFunctionWithConstants(Object* name, SoftConstantValues* values, SoftError** error) {
  const auto text = textOf(name, "newFunctionWithName:constantValues:error:");
  SoftConstantValues* const checked = usable(values, "newFunctionWithName:constantValues:error:");
  if (!text || !checked) return nullptr;
  if (!has(*text)) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorFunctionNotFound,
              fmt::format("Function {} was not found in the library", *text));
    return nullptr;
  }
  SoftFunction* function = newFunction(name);
  if (!function) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorInternal, "the function was made to fail");
    return nullptr;
  }
  function->key.constants = checked->values;
  // As in Metal, a constant needs a value even if another constant disables its use; extra values are ignored.
  const auto& linked = static_cast<const mnk::host::HostLibrary&>(*host);
  const auto* file = findFile([&](const auto& each) { return this->text.empty() && each.has(*text); });
  const std::string missing = missingConstant(file ? file->text() : this->text, *text, linked, function->key.constants);
  if (!missing.empty()) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorCompileFailure,
              fmt::format("Function {} cannot be specialized: constant {} has no value", *text, missing));
    release(function);
    return nullptr;
  }
  std::erase_if(function->key.constants, [&](const auto& value) { return linked.constants(value.index).empty(); });
  std::sort(function->key.constants.begin(), function->key.constants.end());
  // As on a Mac, constants are applied now; an invalid one is an error of this call.
  auto pipeline = owner->host->registry().pipeline(function->key);
  if (!pipeline) {
    giveError(error, kLibraryErrorDomain, MTL::LibraryErrorCompileFailure, pipeline.error().message());
    release(function);
    return nullptr;
  }
  return function;
}

void SoftFunction::finish() {
  key.library.reset();
  library = {};
}

void SoftConstantValues::set(const void* value, MTL::DataType type, NS::UInteger index) {
  setRange(value, type, NS::Range(index, 1));
}

void SoftConstantValues::setRange(const void* first, MTL::DataType type, NS::Range range) {
  const auto* bytes = static_cast<const std::byte*>(first);
  for (NS::UInteger i = 0; i < range.length; ++i) {
    const auto index = static_cast<uint32_t>(range.location + i);
    std::erase_if(values, [&](const mnk::FunctionConstant& value) { return value.index == index; });
    const auto read = [&](auto value) {
      std::memcpy(&value, bytes, sizeof value);
      bytes += sizeof value;
      values.emplace_back(index, value);
    };
    switch (type) {
      case MTL::DataTypeBool:
        read(false);
        break;
      case MTL::DataTypeInt:
        read(int32_t(0));
        break;
      case MTL::DataTypeUInt:
        read(uint32_t(0));
        break;
      case MTL::DataTypeFloat:
        read(0.0f);
        break;
      default:
        violate(fmt::format("a function constant has MTLDataType {}; SoftMetal knows bool, int, uint and float",
                            static_cast<unsigned long>(type)));
        return;
    }
  }
}

void SoftCompileOptions::setPreprocessorMacros(SoftDictionary* dictionary) {
  macros = Ref<SoftDictionary>(dictionary ? usable(dictionary, "setPreprocessorMacros:") : nullptr);
  values.macros.clear();
  if (!macros) return;
  for (const auto& [name, value] : macros->entries) {
    values.macros[textOf(name.get(), "a macro's name").value_or("")] = valueText(value.get());
  }
}

void defineLibraries() {
  define<SoftConstantValues>("MTLFunctionConstantValues")
      .withAlloc()
      .on<&SoftConstantValues::set>("setConstantValue:type:atIndex:")
      .on<&SoftConstantValues::setRange>("setConstantValues:type:withRange:")
      .on<&SoftConstantValues::reset>("reset");
  const auto hasMathMode = [] { return machine().hasMathMode; };
  define<SoftCompileOptions>("MTLCompileOptions")
      .withAlloc()
      .on<&SoftCompileOptions::languageVersion>("languageVersion")
      .on<&SoftCompileOptions::setLanguageVersion>("setLanguageVersion:")
      .on<&SoftCompileOptions::fastMathEnabled>("fastMathEnabled")
      .on<&SoftCompileOptions::setFastMathEnabled>("setFastMathEnabled:")
      .on<&SoftCompileOptions::mathMode>("mathMode", hasMathMode)
      .on<&SoftCompileOptions::setMathMode>("setMathMode:", hasMathMode)
      .on<&SoftCompileOptions::preprocessorMacros>("preprocessorMacros")
      .on<&SoftCompileOptions::setPreprocessorMacros>("setPreprocessorMacros:")
      .on<&SoftCompileOptions::libraryTypeMessage>("libraryType")
      .on<&SoftCompileOptions::setLibraryType>("setLibraryType:")
      .on<&SoftCompileOptions::optimizationLevel>("optimizationLevel")
      .on<&SoftCompileOptions::setOptimizationLevel>("setOptimizationLevel:");
  define<SoftLibrary>("MTLLibrary")
      .on<&SoftLibrary::labelMessage>("label")
      .on<&SoftLibrary::setLabelMessage>("setLabel:")
      .on<&SoftLibrary::device>("device")
      .on<&SoftLibrary::functionNames>("functionNames")
      .on<&SoftLibrary::newFunction>("newFunctionWithName:")
      .on<&SoftLibrary::newFunctionWithConstants>("newFunctionWithName:constantValues:error:");
  define<SoftFunction>("MTLFunction")
      .on<&SoftFunction::labelMessage>("label")
      .on<&SoftFunction::setLabelMessage>("setLabel:")
      .on<&SoftFunction::device>("device")
      .on<&SoftFunction::name>("name")
      .on<&SoftFunction::functionType>("functionType");
}

}  // namespace softmetal
