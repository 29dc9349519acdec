// Runs a body on each device of this machine, which on Linux includes the software Metal. The Host device runs in
// several configurations: as users get it, with lanes and threadgroups in seeded random order on poisoned threadgroup
// memory, and on one worker without vector instructions. If MNK_HOST_CHECKING enables checks, there is one device of
// each kind: the Host device with that setting, and Metal, where the software Metal runs kernels with the same checks.
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
  bool hasOwnKernels = true;  // no other device here has the same compiled kernels
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
