// One list of cases for the tests of all APIs. Each op is called in C++ and through the API: a device must be asked for
// the same, byte for byte, and memory must hold the same afterwards.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CAPI/Generated/Ops.hpp"
#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::test {

std::vector<std::string_view> opNames();

// The tensors of one call, each in its own buffer. Their contents depend on the order of the calls of `make` alone, so
// that two calls start with the same.
class BindingMemory {
 public:
  explicit BindingMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  const std::shared_ptr<Device>& device() const { return device_; }
  // A tensor `shift` bytes past an aligned address.
  Tensor make(DType dtype, const Shape& shape, uint64_t shift = 0);
  Tensor make(DType dtype, std::initializer_list<uint64_t> extents) {
    return make(dtype, REQUIRE(Shape::make(extents)));
  }
  // All contents, one tensor after another.
  std::vector<std::byte> bytes() const;

 private:
  std::shared_ptr<Device> device_;
  std::vector<Tensor> tensors_;
  uint32_t state_ = 1;
};

struct BindingCase {
  std::string_view op;
  std::string name;
  std::function<AnyOp(BindingMemory&)> makeOp;
};

// Cases of every op. For each field some case has another value than the default.
const std::vector<BindingCase>& bindingCases();

// What every API says about a plan.
struct PlanSummary {
  struct Dispatch {
    std::string function;
    Size3 grid;
    uint64_t bytesRead = 0;
    uint64_t bytesWritten = 0;
    bool operator==(const Dispatch&) const = default;
  };
  std::string text;
  uint64_t scratchBytes = 0;
  std::vector<Dispatch> dispatches = {};
  bool operator==(const PlanSummary&) const = default;
};

void expectSameError(const Error* got, const Error* expected);
void expectSamePlan(const Result<PlanSummary>& got, const Result<Plan>& expected);
// Where a plan leaves memory to the device, each call may have its own.
void expectSameDispatches(const FakeDevice::Recorded& got, const FakeDevice::Recorded& expected,
                          const std::vector<Dispatch>& planned);

template <typename Op>
Result<Plan> planFor(const Op& op, Device* device) {
  if constexpr (requires { plan(op, *device); }) {
    if (device) return plan(op, *device);
  }
  return plan(op);
}

// One op by itself: encoded, committed and waited for.
template <typename Op>
Result<void> runOp(const Op& op, const std::shared_ptr<Device>& device) {
  CommandEncoder encoder(device, "core");
  if (Result<void> encoded = encoder.encode(op); !encoded) return encoded;
  REQUIRE(REQUIRE(encoder.commit()).wait());
  return {};
}

// In both, `api` has two functions for every op:
//   Result<PlanSummary> plan(op, const std::shared_ptr<Device>& device)   for no device where it is null
//   Result<void> run(op, const std::shared_ptr<Device>& device)           in a step with the label "binding"
template <typename API>
void expectSameRequests(const API& api) {
  for (const BindingCase& one : bindingCases()) {
    const Context context(one.name);
    const auto device = FakeDevice::make();
    // A plan for it is not that for any device.
    device->itsProfile = {.family = "apple9", .cores = 10, .ordersThreadgroups = true};
    BindingMemory memory(device);
    const auto compare = [&](const auto& op) {
      const Result<Plan> planned = planFor(op, device.get());
      expectSamePlan(api.plan(op, device), planned);
      expectSamePlan(api.plan(op, nullptr), planFor(op, nullptr));
      const Result<void> expected = runOp(op, device), got = api.run(op, device);
      expectSameError(errorOf(got), errorOf(expected));
      const auto committed = device->committed();
      EXPECT_EQ(committed.size(), expected ? 2u : 0u);
      if (committed.size() != 2) return;
      EXPECT_EQ(committed[1].label, "binding");
      expectSameDispatches(committed[1], committed[0], planned->dispatches);
    };
    std::visit(compare, one.makeOp(memory));
  }
}

template <typename API>
void expectSameResults(const API& api, const std::shared_ptr<Device>& device) {
  std::map<std::string_view, size_t> seen;
  for (const BindingCase& one : bindingCases()) {
    if (seen[one.op]++ % 23 != 0) continue;  // requests are compared for all, and full checking takes its time
    const Context context(one.name);
    BindingMemory memory(device), memoryOfAPI(device);
    const auto run = [&](const auto& op) { return runOp(op, device); };
    if (!std::visit(run, one.makeOp(memory))) continue;
    std::visit([&](const auto& op) { REQUIRE(api.run(op, device)); }, one.makeOp(memoryOfAPI));
    EXPECT(memoryOfAPI.bytes() == memory.bytes());
  }
}

}  // namespace mnk::test
