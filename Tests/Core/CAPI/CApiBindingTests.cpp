// The cases of every op through the C API: what C++ has in fields arrives from the fields of a C struct.
#include "CApiHarness.hpp"
#include "CStructs.hpp"

namespace mnk::test {

namespace {

Error errorIn(const Caught& caught) {
  return caught.get() ? caught.get()->error : Error{.what = "there is no error"};
}

struct CAPI {
  static mnk_device handleOf(const std::shared_ptr<Device>& device) {
    return {device, std::string(device->kind()), device->name()};
  }

  template <typename Op>
  Result<PlanSummary> plan(const Op& op, const std::shared_ptr<Device>& device) const {
    CStructs structs;
    Caught caught;
    const auto given = structs.of(op);
    const auto handle = device ? std::optional(handleOf(device)) : std::nullopt;
    const Owned<mnk_plan> plan(makePlan(cFunctionsOf<Op>().first, &given, handle ? &*handle : nullptr, caught.out()),
                               mnk_plan_release);
    if (!plan) return errorIn(caught);
    PlanSummary summary{.text = mnk_plan_text(plan.get()), .scratchBytes = mnk_plan_scratch_bytes(plan.get())};
    for (size_t i = 0; i < mnk_plan_dispatch_count(plan.get()); ++i) {
      const mnk_planned_dispatch one = mnk_plan_dispatch(plan.get(), i);
      summary.dispatches.push_back(
          {one.function, {one.grid[0], one.grid[1], one.grid[2]}, one.bytes_read, one.bytes_written});
    }
    return summary;
  }

  template <typename Op>
  Result<void> run(const Op& op, const std::shared_ptr<Device>& device) const {
    CStructs structs;
    Caught caught;
    const auto given = structs.of(op);
    mnk_device handle = handleOf(device);
    const Owned<mnk_encoder> encoder(mnk_encoder_make(&handle, "binding", nullptr), mnk_encoder_release);
    if (!cFunctionsOf<Op>().second(encoder.get(), &given, caught.out())) return errorIn(caught);
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, caught.out()),
                                     mnk_completion_release);
    if (!done || !mnk_completion_wait(done.get(), caught.out())) return errorIn(caught);
    return {};
  }
};

}  // namespace

TEST(CApiBinding, ADeviceIsAskedForWhatCxxAsksItFor) {
  expectSameRequests(CAPI());
}

TEST(CApiBinding, MemoryHoldsWhatCxxStores) {
  expectSameResults(CAPI(), REQUIRE(Device::makeDefault()));
}

TEST(CApiBinding, EveryOpHasCases) {
  std::vector<std::string_view> missing = opNames();
  for (const BindingCase& one : bindingCases()) std::erase(missing, one.op);
  EXPECT_EQ(fmt::format("{}", fmt::join(missing, ", ")), "");
}

}  // namespace mnk::test
