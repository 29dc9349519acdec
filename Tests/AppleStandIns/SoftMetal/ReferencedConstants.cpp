// Finds the function constants that a kernel references in its source.
#include <cctype>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "SoftLibrary.hpp"

namespace softmetal {

namespace {

using Names = std::set<std::string>;

// For each name declared at file scope, the names that its declarations mention.
struct Declarations {
  std::map<std::string, Names> mentioned;
  Names constants;
};

std::vector<std::string> tokens(const std::string& text) {
  std::vector<std::string> list;
  const auto isOfName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = text.find('"', at + 1) + 1;
    } else if (isOfName(text[at])) {
      const size_t begin = at;
      while (at < text.size() && isOfName(text[at])) ++at;
      list.push_back(text.substr(begin, at - begin));
    } else {
      if (!std::isspace(static_cast<unsigned char>(text[at]))) list.emplace_back(1, text[at]);
      ++at;
    }
  }
  return list;
}

// Removes directives and collects the macros among them.
std::string withoutDirectives(const std::string& text, std::vector<std::string>& macros) {
  std::string rest;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (text[at] == '#') {
      while (end != std::string::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
    }
    end = end == std::string::npos ? text.size() : end + 1;
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("#define ")) macros.push_back(line.substr(8));
    if (line[0] != '#') rest += line;
    at = end;
  }
  return rest;
}

bool isName(const std::string& token) {
  return std::isalpha(static_cast<unsigned char>(token[0])) || token[0] == '_';
}

void declare(Declarations& all, const std::vector<std::string>& declaration) {
  if (declaration.size() > 4 && declaration[0] == "pipeline_constant") {
    all.constants.insert(declaration[4]);
    return;
  }
  size_t first = 0;
  if (declaration.size() > 1 && declaration[0] == "template") {
    int depth = 0;
    do {
      ++first;
      depth += declaration[first] == "<" ? 1 : declaration[first] == ">" ? -1 : 0;
    } while (depth > 0 && first + 1 < declaration.size());
  }
  // A function's name is followed by "(", a variable's by "=" or "[", a type's by "{" or ":".
  std::string name;
  for (size_t i = first; i + 1 < declaration.size() && name.empty(); ++i) {
    const std::string& next = declaration[i + 1];
    if (isName(declaration[i]) && (next == "(" || next == "=" || next == "[" || next == "{" || next == ":")) {
      name = declaration[i];
    }
  }
  if (name.empty()) return;
  Names& mentioned = all.mentioned[name];
  for (size_t i = 0; i < declaration.size(); ++i) {
    if (i > 1 && declaration[i - 2] == "is_function_constant_defined") continue;
    if (isName(declaration[i])) mentioned.insert(declaration[i]);
  }
}

Declarations declarationsOf(const std::string& text) {
  Declarations all;
  std::vector<std::string> macros;
  const std::string plain = withoutDirectives(text, macros);
  for (const std::string& macro : macros) {
    const auto list = tokens(macro);
    for (const std::string& token : list) {
      if (isName(token)) all.mentioned[list[0]].insert(token);
    }
  }
  std::vector<std::string> declaration;
  int depth = 0;
  for (std::string& token : tokens(plain)) {
    depth += token == "{" || token == "(" ? 1 : token == "}" || token == ")" ? -1 : 0;
    const bool isEnd = depth == 0 && (token == ";" || token == "}");
    declaration.push_back(std::move(token));
    if (!isEnd) continue;
    declare(all, declaration);
    declaration.clear();
  }
  return all;
}

Names reachable(const Declarations& all, const std::string& from) {
  Names found = {from};
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const auto declared = all.mentioned.find(open.back());
    open.pop_back();
    if (declared == all.mentioned.end()) continue;
    for (const std::string& name : declared->second) {
      if (found.insert(name).second) open.push_back(name);
    }
  }
  std::erase_if(found, [&](const std::string& name) { return !all.constants.contains(name); });
  return found;
}

}  // namespace

std::string missingConstant(const std::string& text, const std::string& function, const mnk::host::HostLibrary& library,
                            std::span<const mnk::FunctionConstant> values) {
  static std::mutex mutex;
  static auto& texts = *new std::map<std::string, Declarations>;
  static auto& functions = *new std::map<std::pair<const Declarations*, std::string>, Names>;
  std::lock_guard lock(mutex);
  auto known = texts.find(text);
  if (known == texts.end()) known = texts.emplace(text, declarationsOf(text)).first;
  const Declarations& all = known->second;
  const std::string name = all.mentioned.contains(function) ? function : function.substr(0, function.find('_'));
  auto needed = functions.find({&all, name});
  if (needed == functions.end()) needed = functions.emplace(std::pair{&all, name}, reachable(all, name)).first;
  Names missing = needed->second;
  for (const mnk::FunctionConstant& value : values) {
    for (const auto* constant : library.constants(value.index)) missing.erase(constant->name);
  }
  return missing.empty() ? "" : *missing.begin();
}

}  // namespace softmetal
