// The kernels that this package ships, compiled into the core once per instruction set.
#pragma once

namespace mnk::host {

// Does nothing, but a linker that is given the core as an archive keeps the files that it names.
void linkShippedKernels();

}  // namespace mnk::host
