// Made by .ci/unify.
// clang-format off
#include "Host/HostAccuracyTests.cpp"
#include "Host/HostCheckingTests.cpp"
#include "Host/HostConformanceMatrixTests.cpp"
#include "Host/HostConformanceTests.cpp"
#include "Host/HostConformanceTypesTests.cpp"
#include "Host/HostDeviceTests.cpp"
#include "Host/HostDispatchCheckingTests.cpp"
#include "Host/HostFaultTests.cpp"
#include "Host/HostOptionsTests.cpp"
#include "Host/HostPipelineTests.cpp"
#include "Host/HostTrapsTests.cpp"
#include "Host/ShadowModelTests.cpp"
