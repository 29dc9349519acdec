// The benchmark as one call, for its Swift program.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Measures, prints, and returns an exit status.
int bench_run(void);

#ifdef __cplusplus
}
#endif
