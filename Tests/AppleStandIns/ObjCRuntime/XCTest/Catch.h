// Catches NSExceptions. Clang supports that only for GCC's runtime, so the implementation is compiled for it, without
// ARC.
#pragma once
#import <Foundation/Foundation.h>

// Calls function(context) and returns the NSException that escaped, or nil. C++ exceptions propagate.
NSException* _Nullable XCTLinuxCatch(void (*_Nonnull function)(void* _Nullable), void* _Nullable context);
