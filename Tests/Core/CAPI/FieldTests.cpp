// Each field that the API's description has: from C++ to C and back.
#include "CAPI/Generated/FieldCases.hpp"
#include "CAPI/Generated/Write.hpp"
#include "CApiHarness.hpp"

namespace mnk::test {

TEST(CFields, EachReachesTheCore) {
  const auto device = REQUIRE(Device::makeDefault());
  const Shape one = REQUIRE(Shape::make({1}));
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f32, one)),
               other = REQUIRE(Tensor::zeros(device, DType::f32, one));
  forEachField(tensor, other, [&](std::string_view name, const auto& core) {
    const Context context(std::string{name});
    std::deque<mnk_tensor> handles;
    const auto handleOf = [&](const auto& given) -> mnk_tensor* {
      const std::optional<Tensor> tensorOf = given;
      return tensorOf && *tensorOf ? &handles.emplace_back(mnk_tensor{*tensorOf}) : nullptr;
    };
    const auto inC = c::write(core, handleOf);
    std::remove_cvref_t<decltype(core)> read;
    REQUIRE(c::read(read, inC, {nullptr, name}));
    EXPECT(same(read, core));
  });
}

TEST(CFields, ZeroesAreTheDefaults) {
  forEachZero([](auto core, const auto& zero) {
    auto read = core;
    REQUIRE(c::read(read, zero, {nullptr, "zero"}));
    EXPECT(same(read, core));
  });
}

}  // namespace mnk::test
