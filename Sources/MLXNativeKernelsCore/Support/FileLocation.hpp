// Where a file is or will be: its open folder and its name there. A path that is examined once and used again later can
// lead elsewhere the second time; names in an open folder cannot.
#pragma once
#include "Support/File.hpp"

namespace mnk {

struct FileLocation {
  FileDescriptor folder;
  std::string name;

  // Follows symbolic links, also to a file that does not exist. In a folder that others can write to, another user's
  // link could lead anywhere: every link in the path must belong to this user, to root or to the owner of its folder.
  static Result<FileLocation> find(std::string_view op, const std::string& path);
};

}  // namespace mnk
