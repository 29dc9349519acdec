#include <dlfcn.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "ChildProcess.hpp"
#include "Executor/Worker.h"
#include "HostLibrary.hpp"
#include "Support/Errors.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

namespace {

// The sources of MetalStdlib and the executor, for libraries that are compiled at run time: paths relative to this
// file's folder, and their texts, each of which ends with a zero.
#if defined(__has_embed)
#pragma clang diagnostic ignored "-Wc23-extensions"
constexpr std::string_view kPaths[] = {"HostKernels.h",
                                       "Executor/Callbacks.cpp",
                                       "Executor/Executor.cpp",
                                       "Executor/Fiber.h",
                                       "Executor/Module.h",
                                       "Executor/Scheduler.cpp",
                                       "Executor/Worker.h",
                                       "MetalStdlib/Accuracy.h",
                                       "MetalStdlib/Common.h",
                                       "MetalStdlib/Kernels.h",
                                       "MetalStdlib/Lanes.h",
                                       "MetalStdlib/Math.h",
                                       "MetalStdlib/PackedVectors.h",
                                       "MetalStdlib/PerturbedMath.h",
                                       "MetalStdlib/SimdgroupMatrix.h",
                                       "MetalStdlib/Simdgroups.h",
                                       "MetalStdlib/Types.h",
                                       "MetalStdlib/Vectors.h"};
constexpr char kTexts[] = {
#embed "HostKernels.h" suffix(, 0, )
#embed "Executor/Callbacks.cpp" suffix(, 0, )
#embed "Executor/Executor.cpp" suffix(, 0, )
#embed "Executor/Fiber.h" suffix(, 0, )
#embed "Executor/Module.h" suffix(, 0, )
#embed "Executor/Scheduler.cpp" suffix(, 0, )
#embed "Executor/Worker.h" suffix(, 0, )
#embed "MetalStdlib/Accuracy.h" suffix(, 0, )
#embed "MetalStdlib/Common.h" suffix(, 0, )
#embed "MetalStdlib/Kernels.h" suffix(, 0, )
#embed "MetalStdlib/Lanes.h" suffix(, 0, )
#embed "MetalStdlib/Math.h" suffix(, 0, )
#embed "MetalStdlib/PackedVectors.h" suffix(, 0, )
#embed "MetalStdlib/PerturbedMath.h" suffix(, 0, )
#embed "MetalStdlib/SimdgroupMatrix.h" suffix(, 0, )
#embed "MetalStdlib/Simdgroups.h" suffix(, 0, )
#embed "MetalStdlib/Types.h" suffix(, 0, )
#embed "MetalStdlib/Vectors.h" suffix(, 0, )
};
#else  // the compiler that built this file does not support #embed
constexpr std::span<const std::string_view> kPaths;
constexpr std::string_view kTexts;
#endif

constexpr char kModuleLabel[] = "module";  // a shared object has one library, so any label works

std::string labelOf(const LibrarySource& source) {
  if (!source.label.empty()) return source.label;
  return source.kind == LibrarySource::Kind::path ? std::filesystem::path(source.value).filename().string() : "text";
}

// A C++ string literal.
std::string stringLiteral(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result + "\"";
}

// The translation unit: the executor, the kernels, and the function that the device calls. It avoids large C++ headers:
// with <string_view>, a small kernel takes 50% longer to compile.
std::string moduleText(std::string_view kernels, const ModuleVariant& variant) {
  const std::string only = variant.function.empty()
                               ? ""
                               : fmt::format("#define MNK_HOST_WANTS(name) (__builtin_strcmp(name, {}) == 0)\n",
                                             stringLiteral(variant.function));
  return fmt::format(R"({}#define MNK_HOST_LIBRARY "{}"
#define MNK_HOST_LEVEL {}
#define MNK_HOST_LOADED_MODULE
#define MNK_HOST_CHECKED {:d}
#define MNK_HOST_PERTURBED {:d}
#include "Executor/Executor.cpp"
#include "Executor/Scheduler.cpp"
#include "Executor/Callbacks.cpp"
extern "C" __attribute__((visibility("default"))) const mnk::host::Module* {}() {{
  return &mnk::host::programModule();
}}
#include "HostKernels.h"
MNK_HOST_KERNELS_BEGIN
#include {}
MNK_HOST_KERNELS_END
)",
                     only, kModuleLabel, static_cast<int>(variant.level), variant.checked, variant.perturbed,
                     kModuleSymbol, kernels);
}

// Kernel source is plain Metal or uses MetalCompat.h; both sets of headers are already included.
Result<void> writeSources(const TemporaryDirectory& directory, const LibrarySource& source,
                          const ModuleVariant& variant) {
  constexpr std::string_view kEmptyHeader = "#pragma once\n";
  constexpr std::string_view kMetalHeaders[] = {"metal_stdlib",  "metal_math",      "metal_common",
                                                "metal_integer", "metal_simdgroup", "metal_simdgroup_matrix",
                                                "metal_atomic",  "metal_geometric", "metal_compute"};
  bool written = true;
  std::string_view texts(std::begin(kTexts), std::end(kTexts));
  for (const std::string_view path : kPaths) {
    const size_t length = texts.find('\0');
    written &= directory.write(path, texts.substr(0, length));
    texts.remove_prefix(length + 1);
  }
  for (const std::string_view header : kMetalHeaders) written &= directory.write(header, kEmptyHeader);
  std::string kernels = "\"Text/Kernels.metal\"";
  if (source.kind == LibrarySource::Kind::path) {
    std::error_code ignored;
    kernels = stringLiteral(std::filesystem::absolute(source.value, ignored).lexically_normal().string());
  } else {
    written &= directory.write("Common/MetalCompat.h", kEmptyHeader);
    written &= directory.write("Text/Kernels.metal",
                               fmt::format("#line 1 {}\n{}\n", stringLiteral(labelOf(source)), source.value));
  }
  written &= directory.write("Module.cpp", moduleText(kernels, variant));
  if (written) return {};
  return hostError(ErrorCode::outOfMemory, "kernel text could not be prepared for the compiler",
                   directory.path().string(), "a temporary directory with free space",
                   "Free space there, or set TMPDIR.");
}

std::vector<std::string> flagsOf(const ModuleVariant& variant) {
  std::vector<std::string> flags;
  if (variant.perturbed) {  // transformations that Metal's default fast math allows
    flags.insert(flags.end(), {"-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math"});
  }
  if (variant.checked) {
    // Adds a callback before every load and store, without inline checks or a runtime library, and on undefined
    // behavior. Uninitialized variables get a pattern. -fsanitize=kernel-address would do the first in one flag, but
    // Darwin's compiler refuses it.
    flags.insert(flags.end(), {"-O1", "-gline-tables-only", "-ftrivial-auto-var-init=pattern"});
    flags.insert(flags.end(), {"-fsanitize=address", "-fsanitize-recover=address", "-fno-sanitize-link-runtime"});
    for (const char* option : {"-asan-instrumentation-with-call-threshold=0", "-asan-opt=0", "-asan-stack=0",
                               "-asan-globals=0", "-asan-constructor-kind=none"}) {
      flags.insert(flags.end(), {"-mllvm", option});
    }
    constexpr std::string_view kRules =
        "signed-integer-overflow,unsigned-integer-overflow,implicit-unsigned-integer-truncation,"
        "implicit-signed-integer-truncation,shift-exponent,integer-divide-by-zero,alignment,null,bounds";
    flags.insert(flags.end(), {fmt::format("-fsanitize={}", kRules), fmt::format("-fsanitize-recover={}", kRules),
                               "-fno-sanitize-trap=local-bounds"});
    return flags;
  }
#if MNK_HOST_ASAN
  flags.push_back("-fsanitize=address");
#elif MNK_HOST_TSAN
  flags.push_back("-fsanitize=thread");
#endif
  return flags;
}

ProgramRun compileModule(const ModuleVariant& variant, const TemporaryDirectory& directory) {
  // Half of a lane's stack for one function; the rest is for its callees.
  constexpr size_t kMaxFrameBytes = kLaneStackBytes / 2;
  const std::string product = (directory.path() / kModuleFile).string();
  std::vector<std::string> command = {
      variant.compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-color-diagnostics"};
  const auto flags = flagsOf(variant);
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(),
                 {fmt::format("-Wframe-larger-than={}", kMaxFrameBytes), "-Werror=frame-larger-than",
                  "-I" + directory.path().string(), (directory.path() / "Module.cpp").string(), "-o", product});
  return runProgram(std::move(command), product, (directory.path() / "log").string());
}

Result<std::shared_ptr<HostLibrary>> load(const LibrarySource& source, const ModuleVariant& variant,
                                          TemporaryDirectory directory) {
  const std::string path = (directory.path() / kModuleFile).string();
  LoadedObject object;
  object.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto symbol = object.handle ? reinterpret_cast<ModuleSymbol>(dlsym(object.handle, kModuleSymbol)) : nullptr;
  const Module* module = symbol ? symbol() : nullptr;
  if (!module || module->version != kModuleVersion || module->bytes != sizeof(Module)) {
    const char* const text = object.handle ? "another version of the executor" : dlerror();
    const std::string reason = text ? text : "an unknown reason";
    // The loader says the latter if it has no memory even for its message.
    const bool lacksMemory = reason.find(std::strerror(ENOMEM)) != reason.npos || reason == "out of memory";
    return hostError(
        lacksMemory ? ErrorCode::outOfMemory : ErrorCode::shaderBuild,
        fmt::format("library {} was compiled but cannot be loaded", labelOf(source)), reason,
        "a shared object that this program can load",
        lacksMemory ? "Free memory and try again." : "Check that the compiler makes code for this machine.");
  }
  if (variant.checked) object.keep(std::move(directory));  // findings name lines
  return std::make_shared<HostLibrary>(labelOf(source), kModuleLabel, *module, std::move(object), source, variant);
}

// The compiler's output without the lines about the package's files.
std::string shortened(std::string text) {
  constexpr size_t kMaxLength = 4000;
  const size_t firstError = text.find("error:");
  const size_t line = firstError == std::string::npos ? 0 : text.rfind('\n', firstError);
  text.erase(0, line == std::string::npos ? 0 : line + (line != 0));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMaxLength) text.replace(kMaxLength, std::string::npos, "…");
  return text;
}

// The fix for source that a Metal compiler accepts and the Host device does not, recognized by the compiler's message
// or the quoted lines.
std::string fixFor(std::string_view output) {
  constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
      {"stack frame size", "A thread has room for about 32 KiB of private memory: make its arrays smaller."},
      {"[[function_constant(", "Declare a function constant with pipeline_constant(type, name, index)."},
      {"[[threadgroup(", "Mark a threadgroup parameter with [[threadgroup_memory(index)]]."},
      {"'align_value' attribute", "Declare a threadgroup array with threadgroup_array(type, name, count)."},
  };
  std::string fix = "Correct the text at the lines named.";
  for (const auto& [sign, advice] : kAdvice) {
    if (output.find(sign) != std::string_view::npos) fix += fmt::format(" {}", advice);
  }
  return fix;
}

Result<void> checkSource(const LibrarySource& source) {
  if (source.kind == LibrarySource::Kind::path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(source.value, ignored)) {
      return hostError(ErrorCode::libraryNotFound, "there is no kernel file", source.value, "the path of a .metal file",
                       "Correct the path.");
    }
    if (source.value.find_first_of("\"\n\r\\") != std::string::npos) {
      return hostError(ErrorCode::invalidArgument, "the path of a kernel file cannot be given to a compiler",
                       source.value, "a path without quotes, backslashes and line ends",
                       "Rename the file or its folder.");
    }
  }
  if (!kCanRunPrograms) {
    return hostError(ErrorCode::unsupported, "apps of this system cannot compile kernels on the Host device",
                     labelOf(source), "a system where a program may start a compiler",
                     "Compile the kernels into the program (HostKernels.h), or use the Metal device.");
  }
  if (std::span(kPaths).empty()) {
    return hostError(ErrorCode::unsupported, "this build cannot compile kernels at run time", labelOf(source),
                     "a core built by a compiler that has #embed (clang 19 or later)",
                     "Build with a newer compiler, or compile the kernels into the program (HostKernels.h).");
  }
  return {};
}

ModuleVariant variantFor(const HostOptions& options) {
  return {.checked = options.checking == HostOptions::Checking::full,
          .perturbed = options.perturbsResults,
          .level = options.level,
          .compiler = options.compiler.empty() ? "clang++" : options.compiler};
}

Result<std::shared_ptr<HostLibrary>> compileSource(const LibrarySource& source, const ModuleVariant& variant) {
  MNK_TRY(checkSource(source));
  const std::string label = labelOf(source);
  auto directory = TemporaryDirectory::make();
  if (!directory) {
    return hostError(ErrorCode::outOfMemory, "no temporary directory for the compiler", std::strerror(errno),
                     "a temporary directory that can be written", "Set TMPDIR to one.");
  }
  MNK_TRY(writeSources(*directory, source, variant));
  const ProgramRun run = compileModule(variant, *directory);
  // Some systems report a missing program only from the child, as status 127 without output.
  if (run.spawnError != 0 || (!run.succeeded && run.output.empty())) {
    return hostError(ErrorCode::unsupported, fmt::format("library {} needs a compiler", label),
                     fmt::format("{}: {}", variant.compiler, std::strerror(run.spawnError ? run.spawnError : ENOENT)),
                     "clang++ in the search path", "Install clang, or name it in HostOptions::compiler.");
  }
  if (!run.succeeded) {
    return hostError(ErrorCode::shaderBuild, fmt::format("library {} does not compile", label), shortened(run.output),
                     "Metal Shading Language that the Host device can compile", fixFor(run.output));
  }
  return load(source, variant, std::move(*directory));
}

}  // namespace

Result<std::shared_ptr<HostLibrary>> compileLibrary(const LibrarySource& source, const HostOptions& options) {
  return compileSource(source, variantFor(options));
}

Result<std::shared_ptr<HostLibrary>> libraryFor(const std::shared_ptr<HostLibrary>& library,
                                                const std::string& function, const HostOptions& options) {
  ModuleVariant wanted = variantFor(options);
  if (library->isVariant(wanted.checked, wanted.perturbed)) return library;
  const RegisteredKernel* kernel = library->find(function, options.level);
  if (!kernel) return library;
  wanted.file = kernel->file;
  // Shipped files instantiate large templates that each take seconds to compile, and few are used. Other files have
  // small kernels.
  if (library->label() == kShippedLabel) wanted.function = function;
  return library->variant(wanted, [&] {
    auto compiled = compileSource(library->sourceOf(*kernel), wanted);
    if (compiled || compiled.error().code != ErrorCode::libraryNotFound) return compiled;
    Error error = std::move(compiled).error();
    error.what = fmt::format("library {} must be compiled again for checking, and its text is gone", library->label());
    error.expected = "the file that was compiled into the program";
    error.fix = "Run the program where it was built, or give the kernels as text.";
    return Result<std::shared_ptr<HostLibrary>>(std::move(error));
  });
}

}  // namespace mnk::host
