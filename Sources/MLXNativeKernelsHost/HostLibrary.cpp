#include "HostLibrary.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "HostOptions.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

LibraryOrigin originOf(const std::optional<LibrarySource>& source) {
  if (!source) return {.kind = LibraryOrigin::Kind::program, .path = {}};
  if (source->kind == LibrarySource::Kind::text) return {.kind = LibraryOrigin::Kind::givenText, .path = {}};
  return {.kind = LibraryOrigin::Kind::givenFile, .path = source->value};
}

Error unknownFunction(const HostLibrary& library, const KernelKey& key, HostOptions::Level limit) {
  const auto names = library.functionNames();
  if (std::find(names.begin(), names.end(), key.function) != names.end()) {
    return hostError(ErrorCode::unsupported,
                     fmt::format("library {} was not compiled for this device's instruction set", library.label()),
                     key.function, fmt::format("{} or lower", name(limit)),
                     "Build the library with the device that runs it.");
  }
  return hostError(ErrorCode::shaderBuild, fmt::format("library {} has no such function", library.label()),
                   key.function, oneOf(names, "a library with kernels"),
                   "Export the kernel with export_kernel or instantiate_kernel, or correct the name.");
}

// A library's function constants share their indices; a kernel's files may declare the same one twice.
Result<void> setConstant(const HostLibrary& library, const FunctionConstant& value, Arguments& arguments) {
  const auto declared = library.constants(value.index);
  if (declared.empty()) {
    return hostError(ErrorCode::invalidArgument,
                     fmt::format("library {} has no such function constant", library.label()),
                     fmt::format("index {}", value.index), "an index that a pipeline_constant declares",
                     "Correct the index, or leave the constant out.");
  }
  static_assert(static_cast<uint32_t>(ConstantType::boolean) == static_cast<uint32_t>(ValueType::boolean) &&
                static_cast<uint32_t>(ConstantType::i32) == static_cast<uint32_t>(ValueType::i32) &&
                static_cast<uint32_t>(ConstantType::u32) == static_cast<uint32_t>(ValueType::u32) &&
                static_cast<uint32_t>(ConstantType::f32) == static_cast<uint32_t>(ValueType::f32));
  const auto type = static_cast<ValueType>(value.type);
  for (const RegisteredConstant* constant : declared) {
    if (constant->type != type) continue;
    arguments.constants[value.index] = value.bits;
    arguments.constantIsSet[value.index] = true;
    return {};
  }
  return hostError(ErrorCode::invalidArgument,
                   fmt::format("function constant {} ({}) of library {} has another type", value.index,
                               declared[0]->name, library.label()),
                   name(value.type), name(static_cast<ConstantType>(declared[0]->type)),
                   "Give a value of the declared type.");
}

Error fromReflection(const HostLibrary& library, const KernelKey& key, const Fault& fault) {
  const bool memory = fault.kind == FaultKind::outOfMemory;
  return hostError(memory ? ErrorCode::outOfMemory : ErrorCode::invalidArgument,
                   fmt::format("the arguments of kernel {} of library {} are unknown", key.function, library.label()),
                   fault.text, memory ? "memory for one stack" : "values for all constants that decide on arguments",
                   memory ? "Free memory and try again." : "Give the constant in the kernel's key.", memory);
}

}  // namespace

LoadedObject::~LoadedObject() {
  if (handle) dlclose(handle);
  if (file >= 0) close(file);
}

#if defined(__APPLE__)
void LoadedObject::keep(TemporaryDirectory directory) {
  folder.emplace(std::move(directory));
}

std::string LoadedObject::path() const {
  return folder ? (folder->path() / kModuleFile).string() : "";
}
#else
void LoadedObject::keep(TemporaryDirectory directory) {
  file = open((directory.path() / kModuleFile).c_str(), O_RDONLY | O_CLOEXEC);
}

std::string LoadedObject::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), file);
}
#endif

HostLibrary::HostLibrary(std::string label, std::string registeredLabel, const Module& module, LoadedObject object,
                         std::optional<LibrarySource> source, ModuleVariant variant)
    : label_(std::move(label)),
      registeredLabel_(std::move(registeredLabel)),
      module_(module),
      object_(std::move(object)),
      source_(std::move(source)),
      origin_(originOf(source_)),
      variant_(std::move(variant)) {}

HostLibrary::~HostLibrary() {
  for (Worker* worker : workers_) module_.destroyWorker(worker);
}

LibrarySource HostLibrary::sourceOf(const RegisteredKernel& kernel) const {
  return source_.value_or(LibrarySource{LibrarySource::Kind::path, kernel.file, label_});
}

Result<std::shared_ptr<HostLibrary>> HostLibrary::variant(
    const ModuleVariant& wanted, const std::function<Result<std::shared_ptr<HostLibrary>>()>& compile) {
  std::lock_guard lock(variantsMutex_);
  if (const auto found = variants_.find(wanted); found != variants_.end()) return found->second;
  auto compiled = compile();
  if (compiled) variants_.emplace(wanted, *compiled);
  return compiled;
}

std::vector<std::string> HostLibrary::functionNames() const {
  std::vector<std::string> names;
  for (auto* kernel = *module_.kernels; kernel; kernel = kernel->next) {
    if (isOurs(kernel->library)) names.emplace_back(kernel->name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const RegisteredKernel* HostLibrary::find(std::string_view function, HostOptions::Level limit) const {
  const RegisteredKernel* best = nullptr;
  for (auto* kernel = *module_.kernels; kernel; kernel = kernel->next) {
    const bool fits = isOurs(kernel->library) && function == kernel->name && kernel->level <= uint32_t(limit);
    if (fits && (!best || kernel->level > best->level)) best = kernel;
  }
  return best;
}

std::vector<const RegisteredConstant*> HostLibrary::constants(uint32_t index) const {
  std::vector<const RegisteredConstant*> found;
  for (auto* constant = *module_.constants; constant; constant = constant->next) {
    if (isOurs(constant->library) && constant->index == index) found.push_back(constant);
  }
  return found;
}

Worker* HostLibrary::takeWorker() noexcept {
  std::lock_guard lock(mutex_);
  if (workers_.empty()) {
    try {
      workers_.reserve(workersMade_ + 1);  // so that returning it needs no memory
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    Worker* worker = module_.makeWorker();
    if (worker) ++workersMade_;
    return worker;
  }
  Worker* worker = workers_.back();
  workers_.pop_back();
  return worker;
}

void HostLibrary::giveBack(Worker* worker) noexcept {
  std::lock_guard lock(mutex_);
  workers_.push_back(worker);
}

Result<std::shared_ptr<Library>> linkedLibrary(std::string_view label) {
  return guarded("Host device", [&]() -> Result<std::shared_ptr<Library>> {
    static std::mutex mutex;
    static auto& libraries = *new std::map<std::string, std::shared_ptr<Library>, std::less<>>;
    std::lock_guard lock(mutex);
    if (const auto found = libraries.find(label); found != libraries.end()) return found->second;
    auto library = std::make_shared<HostLibrary>(std::string(label), programModule());
    if (library->functionNames().empty()) {
      return hostError(ErrorCode::libraryNotFound, "no kernels were compiled into this program under the label", label,
                       "a label that a .cpp file gives as MNK_HOST_LIBRARY",
                       "Link that file into the program; HostKernels.h shows one.");
    }
    libraries.emplace(label, library);
    return std::shared_ptr<Library>(std::move(library));
  });
}

Result<std::shared_ptr<Pipeline>> HostPipeline::make(const HostLibrary& whole, std::shared_ptr<HostLibrary> library,
                                                     const KernelKey& key, HostOptions::Level limit) {
  const RegisteredKernel* kernel = library->find(key.function, limit);
  if (!kernel) return unknownFunction(whole, key, limit);
  Arguments constants{};
  for (const FunctionConstant& value : key.constants) MNK_TRY(setConstant(whole, value, constants));
  FoundArguments found{};
  Fault fault{FaultKind::outOfMemory, "no memory for a worker"};
  if (Worker* worker = library->takeWorker()) {
    library->module().reflect(worker, kernel, &constants, &found, &fault);
    library->giveBack(worker);
  }
  if (fault.kind != FaultKind::none) return fromReflection(*library, key, fault);
  std::vector<Argument> arguments;
  for (uint32_t i = 0; i < found.count; ++i) {
    const auto& one = found.list[i];
    const bool isBuffer = one.kind == ArgumentKind::buffer;
    arguments.push_back({.kind = isBuffer ? Argument::Kind::buffer : Argument::Kind::threadgroupMemory,
                         .index = one.index,
                         .minimumBytes = one.parameter.bytes,
                         .alignment = one.parameter.alignment,
                         .mayBeEmpty = isBuffer && !one.parameter.isReference,
                         .isReadOnly = one.parameter.isReadOnly});
  }
  return std::shared_ptr<Pipeline>(
      std::make_shared<HostPipeline>(std::move(library), kernel, constants, std::move(arguments)));
}

}  // namespace mnk::host
