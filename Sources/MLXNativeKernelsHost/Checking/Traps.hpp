// Turns a trap of the processor in a kernel, such as a bad address, a division by zero or a stack that overflows, into
// a returned value. For checked execution only: it replaces the process's handlers of these signals while it runs.
#pragma once
#include <functional>
#include <string_view>

namespace mnk::host {

// What ended the body, such as "a bad address"; empty where it returned. After a trap nothing that the body's frames
// own is released. A trap on another thread goes where it would have gone.
std::string_view runCatchingTraps(const std::function<void()>& body);

}  // namespace mnk::host
