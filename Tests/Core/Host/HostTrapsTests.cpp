// Processor traps end a body, traps of other threads reach their own handlers, and handlers are restored.
#include <signal.h>

#include <atomic>
#include <thread>

#include "Checking/CheckedRun.hpp"
#include "Harness/Check.hpp"

using namespace mnk::host;
using namespace mnk::test;

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)  // sanitizers install their own handlers

namespace {

std::atomic<int> seen = 0;
void onSignal(int signal) {
  seen = signal;
}

}  // namespace

TEST(HostTraps, EndTheBodyAndReportTheCause) {
  const auto textOf = [](int signal) { return runCatchingTraps([&] { raise(signal); }); };
  for (const int signal : {SIGSEGV, SIGBUS}) EXPECT_EQ(textOf(signal), "a bad address or a stack that overflowed");
  constexpr std::string_view kCompilerTrap = "a trap of the compiler, such as for an index outside of its array";
  for (const int signal : {SIGILL, SIGTRAP}) EXPECT_EQ(textOf(signal), kCompilerTrap);
  EXPECT_EQ(runCatchingTraps([] { __builtin_trap(); }), kCompilerTrap);  // the processor's own signal for it
  EXPECT_EQ(textOf(SIGFPE), "a division by zero");
  bool ran = false;
  EXPECT_EQ(runCatchingTraps([&] { ran = true; }), "");
  EXPECT(ran);
}

TEST(HostTraps, PreserveOtherThreadsAndHandlers) {
  struct sigaction ours {
  }, before{}, after{};
  ours.sa_handler = onSignal;
  sigaction(SIGFPE, &ours, &before);
  EXPECT_EQ(runCatchingTraps([] { std::thread([] { raise(SIGFPE); }).join(); }), "");
  EXPECT_EQ(seen.load(), SIGFPE);
  sigaction(SIGFPE, &before, &after);
  EXPECT(after.sa_handler == onSignal);
}

#endif
