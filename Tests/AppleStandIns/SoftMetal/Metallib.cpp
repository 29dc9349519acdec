#include "Metallib.hpp"

#include <fstream>
#include <sstream>

namespace softmetal {

namespace {

constexpr const char* kFirstLine = "soft metallib 1";

}  // namespace

bool writeMetallib(const std::string& path, const Metallib& contents) {
  std::ofstream file(path);
  file << kFirstLine << '\n';
  if (!contents.linked.empty()) file << "linked " << contents.linked << '\n';
  for (const std::string& name : contents.added) file << "add " << name << '\n';
  for (const std::string& name : contents.hidden) file << "hide " << name << '\n';
  if (contents.linked.empty()) file << "text\n" << contents.text;
  file.close();
  return bool(file);
}

MetallibFile readMetallib(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file) return {};
  if (!std::getline(file, line) || line != kFirstLine) return {.isThere = true};
  Metallib contents;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "text" && contents.linked.empty()) {
      std::ostringstream text;
      text << file.rdbuf();
      contents.text = text.str();
      return {.isThere = true, .contents = contents};
    }
    if (rest.empty()) return {.isThere = true};
    if (word == "linked" && contents.linked.empty()) {
      contents.linked = rest;
    } else if (word == "add") {
      contents.added.push_back(rest);
    } else if (word == "hide") {
      contents.hidden.push_back(rest);
    } else {
      return {.isThere = true};
    }
  }
  if (contents.linked.empty()) return {.isThere = true};
  return {.isThere = true, .contents = contents};
}

}  // namespace softmetal
