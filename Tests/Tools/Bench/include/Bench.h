// The benchmark as one call, for its Swift program.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Measures as the arguments specify, prints, and returns an exit status.
int bench_run(int argc, char* const* argv);

#ifdef __cplusplus
}
#endif
