// Finds the package's kernels, in this order: the file that the caller names; the module's bundle; the framework's
// bundle; beside the image that contains this code; the main bundle; the embedded text. A library without a stamp
// belongs to another package and is skipped. A library with another stamp is stale, which is an error. A library with
// fast math is skipped, or refused if the caller names it.
#pragma once
#include <span>

#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

struct Candidate {
  LibraryOrigin::Kind kind;
  std::string path;
};

// Folders where the search starts.
struct SearchRoots {
  std::string image;          // the folder of the image that contains this code
  std::string mainResources;  // of the main bundle
  std::string mainBundle;
  std::string previews;  // where Xcode's previews put bundles
};
SearchRoots searchRoots();
// Every path that is searched, in order and without duplicates.
std::vector<Candidate> candidates(const SearchRoots& roots);

// `usesText` takes the embedded text without a search.
Result<std::shared_ptr<MetalLibrary>> findShippedLibrary(MTL::Device* device, const std::string& givenPath,
                                                         std::span<const Candidate> places, bool usesText = false);

}  // namespace mnk::metal
