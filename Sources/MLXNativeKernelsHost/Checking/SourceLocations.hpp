// Maps return addresses in a module compiled for checking to lines of kernel source.
#pragma once
#include <map>
#include <set>
#include <string>

#include "Checking/Findings.hpp"
#include "HostLibrary.hpp"

namespace mnk::host {

// "File.metal:12", or the offset in the module if no symbolizer is installed.
std::map<Place, std::string> linesOf(const HostLibrary& library, const std::set<Place>& places);

// The path's last component.
std::string fileName(std::string_view path);

}  // namespace mnk::host
