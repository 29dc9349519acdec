// Runs a program, such as a compiler, as a child process and collects what it says.
#pragma once
#include <string>
#include <vector>

#if defined(__APPLE__)
#include <TargetConditionals.h>
#endif

namespace mnk::host {

// Apps of iOS and its relatives may not start processes.
#if defined(__APPLE__) && TARGET_OS_IPHONE
inline constexpr bool kCanRunPrograms = false;
#else
inline constexpr bool kCanRunPrograms = true;
#endif

struct ProgramRun {
  int spawnError = 0;  // an errno value: the program was not started
  bool succeeded = false;
  std::string output;  // what it wrote to its standard output and error
};

// `command` is the program, looked up in the search path, with its arguments. `product` is the file that it makes, and
// `log` a file for its words; neither exists before.
ProgramRun runProgram(std::vector<std::string> command, const std::string& product, const std::string& log);

}  // namespace mnk::host
