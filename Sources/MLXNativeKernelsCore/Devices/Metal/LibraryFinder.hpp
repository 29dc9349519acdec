// Finds the kernels that this package ships, in this order: the file that the caller names; the bundle of the module;
// the bundle of the framework; beside the image that holds this code; the main bundle; the embedded text, compiled
// here. A library without our stamp is another's and passed over. One with another stamp is ours but stale: an error.
#pragma once
#include <span>

#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

struct Candidate {
  LibraryOrigin::Kind kind;
  std::string path;
};

// Folders that the search starts from.
struct SearchRoots {
  std::string image;          // the folder of the image that holds this code
  std::string mainResources;  // of the main bundle
  std::string mainBundle;
  std::string previews;  // where Xcode's previews put bundles
};
SearchRoots searchRoots();
// Every place where a file is looked for, in order and each once.
std::vector<Candidate> candidates(const SearchRoots& roots);

Result<std::shared_ptr<MetalLibrary>> findShippedLibrary(MTL::Device* device, const std::string& givenPath,
                                                         std::span<const Candidate> places);

}  // namespace mnk::metal
