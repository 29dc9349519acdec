// Makes selected allocations fail, counted from the start of a run: those of the library and of the system's libraries
// that it calls, with `operator new` or `malloc`. Allocations of the test program and of the software Metal succeed and
// are not counted.
#pragma once
#include <cstdint>

namespace mnk::inject {

// Which threads, besides the test's, run library code.
enum class Threads : uint8_t { all, handlersOfMetal };

// From now on, allocations number first ..< first + count fail. The calling thread is the test's.
void begin(uint64_t first, uint64_t count, Threads threads);
// Memory is available again.
void stop();
uint64_t seen();    // allocations since begin
uint64_t failed();  // failed allocations since begin

// The calling thread runs library code until the end of the scope.
class Armed {
 public:
  Armed();
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

// Small mappings that the program has made and not released. Lane stacks are larger.
int64_t smallMappings();

}  // namespace mnk::inject
