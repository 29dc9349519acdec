#include "State.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "SoftObject.hpp"

namespace softmetal {

namespace {

struct Failure {
  uint32_t skip = 0;
  uint32_t times = 0;
};

Machine firstMachine() {
  const char* environment = std::getenv("MNK_SOFT_METAL_MACHINE");
  const std::string_view name = environment ? environment : "";
  Machine machine;
  if (name == "metal-3.1") {
    machine.newestLanguage = (3 << 16) | 1;
  } else if (name == "paravirtual") {
    machine.devices[0].name = "Apple Paravirtual device";
    machine.devices[0].families = {1001, 1002, 1003, 1004, 1005, 2002, 3001, 3002};
    machine.devices[0].sampling = Sampling::none;
  } else if (!name.empty()) {
    std::fprintf(stderr, "MNK_SOFT_METAL_MACHINE=%s is not a machine; metal-3.1 and paravirtual are\n", environment);
    std::abort();
  }
  return machine;
}

struct State {
  Machine machine = firstMachine();
  std::vector<std::string> violations;
  std::map<Call, Failure> failures;
  bool isLost = false;
  std::vector<std::pair<uint32_t, InjectedEnd>> ends;  // with the number of command buffers before it
  bool holdsWork = false;
  std::deque<std::function<void()>> heldWork;
  bool holdsHandlers = false;
  std::deque<std::function<void()>> heldHandlers;
  Counters counters;
  std::set<std::string> pipelinesMade;
  std::vector<std::string> compiledTexts;
  std::vector<std::string> trace, groups;
  std::optional<CompileOptions> compileOptions;
  BundleDescription mainBundle;
};

std::mutex stateMutex;

State& state() {
  static auto& all = *new State;
  return all;
}

// Lives until the process ends, as its thread does.
class HandlerThread {
 public:
  static HandlerThread& shared() {
    static auto& thread = *new HandlerThread;
    return thread;
  }
  void push(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void expect(int difference) {
    std::lock_guard lock(mutex_);
    expected_ += difference;
    changed_.notify_all();
  }
  // Waits until nothing is expected and nothing is left to run. Returns immediately inside a handler.
  void waitUntilIdle() {
    if (std::this_thread::get_id() == id_) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return expected_ == 0 && work_.empty() && !isRunning_; });
  }

 private:
  HandlerThread() {
    std::thread thread([this] { run(); });
    id_ = thread.get_id();
    thread.detach();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !work_.empty(); });
      isRunning_ = true;
      {
        const std::function<void()> work = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        work();
      }  // its captures are released here, without the lock
      lock.lock();
      isRunning_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  int expected_ = 0;  // command buffers that have yet to reach it
  bool isRunning_ = false;
  std::thread::id id_;
};

// Prints violations that no test took when the program ends, and makes the program fail. So a program that does not
// know about the software Metal, such as one of Swift tests, is validated as well.
void reportAtExit() {
  const auto violations = takeViolations();
  if (violations.empty()) return;
  for (const std::string& violation : violations) std::fprintf(stderr, "software Metal: %s\n", violation.c_str());
  std::fflush(nullptr);
  _exit(70);
}
// What the report needs is created before the registration, and so outlives it.
[[maybe_unused]] const int registered = (takeViolations(), std::atexit(reportAtExit));

template <typename T>
T copyOf(T State::*member) {
  std::lock_guard lock(stateMutex);
  return state().*member;
}
template <typename T>
void set(T State::*member, T value) {
  std::lock_guard lock(stateMutex);
  state().*member = std::move(value);
}

}  // namespace

Machine& machine() {
  return state().machine;
}

void recordViolation(std::string sentence) {
  std::lock_guard lock(stateMutex);
  state().violations.push_back(std::move(sentence));
}

std::vector<std::string> takeViolations() {
  std::lock_guard lock(stateMutex);
  return std::exchange(state().violations, {});
}

Faults faults() {
  return {};
}

void Faults::failAt(Call call, uint32_t skip, uint32_t times) {
  std::lock_guard lock(stateMutex);
  state().failures[call] = {skip, times};
}

bool shallFail(Call call) {
  std::lock_guard lock(stateMutex);
  // Command buffers can still be encoded; they fail when they end.
  if (state().isLost && call != Call::commandBuffer && call != Call::encoder) return true;
  const auto found = state().failures.find(call);
  if (found == state().failures.end()) return false;
  Failure& failure = found->second;
  if (failure.skip > 0) {
    failure.skip -= 1;
    return false;
  }
  if (failure.times == 0) return false;
  failure.times -= 1;
  return true;
}

void Faults::loseDevice() {
  set(&State::isLost, true);
}

bool isDeviceLost() {
  return copyOf(&State::isLost);
}

void Faults::failCommandBuffer(uint32_t skip, int64_t code, When when) {
  std::lock_guard lock(stateMutex);
  state().ends.push_back({skip, {code, when}});
}

std::optional<InjectedEnd> injectedEnd() {
  std::lock_guard lock(stateMutex);
  std::optional<InjectedEnd> end;
  auto& ends = state().ends;
  for (auto each = ends.begin(); each != ends.end();) {
    if (each->first > 0) {
      each->first -= 1;
      ++each;
    } else {
      end = each->second;
      each = ends.erase(each);
    }
  }
  return end;
}

void Faults::holdWork() {
  set(&State::holdsWork, true);
}

void Faults::releaseWork() {
  std::deque<std::function<void()>> work;
  {
    std::lock_guard lock(stateMutex);
    state().holdsWork = false;
    work.swap(state().heldWork);
  }
  for (const auto& each : work) each();
}

void startWork(std::function<void()> work) {
  {
    std::lock_guard lock(stateMutex);
    if (state().holdsWork) {
      state().heldWork.push_back(std::move(work));
      return;
    }
  }
  work();
}

void Faults::holdHandlers() {
  set(&State::holdsHandlers, true);
}

size_t Faults::releaseHandlers(size_t wanted) {
  size_t released = 0;
  for (; released < wanted; ++released) {
    std::function<void()> handlers;
    {
      std::lock_guard lock(stateMutex);
      if (wanted == SIZE_MAX) state().holdsHandlers = false;
      if (state().heldHandlers.empty()) break;
      handlers = std::move(state().heldHandlers.front());
      state().heldHandlers.pop_front();
    }
    HandlerThread::shared().push(std::move(handlers));
  }
  HandlerThread::shared().waitUntilIdle();
  return released;
}

void handOver(std::function<void()> handlers) {
  {
    std::lock_guard lock(stateMutex);
    if (state().holdsHandlers) {
      state().heldHandlers.push_back(std::move(handlers));
      return;
    }
  }
  HandlerThread::shared().push(std::move(handlers));
}

void runOnHandlerThread(std::function<void()> work) {
  HandlerThread::shared().push(std::move(work));
}

void expectHandlers() {
  HandlerThread::shared().expect(1);
}

void arrived() {
  HandlerThread::shared().expect(-1);
}

void waitUntilIdle() {
  HandlerThread::shared().waitUntilIdle();
}

void count(uint64_t Counters::*counter, uint64_t amount) {
  std::lock_guard lock(stateMutex);
  state().counters.*counter += amount;
}

Counters counters() {
  return copyOf(&State::counters);
}

void clearCounters() {
  set(&State::counters, {});
}

void addPipeline(const std::string& key) {
  std::lock_guard lock(stateMutex);
  state().counters.pipelines += 1;
  state().pipelinesMade.insert(key);
}

uint64_t pipelinesMade() {
  return copyOf(&State::pipelinesMade).size();
}

void addCompiledText(const std::string& text) {
  std::lock_guard lock(stateMutex);
  state().compiledTexts.push_back(text);
}

std::vector<std::string> compiledTexts() {
  return copyOf(&State::compiledTexts);
}

void setTrace(std::vector<std::string> lines, std::vector<std::string> groups) {
  set(&State::trace, std::move(lines));
  set(&State::groups, std::move(groups));
}

std::vector<std::string> trace() {
  return copyOf(&State::trace);
}

std::vector<std::string> debugGroups() {
  return copyOf(&State::groups);
}

void setLastCompileOptions(std::optional<CompileOptions> options) {
  set(&State::compileOptions, options);
}

std::optional<CompileOptions> lastCompileOptions() {
  return copyOf(&State::compileOptions);
}

void setMainBundle(BundleDescription bundle) {
  set(&State::mainBundle, std::move(bundle));
}

BundleDescription mainBundle() {
  return copyOf(&State::mainBundle);
}

void reset() {
  faults().releaseWork();
  waitUntilIdle();
  faults().releaseHandlers();
  waitUntilIdle();
  emptyQuarantine();
  std::lock_guard lock(stateMutex);
  const auto made = std::move(state().pipelinesMade);
  state() = {};
  state().pipelinesMade = made;
}

}  // namespace softmetal
