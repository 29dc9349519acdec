// Defines metal-cpp's classes, selectors and constants. A program that also links mlx-swift, or another user of
// metal-cpp, has a second copy of these symbols with the same values. Weak definitions let the linker keep either one.
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

// Every definition in metal-cpp has this attribute, and no option makes it weak. System headers use it too, so
// everything that metal-cpp includes is included above.
#define visibility(kind) weak, visibility(kind)
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include "Devices/Metal/MetalCpp.hpp"
