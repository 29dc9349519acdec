// What SoftMetal.hpp sets and shows, seen from the inside.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "SoftMetal.hpp"

namespace softmetal {

void violate(std::string sentence);

// Whether this call is one that shall fail; counts it.
bool shallFail(Call call);
bool isDeviceLost();

struct InjectedEnd {
  int64_t code = 0;
  When when = When::before;
};
// Asked once for each command buffer, when it is committed.
std::optional<InjectedEnd> injectedEnd();

void count(uint64_t Counters::*counter, uint64_t amount = 1);
void addPipeline(const std::string& key);
void addCompiledText(const std::string& text);
void setTrace(std::vector<std::string> lines, std::vector<std::string> groups);
void setLastCompileOptions(std::optional<CompileOptions> options);

std::vector<BundleDescription> bundles();
std::optional<BundleDescription> mainBundle();

// Work that starts a command buffer: at once, or when held work is released.
void startWork(std::function<void()> work);
// Handlers of a command buffer that has completed; they run on the thread of handlers, now or when released. Called
// for command buffers without handlers, too, since delays count them.
void handOver(std::function<void()> handlers);
// Runs on the thread of handlers whatever is held.
void runOnHandlerThread(std::function<void()> work);

}  // namespace softmetal
