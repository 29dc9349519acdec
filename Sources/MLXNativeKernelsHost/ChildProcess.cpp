#include "ChildProcess.hpp"

#include <cerrno>

#if !(defined(__APPLE__) && TARGET_OS_IPHONE)
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#if defined(__APPLE__)
#include <crt_externs.h>  // a framework cannot reference environ directly
#else
extern char** environ;
#endif

namespace mnk::host {

namespace {

char** environment() {
#if defined(__APPLE__)
  return *_NSGetEnviron();
#else
  return environ;
#endif
}

int spawn(std::vector<std::string>& command, const std::string& log, pid_t& process) {
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  // The compiler waits for its own children, which fails if it inherits an ignored SIGCHLD.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&process, pointers[0], &actions, &attributes, pointers.data(), environment());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

ProgramRun runProgram(std::vector<std::string> command, const std::string& product, const std::string& log) {
  ProgramRun run;
  pid_t process = 0;
  run.spawnError = spawn(command, log, process);
  if (run.spawnError != 0) return run;

  int status = 0;
  pid_t waited;
  do waited = waitpid(process, &status, 0);
  while (waited < 0 && errno == EINTR);
  if (waited == process) {
    run.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  } else {
    // The program ignores SIGCHLD or waits for all children: the process has ended, but its status is lost.
    std::error_code ignored;
    run.succeeded = std::filesystem::exists(product, ignored);
  }
  std::ifstream file(log, std::ios::binary);
  run.output.assign(std::istreambuf_iterator<char>(file), {});
  return run;
}

}  // namespace mnk::host

#else

namespace mnk::host {

ProgramRun runProgram(std::vector<std::string>, const std::string&, const std::string&) {
  return {.spawnError = ENOTSUP, .succeeded = false, .output = {}};
}

}  // namespace mnk::host

#endif
