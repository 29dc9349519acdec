// Refuses names of glibc, and of libstdc++, that Apple's libraries do not have. Comes after the headers that declare
// them, and before our files.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#undef O_TMPFILE  // what asks whether it is defined is for all systems

#pragma GCC poison accept4 canonicalize_file_name clone dl_iterate_phdr dlmopen dup3 epoll_create1 eventfd fallocate
#pragma GCC poison get_current_dir_name get_nprocs getauxval gettid gregs mallinfo malloc_usable_size memfd_create
#pragma GCC poison mempcpy memrchr mremap personality pipe2 posix_fadvise prctl program_invocation_name
#pragma GCC poison program_invocation_short_name pthread_getattr_np pthread_setaffinity_np qsort_r rawmemchr
#pragma GCC poison sched_getaffinity sched_getcpu sched_setaffinity secure_getenv strchrnul syscall timerfd_create
#pragma GCC poison MADV_DONTDUMP MADV_HUGEPAGE MAP_FIXED_NOREPLACE MAP_HUGETLB MAP_POPULATE MAP_STACK O_PATH
#pragma GCC poison REG_RIP RTLD_DEEPBIND
#pragma GCC poison atomic_ref jthread stop_source stop_token hardware_destructive_interference_size osyncstream
