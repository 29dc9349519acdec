// A file that replaces another once it is complete.
#pragma once
#include <sys/types.h>

#include <optional>
#include <vector>

#include "Support/FileLocation.hpp"
#include "Support/TemporaryFile.hpp"

namespace mnk {

// Links are followed as FileLocation.hpp says. Only regular files are replaced; the new file gets the old one's
// permissions and group. A file that did not exist is readable only by its owner, since a cache contains user data.
// Nothing changes without `commit`.
class FileReplacement {
 public:
  static Result<FileReplacement> make(std::string_view op, const std::string& path);

  Result<void> write(std::span<const std::byte> bytes);
  // After a crash or power loss, either the old or the new file is there, complete.
  Result<void> commit();

 private:
  FileReplacement(std::string_view op, const std::string& path, FileLocation location);
  Result<void> writeOut(std::span<const std::byte> bytes);
  Result<void> flush();

  std::string op_;
  std::string path_;
  mode_t permissions_ = 0600;
  std::optional<gid_t> group_;  // of the replaced file
  std::vector<std::byte> buffer_;
  FileDescriptor folder_;
  TemporaryFile file_;
};

}  // namespace mnk
