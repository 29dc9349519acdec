// The C++ tests as a list that a runner walks: Swift's XCTest, or Tests/House/core-tests.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t core_test_count(void);
const char* core_test_suite(size_t index);
const char* core_test_name(size_t index);
// Runs one test. Returns NULL when it passed, else a text with each failure on a line, valid until the next call
// on this thread.
const char* core_test_run(size_t index);

// All of that as a program: LABEL [--only START]… [--without START]… [--part 1/2] [--slowest 10]
// A START is the beginning of a Suite.TestName. What is left out by --without is named and counted. At the end the
// slowest tests are named with their times.
int core_test_program(int argumentCount, char** arguments);

#ifdef __cplusplus
}
#endif
