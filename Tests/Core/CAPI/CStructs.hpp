// The ops of the C++ core as structs of the C API, field by field.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "CAPI/Generated/Write.hpp"
#include "Ops/Common/BindingCases.hpp"

namespace mnk::test {

// C structs for what the core has, with the memory that they point to. Lists of numbers stay those of the core's.
class CStructs {
 public:
  template <typename Core>
  auto of(const Core& core) {
    return c::write(core, *this);
  }

  mnk_tensor* operator()(const Tensor& tensor) { return tensor ? &tensors_.emplace_back(mnk_tensor{tensor}) : nullptr; }
  mnk_tensor* operator()(const std::optional<Tensor>& tensor) { return tensor ? (*this)(*tensor) : nullptr; }
  template <typename Struct>
  const Struct* keep(std::vector<Struct> list) {
    auto kept = std::make_shared<std::vector<Struct>>(std::move(list));
    lists_.push_back(kept);
    return kept->empty() ? nullptr : kept->data();
  }

 private:
  std::deque<mnk_tensor> tensors_;
  std::deque<std::shared_ptr<void>> lists_;
};

template <typename Op, typename... Ops>
constexpr size_t indexIn(const std::variant<Ops...>*) {
  size_t index = 0;
  (void)((std::is_same_v<Op, Ops> || (++index, false)) || ...);
  return index;
}

// The functions of an op: one makes a plan of its struct, the other encodes it.
template <typename Op>
constexpr auto cFunctionsOf() {
  return std::get<indexIn<Op>(static_cast<const AnyOp*>(nullptr))>(kCFunctions);
}

// For no device where there is none.
template <typename Struct, typename MakePlan>
mnk_plan* makePlan(MakePlan make, const Struct* given, const mnk_device* device, mnk_error_out error) {
  if constexpr (std::is_invocable_v<MakePlan, const Struct*, const mnk_device*, mnk_error_out>) {
    return make(given, device, error);
  } else {
    return make(given, error);
  }
}

}  // namespace mnk::test
