// A library of the Host device: the kernels of a module that carry one label.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "Executor/Module.h"
#include "MLXNativeKernels/HostDevice.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

inline constexpr std::string_view kShippedLabel = "MLXNativeKernels";

inline constexpr char kModuleFile[] = "Module.so";

// A module compiled at run time: what dlopen gave, and, where lines are wanted, its file. Closes both.
struct LoadedObject {
  void* handle = nullptr;
  int file = -1;                             // it has no name any more
  std::optional<TemporaryDirectory> folder;  // on a Mac, where lines are in a second file beside the first

  LoadedObject() = default;
  LoadedObject(LoadedObject&& other) noexcept
      : handle(std::exchange(other.handle, nullptr)),
        file(std::exchange(other.file, -1)),
        folder(std::move(other.folder)) {}
  void keep(TemporaryDirectory directory);
  std::string path() const;  // for other processes, too
  LoadedObject& operator=(LoadedObject&&) = delete;
  ~LoadedObject();
};

// How a module was compiled.
struct ModuleVariant {
  bool checked = false;
  bool perturbed = false;
  Level level = Level::baseline;
  std::string compiler;
  std::string file;      // the only one of a library's files in it; empty: it is a text of its own
  std::string function;  // the only kernel in it; empty: all of its text
  auto operator<=>(const ModuleVariant&) const = default;
};

class HostLibrary final : public Library {
 public:
  // Kernels of the program.
  HostLibrary(std::string label, const Module& module) : HostLibrary(label, label, module, {}, {}, {}) {}
  // Kernels of a module compiled from this text.
  HostLibrary(std::string label, std::string registeredLabel, const Module& module, LoadedObject object,
              std::optional<LibrarySource> source, ModuleVariant variant);
  ~HostLibrary() override;

  std::string_view label() const override { return label_; }
  const LibraryOrigin& origin() const override { return origin_; }
  std::vector<std::string> functionNames() const override;

  // Compiled for the best instruction set up to `limit`; null where there is none.
  const RegisteredKernel* find(std::string_view function, Level limit) const;
  // The constants declared with this index.
  std::vector<const RegisteredConstant*> constants(uint32_t index) const;
  const Module& module() const { return module_; }
  const LoadedObject& object() const { return object_; }
  // What this kernel of the library was compiled from: the text given, or a file that was compiled into the program.
  LibrarySource sourceOf(const RegisteredKernel& kernel) const;
  bool isVariant(bool checked, bool perturbed) const {
    return variant_.checked == checked && variant_.perturbed == perturbed;
  }

  // Its kernels, or one of them, compiled so; `compile` runs once for each variant.
  Result<std::shared_ptr<HostLibrary>> variant(const ModuleVariant& wanted,
                                               const std::function<Result<std::shared_ptr<HostLibrary>>()>& compile);

  // Workers are kept for later dispatches. Null: out of memory.
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
  std::vector<Worker*> workers_;  // those that no dispatch uses
  size_t workersMade_ = 0;
  std::mutex variantsMutex_;  // held while a variant compiles
  std::map<ModuleVariant, std::shared_ptr<HostLibrary>> variants_;
};

// A library whose text was compiled into this program under the given label (HostKernels.h says how).
// Tests bring their kernels in this way.
Result<std::shared_ptr<Library>> linkedLibrary(std::string_view label);

}  // namespace mnk::host
