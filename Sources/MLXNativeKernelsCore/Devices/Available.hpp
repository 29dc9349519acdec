// Which devices this build has. MNK_SOFT_METAL is set for tests on Linux, where a software Metal stands for Apple's.
#pragma once

#if defined(__APPLE__) || defined(MNK_SOFT_METAL)
#define MNK_HAS_METAL 1
#else
#define MNK_HAS_METAL 0
#endif
