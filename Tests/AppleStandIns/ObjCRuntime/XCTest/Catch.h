// Catches NSExceptions. Clang can do that for GCC's runtime alone, so the one file behind this is compiled for it,
// without automatic reference counting.
#pragma once
#import <Foundation/Foundation.h>

// Calls function(context); the NSException that it let out, or nil. A C++ exception passes.
NSException* _Nullable XCTLinuxCatch(void (*_Nonnull function)(void* _Nullable), void* _Nullable context);
