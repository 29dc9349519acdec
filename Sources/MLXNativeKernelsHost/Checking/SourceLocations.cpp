#include "SourceLocations.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <sstream>

#include "ChildProcess.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

namespace {

// A call's return address belongs to what follows the call.
Place callOf(Place place) {
  return place - 1;
}

std::vector<std::string> symbolize(const std::string& object, const std::vector<uint64_t>& offsets) {
  const auto directory = TemporaryDirectory::make();
  if (!directory) return {};
  const std::vector<std::vector<std::string>> symbolizers = {
      {"llvm-symbolizer", "--output-style=GNU", "--functions=none", "--no-inlines", "-e", object},
      {"addr2line", "-e", object},
  };
  for (auto command : symbolizers) {
    for (const uint64_t offset : offsets) command.push_back(fmt::format("0x{:x}", offset));
    const std::string log = (directory->path() / command[0]).string();
    const ProgramRun run = runProgram(std::move(command), log, log);
    if (run.spawnError != 0 || !run.succeeded) continue;
    std::vector<std::string> lines;
    std::istringstream stream(run.output);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) lines.push_back(line.substr(0, line.find(" (discriminator")));
    }
    if (lines.size() == offsets.size()) return lines;
  }
  return {};
}

}  // namespace

std::string fileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::map<Place, std::string> linesOf(const HostLibrary& library, const std::set<Place>& places) {
  std::map<Place, std::string> lines;
  if (places.empty()) return lines;
  std::vector<uint64_t> offsets;
  for (const Place place : places) {
    Dl_info info{};
    const Place call = callOf(place);
    const bool known = dladdr(reinterpret_cast<void*>(call), &info) != 0;
    offsets.push_back(known ? call - reinterpret_cast<Place>(info.dli_fbase) : 0);
    lines[place] = fmt::format("offset 0x{:x}", offsets.back());
  }
  // The file has no name any more, but this process holds it open.
  const std::string object = fmt::format("/proc/{}/fd/{}", getpid(), library.object().file);
  const auto names = symbolize(object, offsets);
  size_t next = 0;
  for (auto& [place, line] : lines) {
    if (next < names.size() && names[next].front() != '?') {
      line = fileName(names[next]);
      // Two accesses that the compiler has merged have no line of their own.
      if (line.ends_with(":0")) line.resize(line.size() - 2);
    }
    ++next;
  }
  return lines;
}

}  // namespace mnk::host
