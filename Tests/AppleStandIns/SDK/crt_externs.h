// Provides the environment to libraries, which cannot see the variable `environ`.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

char*** _NSGetEnviron(void);

#ifdef __cplusplus
}
#endif
