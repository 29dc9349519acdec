// Which kernels the plans of cases ask for. One that no case reaches could be wrong unseen.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::test {

class KernelForms {
 public:
  void add(const Plan& plan) {
    for (const Dispatch& dispatch : plan.dispatches) forms_.emplace(dispatch.kernel.text(), dispatch.kernel);
  }

  // Functions with the values of their constants.
  size_t forms() const { return forms_.size(); }
  std::set<std::string> functions() const {
    std::set<std::string> names;
    for (const auto& [text, kernel] : forms_) names.insert(kernel.function);
    return names;
  }
  // Constants that have had one value only: in one function, or in all.
  std::set<uint32_t> fixedConstants(std::string_view function = {}) const {
    std::map<uint32_t, std::set<uint32_t>> values;
    for (const auto& [text, kernel] : forms_) {
      if (!function.empty() && kernel.function != function) continue;
      for (const FunctionConstant& constant : kernel.constants) values[constant.index].insert(constant.bits);
    }
    std::set<uint32_t> fixed;
    for (const auto& [index, of] : values) {
      if (of.size() == 1) fixed.insert(index);
    }
    return fixed;
  }

 private:
  std::map<std::string, KernelKey> forms_;
};

}  // namespace mnk::test
