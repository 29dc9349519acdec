// What tests of encoded and submitted work share: tensors on a device that runs nothing, and a participant of an
// encoder that does what a test says.
#pragma once
#include <functional>

#include "Harness/FakeDevice.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

struct FakeWork {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  Tensor a = floats(device, 16, 1), b = floats(device, 16, 2), c = floats(device, 16, 3), d = floats(device, 16, 4);

  Completion commit(const Dispatch& dispatch) const {
    CommandEncoder encoder(device);
    REQUIRE(encoder.dispatch(dispatch));
    return REQUIRE(encoder.commit());
  }
  Completion commit(const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) const {
    return commit(fakeDispatch("A", reads, writes));
  }
};

struct Witness : EncodingParticipant {
  std::function<Result<void>()> onCheck = [] { return Result<void>(); };
  std::function<void()> onAdvance = [] {};
  std::function<void(const Result<void>&)> onFinished = [](const Result<void>&) {};

  Result<void> check() override { return onCheck(); }
  void advance() noexcept override { onAdvance(); }
  void finished(const Result<void>& outcome) noexcept override { onFinished(outcome); }
};

}  // namespace mnk::test
