// The state behind SoftMetal.hpp, and the thread that runs completion handlers.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "SoftMetal.hpp"

namespace softmetal {

void recordViolation(std::string sentence);
// Records a violation. Returns null, for functions that then return no object.
template <typename... Values>
std::nullptr_t violate(fmt::format_string<Values...> sentence, Values&&... values) {
  recordViolation(fmt::format(sentence, std::forward<Values>(values)...));
  return nullptr;
}

// Counts this call, and returns whether it must fail.
bool shallFail(Call call);
bool isDeviceLost();

struct InjectedEnd {
  int64_t code = 0;
  When when = When::before;
};
// Called once for each command buffer, when it is committed.
std::optional<InjectedEnd> injectedEnd();

void count(uint64_t Counters::*counter, uint64_t amount = 1);
void addPipeline(const std::string& key);
void addCompiledText(const std::string& text);
void setTrace(std::vector<std::string> lines, std::vector<std::string> groups);
void setLastCompileOptions(std::optional<CompileOptions> options);
BundleDescription mainBundle();

// Runs work that starts a command buffer: immediately, or when held work is released.
void startWork(std::function<void()> work);
// A command buffer was submitted to a device; lasts until `arrived`, after its handlers are handed over.
void expectHandlers();
void arrived();
// Runs the handlers of a completed command buffer on the handler thread, now or when released. Also called for command
// buffers without handlers, since releases count them.
void handOver(std::function<void()> handlers);
// Runs on the handler thread, even if handlers are held.
void runOnHandlerThread(std::function<void()> work);

}  // namespace softmetal
