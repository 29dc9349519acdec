#include "SourceLocations.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <sstream>

#include "ChildProcess.hpp"
#include "TemporaryDirectory.hpp"

namespace mnk::host {

std::string fileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

namespace {

// A return address belongs to the instruction after the call.
Place callOf(Place place) {
  return place - 1;
}

// Parses "folder/Kernels.metal:12 (discriminator 3)". Empty if the symbolizer does not know.
std::string fileAndLine(std::string_view text) {
  text = text.substr(0, text.find(" (discriminator"));
  return text.starts_with('?') ? "" : fileName(text);
}

// Parses atos output: "multiply(float*, unsigned int) (in Module.so) (Kernels.metal:12)".
std::string inLastBrackets(std::string_view text) {
  constexpr std::string_view kBegin = ") (";
  const size_t begin = text.rfind(kBegin);
  if (begin == std::string_view::npos || !text.ends_with(')')) return {};
  return fileName(text.substr(begin + kBegin.size(), text.size() - begin - kBegin.size() - 1));
}

struct Symbolizer {
  std::vector<std::string> command;  // offsets follow
  std::string (*parse)(std::string_view line);
};

std::vector<std::string> symbolize(const std::string& object, const std::vector<uint64_t>& offsets) {
  const auto directory = TemporaryDirectory::make();
  if (!directory) return {};
  const Symbolizer symbolizers[] = {
      {{"llvm-symbolizer", "--output-style=GNU", "--functions=none", "--no-inlines", "-e", object}, fileAndLine},
      {{"addr2line", "-e", object}, fileAndLine},
      {{"atos", "-o", object, "-offset"}, inLastBrackets},
  };
  for (auto [command, parse] : symbolizers) {
    for (const uint64_t offset : offsets) command.push_back(fmt::format("0x{:x}", offset));
    const std::string log = (directory->path() / command[0]).string();
    const ProgramRun run = runProgram(std::move(command), log, log);
    if (run.spawnError != 0 || !run.succeeded) continue;
    std::vector<std::string> lines;
    std::istringstream stream(run.output);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) lines.push_back(parse(line));
    }
    if (lines.size() == offsets.size()) return lines;
  }
  return {};
}

}  // namespace

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
  const auto names = symbolize(library.object().path(), offsets);
  size_t next = 0;
  for (auto& [place, line] : lines) {
    if (next < names.size() && !names[next].empty()) {
      line = names[next];
      // Accesses that the compiler merged have line 0.
      if (line.ends_with(":0")) line.resize(line.size() - 2);
    }
    ++next;
  }
  return lines;
}

}  // namespace mnk::host
