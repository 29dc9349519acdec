// Lines of kernel text for return addresses in a module that was compiled for checking.
#pragma once
#include <map>
#include <set>
#include <string>

#include "Checking/Findings.hpp"
#include "HostLibrary.hpp"

namespace mnk::host {

// "File.metal:12", or the offset in the module where no symbolizer is installed.
std::map<Place, std::string> linesOf(const HostLibrary& library, const std::set<Place>& places);

// Without its folders.
std::string fileName(std::string_view path);

}  // namespace mnk::host
