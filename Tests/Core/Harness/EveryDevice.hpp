// Runs a body on each device of this machine, where tests on Linux count a software Metal. The Host device is run
// several ways: as users get it, with lanes and threadgroups in seeded random order on poisoned threadgroup memory, and
// on one worker without vector instructions. Where MNK_HOST_CHECKING asks for checks, there is one device of each kind:
// the Host device as it says, and Metal, of which the software one runs kernels by the same rules.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::test {

struct DeviceUnderTest {
  std::string name;
  std::shared_ptr<Device> device;
  bool hasOwnKernels = true;  // no other device here has the same compiled ones
};

const std::vector<DeviceUnderTest>& devicesUnderTest();

template <typename Body>
void onEveryDevice(Body body) {
  for (const DeviceUnderTest& under : devicesUnderTest()) {
    const Context context(under.name);
    body(under.device);
  }
}

}  // namespace mnk::test
