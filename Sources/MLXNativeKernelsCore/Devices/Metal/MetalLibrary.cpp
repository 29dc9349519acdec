#include "MetalLibrary.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "Devices/Metal/EmbeddedShaders.hpp"
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

Result<std::shared_ptr<NativeLibrary>> compileText(MTL::Device* device, const std::string& text, std::string label,
                                                   LibraryOrigin origin, MTL::LanguageVersion version) {
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

}  // namespace mnk::metal
