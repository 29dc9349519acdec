// Libraries and pipelines of the Host device, and how libraries are compiled at run time.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "Executor/Module.h"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "Support/Errors.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

// An error of the Host device itself.
inline Error hostError(ErrorCode code, std::string_view what, std::string_view got, std::string_view expected,
                       std::string_view fix, bool retryable = false) {
  return makeError(code, "Host device", what, got, expected, fix, retryable);
}

inline constexpr std::string_view kShippedLabel = "MLXNativeKernels";

inline constexpr char kModuleFile[] = "Module.so";

// A module compiled at run time: the dlopen handle and, if lines are needed, its file. Closes both.
struct LoadedObject {
  void* handle = nullptr;
  int file = -1;                             // unlinked
  std::optional<TemporaryDirectory> folder;  // on macOS, where line information is in a second file

  LoadedObject() = default;
  LoadedObject(LoadedObject&& other) noexcept
      : handle(std::exchange(other.handle, nullptr)),
        file(std::exchange(other.file, -1)),
        folder(std::move(other.folder)) {}
  void keep(TemporaryDirectory directory);
  std::string path() const;  // valid in other processes, too
  LoadedObject& operator=(LoadedObject&&) = delete;
  ~LoadedObject();
};

// How a module was compiled.
struct ModuleVariant {
  bool checked = false;
  bool perturbed = false;
  HostOptions::Level level = HostOptions::Level::baseline;
  std::string compiler;
  std::string file;      // the only file of a library in it; empty: a separate text
  std::string function;  // the only kernel in it; empty: all kernels
  auto operator<=>(const ModuleVariant&) const = default;
};

// The kernels of a module with one label.
class HostLibrary final : public Library {
 public:
  // The program's kernels.
  HostLibrary(std::string label, const Module& module) : HostLibrary(label, label, module, {}, {}, {}) {}
  // Kernels of a module compiled from this source.
  HostLibrary(std::string label, std::string registeredLabel, const Module& module, LoadedObject object,
              std::optional<LibrarySource> source, ModuleVariant variant);
  ~HostLibrary() override;

  std::string_view label() const override { return label_; }
  const LibraryOrigin& origin() const override { return origin_; }
  std::vector<std::string> functionNames() const override;

  // The kernel for the best instruction set up to `limit`, or null.
  const RegisteredKernel* find(std::string_view function, HostOptions::Level limit) const;
  // The constants declared with this index.
  std::vector<const RegisteredConstant*> constants(uint32_t index) const;
  const Module& module() const { return module_; }
  const LoadedObject& object() const { return object_; }
  // The source of this kernel: the library's text, or a file that was compiled into the program.
  LibrarySource sourceOf(const RegisteredKernel& kernel) const;
  bool isVariant(bool checked, bool perturbed) const {
    return variant_.checked == checked && variant_.perturbed == perturbed;
  }

  // Its kernels, or one of them, compiled as this variant; `compile` runs once for each variant.
  Result<std::shared_ptr<HostLibrary>> variant(const ModuleVariant& wanted,
                                               const std::function<Result<std::shared_ptr<HostLibrary>>()>& compile);

  // Workers are reused by later dispatches. Null: out of memory.
  Worker* takeWorker() noexcept;
  void giveBack(Worker* worker) noexcept;

 private:
  bool isOurs(const char* registeredLabel) const { return registeredLabel_ == registeredLabel; }

  std::string label_;
  std::string registeredLabel_;
  const Module& module_;
  LoadedObject object_;
  std::optional<LibrarySource> source_;
  LibraryOrigin origin_;
  ModuleVariant variant_;
  std::mutex mutex_;
  std::vector<Worker*> workers_;  // unused workers
  size_t workersMade_ = 0;
  std::mutex variantsMutex_;  // held while a variant compiles
  std::map<ModuleVariant, std::shared_ptr<HostLibrary>> variants_;
};

// A library whose source was compiled into this program with the given label (HostKernels.h), as tests do.
Result<std::shared_ptr<Library>> linkedLibrary(std::string_view label);

// A kernel with the values of its function constants.
class HostPipeline final : public Pipeline {
 public:
  // `whole` has all functions and constants that a key may name; `library` has the function that runs.
  static Result<std::shared_ptr<Pipeline>> make(const HostLibrary& whole, std::shared_ptr<HostLibrary> library,
                                                const KernelKey& key, HostOptions::Level limit);

  HostPipeline(std::shared_ptr<HostLibrary> library, const RegisteredKernel* kernel, const Arguments& constants,
               std::vector<Argument> arguments)
      : library_(std::move(library)), kernel_(kernel), constants_(constants), arguments_(std::move(arguments)) {}

  uint32_t maxThreadsPerThreadgroup() const override { return kMaxLanes; }
  std::span<const Argument> arguments() const override { return arguments_; }

  HostLibrary& library() const { return *library_; }
  const RegisteredKernel& kernel() const { return *kernel_; }
  // Only the constants are filled in.
  const Arguments& constants() const { return constants_; }

 private:
  std::shared_ptr<HostLibrary> library_;
  const RegisteredKernel* kernel_;
  Arguments constants_;
  std::vector<Argument> arguments_;
};

// Compiles kernel source into a separate module with a C++ compiler.
Result<std::shared_ptr<HostLibrary>> compileLibrary(const LibrarySource& source, const HostOptions& options);

// The library with this function, as a device that checks or perturbs runs it: the function's source compiled again,
// without the library's other files, since compiling all of them takes half a minute. Returns the library itself if it
// was compiled for that, or has no such function.
Result<std::shared_ptr<HostLibrary>> libraryFor(const std::shared_ptr<HostLibrary>& library,
                                                const std::string& function, const HostOptions& options);

}  // namespace mnk::host
