// The C API: opaque handles, descriptors, and errors in four parts.
//
// Ownership: a function whose name contains `make` or `copy` returns an object that the caller releases with the
// matching `…_release`; releasing NULL does nothing. Objects retain what they need, so they may be released in any
// order. Every other pointer is borrowed: an argument only for the call, a result until its owner is released.
//
// Errors: a function that can fail returns NULL or false and, if `error` is not NULL, stores an error that the caller
// releases. On success *error is left unchanged. Nothing here throws or aborts. A function that cannot fail reads a
// NULL handle as an empty one.
//
// Threads: every function may be called from any thread; one encoder belongs to one thread at a time. Callbacks may run
// on a thread of the device and must not wait for its work. A forked child process cannot use the parent's devices.
#ifndef MNK_H
#define MNK_H

#include "MLXNativeKernels/Generated/mnk_types.h"
#include "MLXNativeKernels/mnk_attention_cache.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_codec.h"
#include "MLXNativeKernels/mnk_prepare.h"
#include "MLXNativeKernels/mnk_recorded_step.h"

#endif
