// Defines what metal-cpp's headers only declare: the classes and selectors that they look up, and Metal's constants.
// A program that also links mlx-swift, or any other user of metal-cpp, has a second copy under the same names. Both
// hold the same values, so ours are weak: the linker keeps one, whichever it is, and does not complain.
#include <CoreFoundation/CoreFoundation.h>
#include <IOSurface/IOSurfaceRef.h>
#include <TargetConditionals.h>
#include <dispatch/dispatch.h>
#include <dlfcn.h>
#include <mach/mach.h>
#include <objc/message.h>
#include <objc/runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

// Every definition of metal-cpp carries this attribute, and no option makes it weak. System headers use it too, so all
// that metal-cpp includes are included above.
#define visibility(kind) weak, visibility(kind)
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include "Devices/Metal/MetalCpp.hpp"
