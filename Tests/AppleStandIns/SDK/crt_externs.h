// Stands for Apple's header: the environment of a process, for libraries, which see no variable `environ`.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

char*** _NSGetEnviron(void);

#ifdef __cplusplus
}
#endif
