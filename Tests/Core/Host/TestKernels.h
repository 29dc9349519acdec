// Every file of test kernels that is compiled into the tests.
#include "../../Shaders/BlockSums.metal"
#include "../../Shaders/CodeSearch.metal"
#include "../../Shaders/Conformance.metal"
#include "../../Shaders/ConformanceMatrix.metal"
#include "../../Shaders/ConformanceTypes.metal"
#include "../../Shaders/Faults.metal"
