// The benchmark of FlashDecode as one call, for the Swift program that starts it.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Measures what the arguments ask for, prints, and returns an exit status.
int decode_bench_run(int argc, char* const* argv);

#ifdef __cplusplus
}
#endif
