// MTLLibrary, MTLFunction, MTLFunctionConstantValues and MTLCompileOptions.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "SoftDevice.hpp"

namespace softmetal {

struct SoftConstantValues : Object {
  std::vector<mnk::FunctionConstant> values;

  void set(const void* value, MTL::DataType type, NS::UInteger index);
  void setRange(const void* first, MTL::DataType type, NS::Range range);
  void reset() { values.clear(); }
};

struct SoftCompileOptions : Object {
  // The newest language version, used by default.
  CompileOptions values = {.languageVersion = (4 << 16)};
  NS::Integer libraryType = MTL::LibraryTypeExecutable, optimization = MTL::LibraryOptimizationLevelDefault;
  Ref<SoftDictionary> macros;

  MTL::LanguageVersion languageVersion() { return MTL::LanguageVersion(values.languageVersion); }
  void setLanguageVersion(MTL::LanguageVersion version) { values.languageVersion = version; }
  bool fastMathEnabled() { return values.fastMathEnabled; }
  void setFastMathEnabled(bool enabled) { values.fastMathEnabled = enabled; }
  NS::Integer mathMode() { return values.mathMode.value_or(0); }
  void setMathMode(NS::Integer mode) { values.mathMode = mode; }
  Object* preprocessorMacros() { return retainedInPool(macros.get()); }
  void setPreprocessorMacros(SoftDictionary* dictionary);
  NS::Integer libraryTypeMessage() { return libraryType; }
  void setLibraryType(NS::Integer type) { libraryType = type; }
  NS::Integer optimizationLevel() { return optimization; }
  void setOptimizationLevel(NS::Integer level) { optimization = level; }
  void finish() { macros = {}; }
};

struct SoftLibrary : Object {
  Ref<SoftDevice> owner;
  std::shared_ptr<mnk::Library> host;
  std::vector<std::string> names;
  std::string text;  // its source; empty: unknown

  void finish();
  bool has(const std::string& name) const;
  SoftDevice* device() { return owner.get(); }
  Object* functionNames();
  SoftFunction* newFunction(Object* name);
  SoftFunction* newFunctionWithConstants(Object* name, SoftConstantValues* values, SoftError** error);
};

struct SoftFunction : Object {
  Ref<SoftLibrary> library;
  mnk::KernelKey key;

  void finish();
  SoftDevice* device() { return library->owner.get(); }
  Object* name() { return pooledString(key.function); }
  MTL::FunctionType functionType() { return MTL::FunctionTypeKernel; }
};

// Host libraries are cached by their text for the life of the process, like the system's shader cache.
mnk::Result<std::shared_ptr<mnk::Library>> compiledLibrary(SoftDevice* device, const std::string& text);

}  // namespace softmetal
