#include "State.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "HandlerThread.hpp"
#include "Runtime.hpp"
#include "SoftObject.hpp"

namespace softmetal {

namespace {

struct Failure {
  uint32_t skip = 0;
  uint32_t times = 0;
};

struct Held {
  std::function<void()> handlers;
  std::optional<uint32_t> later;  // command buffers that must complete first; empty: until released
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
  } else if (name == "dispatch-timestamps") {
    machine.devices[0].sampling = Sampling::dispatches;
  } else if (name == "no-timestamps") {
    machine.devices[0].sampling = Sampling::none;
  } else if (!name.empty()) {
    std::fprintf(stderr,
                 "MNK_SOFT_METAL_MACHINE=%s is not a machine; metal-3.1, paravirtual, dispatch-timestamps and "
                 "no-timestamps are\n",
                 environment);
    std::abort();
  }
  return machine;
}

struct State {
  std::mutex mutex;
  Machine machine = firstMachine();
  std::vector<std::string> violations;
  std::map<Call, Failure> failures;
  bool isLost = false;
  std::vector<std::pair<uint32_t, InjectedEnd>> ends;  // with the number of command buffers before it
  bool holdsWork = false;
  std::deque<std::function<void()>> heldWork;
  bool holdsHandlers = false;
  uint32_t handlerDelay = 0;
  std::deque<Held> heldHandlers;
  Counters counters;
  std::set<std::string> pipelinesMade;
  std::vector<std::string> compiledTexts;
  std::vector<std::string> trace, groups;
  std::optional<CompileOptions> compileOptions;
  std::optional<BundleDescription> mainBundle;
  std::vector<BundleDescription> bundles;
};

State& state() {
  static auto& all = *new State;
  return all;
}

}  // namespace

Machine& machine() {
  return state().machine;
}

void violate(std::string sentence) {
  std::lock_guard lock(state().mutex);
  state().violations.push_back(std::move(sentence));
}

std::vector<std::string> takeViolations() {
  std::lock_guard lock(state().mutex);
  return std::exchange(state().violations, {});
}

Faults faults() {
  return {};
}

void Faults::failAt(Call call, uint32_t skip, uint32_t times) {
  std::lock_guard lock(state().mutex);
  state().failures[call] = {skip, times};
}

bool shallFail(Call call) {
  std::lock_guard lock(state().mutex);
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
  std::lock_guard lock(state().mutex);
  state().isLost = true;
}

bool isDeviceLost() {
  std::lock_guard lock(state().mutex);
  return state().isLost;
}

void Faults::failCommandBuffer(uint32_t skip, int64_t code, When when) {
  std::lock_guard lock(state().mutex);
  state().ends.push_back({skip, {code, when}});
}

std::optional<InjectedEnd> injectedEnd() {
  std::lock_guard lock(state().mutex);
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
  std::lock_guard lock(state().mutex);
  state().holdsWork = true;
}

void Faults::releaseWork() {
  std::deque<std::function<void()>> work;
  {
    std::lock_guard lock(state().mutex);
    state().holdsWork = false;
    work.swap(state().heldWork);
  }
  for (const auto& each : work) each();
}

void startWork(std::function<void()> work) {
  {
    std::lock_guard lock(state().mutex);
    if (state().holdsWork) {
      state().heldWork.push_back(std::move(work));
      return;
    }
  }
  work();
}

void Faults::holdHandlers() {
  std::lock_guard lock(state().mutex);
  state().holdsHandlers = true;
}

void Faults::delayHandlers(uint32_t laterCommandBuffers) {
  std::lock_guard lock(state().mutex);
  state().handlerDelay = laterCommandBuffers;
}

size_t Faults::releaseHandlers(size_t wanted) {
  size_t released = 0;
  for (; released < wanted; ++released) {
    std::function<void()> handlers;
    {
      std::lock_guard lock(state().mutex);
      if (wanted == SIZE_MAX) state().holdsHandlers = false;
      if (state().heldHandlers.empty()) break;
      handlers = std::move(state().heldHandlers.front().handlers);
      state().heldHandlers.pop_front();
    }
    HandlerThread::shared().push(std::move(handlers));
  }
  HandlerThread::shared().waitUntilIdle();
  return released;
}

void handOver(std::function<void()> handlers) {
  std::vector<std::function<void()>> ready;
  {
    std::lock_guard lock(state().mutex);
    auto& held = state().heldHandlers;
    for (Held& each : held) {
      if (each.later && *each.later > 0) *each.later -= 1;
    }
    while (!held.empty() && held.front().later == 0u) {
      ready.push_back(std::move(held.front().handlers));
      held.pop_front();
    }
    if (state().holdsHandlers) {
      held.push_back({std::move(handlers), std::nullopt});
    } else if (state().handlerDelay > 0) {
      held.push_back({std::move(handlers), state().handlerDelay});
    } else {
      ready.push_back(std::move(handlers));
    }
  }
  for (auto& each : ready) HandlerThread::shared().push(std::move(each));
}

void runOnHandlerThread(std::function<void()> work) {
  HandlerThread::shared().push(std::move(work));
}

void waitUntilIdle() {
  HandlerThread::shared().waitUntilIdle();
}

void count(uint64_t Counters::*counter, uint64_t amount) {
  std::lock_guard lock(state().mutex);
  state().counters.*counter += amount;
}

Counters counters() {
  std::lock_guard lock(state().mutex);
  return state().counters;
}

void clearCounters() {
  std::lock_guard lock(state().mutex);
  state().counters = {};
}

void addPipeline(const std::string& key) {
  std::lock_guard lock(state().mutex);
  state().counters.pipelines += 1;
  state().pipelinesMade.insert(key);
}

uint64_t pipelinesMade() {
  std::lock_guard lock(state().mutex);
  return state().pipelinesMade.size();
}

void addCompiledText(const std::string& text) {
  std::lock_guard lock(state().mutex);
  state().compiledTexts.push_back(text);
}

std::vector<std::string> compiledTexts() {
  std::lock_guard lock(state().mutex);
  return state().compiledTexts;
}

void setTrace(std::vector<std::string> lines, std::vector<std::string> groups) {
  std::lock_guard lock(state().mutex);
  state().trace = std::move(lines);
  state().groups = std::move(groups);
}

std::vector<std::string> trace() {
  std::lock_guard lock(state().mutex);
  return state().trace;
}

std::vector<std::string> debugGroups() {
  std::lock_guard lock(state().mutex);
  return state().groups;
}

void setLastCompileOptions(std::optional<CompileOptions> options) {
  std::lock_guard lock(state().mutex);
  state().compileOptions = std::move(options);
}

std::optional<CompileOptions> lastCompileOptions() {
  std::lock_guard lock(state().mutex);
  return state().compileOptions;
}

void setMainBundle(BundleDescription bundle) {
  std::lock_guard lock(state().mutex);
  state().mainBundle = std::move(bundle);
}

void setBundles(std::vector<BundleDescription> bundles) {
  std::lock_guard lock(state().mutex);
  state().bundles = std::move(bundles);
}

std::optional<BundleDescription> mainBundle() {
  std::lock_guard lock(state().mutex);
  return state().mainBundle;
}

std::vector<BundleDescription> bundles() {
  std::lock_guard lock(state().mutex);
  return state().bundles;
}

std::vector<std::string> selectorsSent() {
  auto sent = methodsWhere([](const Method& method) { return method.wasSent.load(); });
  const auto unknown = unknownMessages();
  sent.insert(sent.end(), unknown.begin(), unknown.end());
  std::sort(sent.begin(), sent.end());
  sent.erase(std::unique(sent.begin(), sent.end()), sent.end());
  return sent;
}

std::vector<std::string> selectorsImplemented() {
  return methodsWhere([](const Method&) { return true; });
}

void reset() {
  faults().releaseWork();
  faults().delayHandlers(0);
  waitUntilIdle();
  faults().releaseHandlers();
  waitUntilIdle();
  emptyQuarantine();
  std::lock_guard lock(state().mutex);
  state().machine = firstMachine();
  state().violations.clear();
  state().failures.clear();
  state().isLost = false;
  state().ends.clear();
  state().counters = {};
  state().compiledTexts.clear();
  state().trace.clear();
  state().groups.clear();
  state().compileOptions.reset();
  state().mainBundle.reset();
  state().bundles.clear();
}

}  // namespace softmetal
