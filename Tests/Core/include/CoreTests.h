// The C++ tests as a list that a runner walks: Swift's XCTest, or Tests/Packaging/core-tests.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t core_test_count(void);
const char* core_test_suite(size_t index);
const char* core_test_name(size_t index);
// Runs one test. Returns NULL when it passed, else a text with each failure on a line, valid until the next call
// on this thread.
const char* core_test_run(size_t index);

// For a program of tests to call first, after it has registered the Host device. Where the GPU cannot run the kernels,
// as in a virtual machine, tests of the default device run on the Host device: it says so, and sets MNK_DEVICE.
void core_test_choose_device(void);

// All of that as a program, whose arguments are LABEL and the options that its --help lists. What is left out by
// --without is named and counted.
int core_test_program(int argumentCount, char** arguments);

// The C++ tests' reference of attention, in double, for tests in other languages: `rows` of queries, which are the
// newest of `length` positions. A field that is 0 means the op's default.
typedef struct core_test_attention {
  size_t rows, heads, kv_heads, head_dim, length;
  uint32_t window;
  uint32_t pinned;  // positions that rows see outside of their window
  float scale;
} core_test_attention;
// Queries and results [rows, heads, head_dim], keys and values [length, kv_heads, head_dim]. `held` hides the positions
// where it is false; NULL hides none.
void core_test_reference_attention(const core_test_attention* of, const float* queries, const float* keys,
                                   const float* values, const bool* held, float* out);

#ifdef __cplusplus
}
#endif
