// Makes chosen allocations of the library fail: its own `operator new` calls, counted from the start of a run. Those of
// the test program and of the software Metal succeed and are not counted.
#pragma once
#include <cstdint>

namespace mnk::inject {

// Which threads other than the test's own run code of the library.
enum class Threads : uint8_t { all, handlersOfMetal };

// From now on allocations number first ..< first + count fail. The calling thread is the test's.
void begin(uint64_t first, uint64_t count, Threads threads);
// Memory is available again.
void stop();
uint64_t seen();    // allocations since begin
uint64_t failed();  // those of them that failed

// The calling thread runs the library until the end of the scope.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

// Small mappings that were made by the program and are still there. Stacks of lanes are larger.
int64_t smallMappings();

}  // namespace mnk::inject
