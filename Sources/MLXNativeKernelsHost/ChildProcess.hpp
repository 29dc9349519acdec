// Runs a program, such as a compiler, as a child process and captures its output.
#pragma once
#include <string>
#include <vector>

#if defined(__APPLE__)
#include <TargetConditionals.h>
#endif

namespace mnk::host {

// Apps for iOS and related systems cannot start processes.
#if defined(__APPLE__) && TARGET_OS_IPHONE
inline constexpr bool kCanRunPrograms = false;
#else
inline constexpr bool kCanRunPrograms = true;
#endif

struct ProgramRun {
  int spawnError = 0;  // an errno value: the program was not started
  bool succeeded = false;
  std::string output;  // standard output and error
};

// `command` is the program, looked up in PATH, with its arguments. `product` is the file that it writes, and `log` a
// file for its output; neither exists yet.
ProgramRun runProgram(std::vector<std::string> command, const std::string& product, const std::string& log);

}  // namespace mnk::host
