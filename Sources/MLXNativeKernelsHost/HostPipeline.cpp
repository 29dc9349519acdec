#include "HostPipeline.hpp"

#include "Processor.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

Error unknownFunction(const HostLibrary& library, const KernelKey& key, HostOptions::Level limit) {
  Error error{.code = ErrorCode::shaderBuild,
              .op = "Host device",
              .what = fmt::format("library {} has no such function", library.label()),
              .got = key.function,
              .expected = {},
              .fix = "Export the kernel with export_kernel or instantiate_kernel, or correct the name."};
  const auto names = library.functionNames();
  if (std::find(names.begin(), names.end(), key.function) != names.end()) {
    error.code = ErrorCode::unsupported;
    error.what = fmt::format("library {} was not compiled for this device's instruction set", library.label());
    error.expected = fmt::format("{} or lower", name(limit));
    error.fix = "Build the library with the device that runs it.";
    return error;
  }
  error.expected = oneOf(names, "a library with kernels");
  return error;
}

ValueType valueType(ConstantType type) {
  switch (type) {
    case ConstantType::boolean:
      return ValueType::boolean;
    case ConstantType::i32:
      return ValueType::i32;
    case ConstantType::u32:
      return ValueType::u32;
    case ConstantType::f32:
      return ValueType::f32;
  }
  return ValueType::boolean;
}

std::string_view name(ValueType type) {
  switch (type) {
    case ValueType::boolean:
      return "bool";
    case ValueType::i32:
      return "int";
    case ValueType::u32:
      return "uint";
    case ValueType::f32:
      return "float";
  }
  return "unknown type";
}

// A library's function constants share their indices; a kernel's files may declare the same one twice.
Result<void> setConstant(const HostLibrary& library, const FunctionConstant& value, Arguments& arguments) {
  const auto declared = library.constants(value.index);
  if (declared.empty()) {
    return Error{.code = ErrorCode::invalidArgument,
                 .op = "Host device",
                 .what = fmt::format("library {} has no such function constant", library.label()),
                 .got = fmt::format("index {}", value.index),
                 .expected = "an index that a pipeline_constant declares",
                 .fix = "Correct the index, or leave the constant out."};
  }
  const ValueType type = valueType(value.type);
  for (const RegisteredConstant* constant : declared) {
    if (constant->type != type) continue;
    arguments.constants[value.index] = value.bits;
    arguments.constantIsSet[value.index] = true;
    return {};
  }
  return Error{.code = ErrorCode::invalidArgument,
               .op = "Host device",
               .what = fmt::format("function constant {} ({}) of library {} has another type", value.index,
                                   declared[0]->name, library.label()),
               .got = std::string(name(type)),
               .expected = std::string(name(declared[0]->type)),
               .fix = "Give a value of the declared type."};
}

Error fromReflection(const HostLibrary& library, const KernelKey& key, const Fault& fault) {
  const bool memory = fault.kind == FaultKind::outOfMemory;
  return Error{
      .code = memory ? ErrorCode::outOfMemory : ErrorCode::invalidArgument,
      .op = "Host device",
      .what = fmt::format("the arguments of kernel {} of library {} are unknown", key.function, library.label()),
      .got = fault.text,
      .expected = memory ? "memory for one stack" : "values for all constants that decide on arguments",
      .fix = memory ? "Free memory and try again." : "Give the constant in the kernel's key.",
      .retryable = memory};
}

}  // namespace

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
