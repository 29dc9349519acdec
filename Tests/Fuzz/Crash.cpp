#include "Crash.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#endif

namespace mnk::fuzz {

namespace {

// Kernels run on threads of the device, so what dies is mostly not the thread that knows the case: all are named.
constexpr size_t kMostThreads = 64;
struct Running {
  std::atomic<bool> isUsed = false;
  std::array<char, 160> text = {};
};
std::array<Running, kMostThreads> running;
std::atomic<size_t> threads = 0;
thread_local size_t self = kMostThreads;

void print(const char* text) {
  size_t length = 0;
  while (text[length]) ++length;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
}

void nameCases() {
  for (const Running& one : running) {
    if (!one.isUsed) continue;
    print("fuzz: died in the case of ");
    print(one.text.data());
    print("\n");
  }
}

struct sigaction previous[NSIG];

void onSignal(int number) {
  nameCases();
  // Back in the faulting instruction the signal comes again, for whoever handled it before.
  sigaction(number, &previous[number], nullptr);
  if (number == SIGABRT) raise(number);
}

}  // namespace

void nameCaseOnCrash() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  __sanitizer_set_death_callback(nameCases);
#endif
  struct sigaction action {};
  action.sa_handler = onSignal;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, &previous[number]);
}

void enterCase(std::string_view target, uint64_t seed, uint64_t number) {
  if (self == kMostThreads) self = threads++ % kMostThreads;
  Running& mine = running[self];
  mine.isUsed = false;
  const auto end =
      fmt::format_to_n(mine.text.data(), mine.text.size() - 1, "--target {} --seed {} --case {}", target, seed, number);
  *end.out = 0;
  mine.isUsed = true;
}

void leaveCases() {
  if (self != kMostThreads) running[self].isUsed = false;
}

}  // namespace mnk::fuzz
