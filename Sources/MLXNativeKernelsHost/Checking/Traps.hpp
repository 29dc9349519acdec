// Turns a processor trap in a kernel, such as a bad address, a division by zero or a stack overflow, into a returned
// value. For checked execution only: it replaces the process's handlers of these signals while it runs.
#pragma once
#include <functional>
#include <string_view>

namespace mnk::host {

// Returns what ended the body, such as "a bad address", or an empty string if it returned. After a trap, nothing that
// the body's frames own is released. Traps on other threads go to the previous handler.
std::string_view runCatchingTraps(const std::function<void()>& body);

}  // namespace mnk::host
