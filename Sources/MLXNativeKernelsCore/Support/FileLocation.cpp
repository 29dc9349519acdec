#include "Support/FileLocation.hpp"
#include "Support/Try.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "Support/Format.hpp"

namespace mnk {

namespace {

constexpr int kMaxLinks = 40;  // the limit of Linux

// Removes and returns the name up to the first slash, and removes the slashes that follow it.
std::string takeName(std::string& path) {
  const std::string name = path.substr(0, path.find('/'));
  path.erase(0, std::min(path.find_first_not_of('/', name.size()), path.size()));
  return name;
}

bool isTrusted(const struct stat& link, const std::string& folder) {
  struct stat status {};
  return link.st_uid == ::geteuid() || link.st_uid == 0 ||
         (::stat(folder.empty() ? "." : folder.c_str(), &status) == 0 && link.st_uid == status.st_uid);
}

// Fails if the path, which is empty or ends with a slash, contains a link. The folder need not be readable.
FileDescriptor openFolder(std::string path) {
#ifdef O_NOFOLLOW_ANY
  // Opens no folder on the way, because a sandbox may forbid it.
  if (path.empty()) path = ".";
  constexpr int kFlags = O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW_ANY;
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | kFlags));
  if (folder.get() < 0 && errno == EACCES) folder = FileDescriptor(::open(path.c_str(), O_SEARCH | kFlags));
#else
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  FileDescriptor folder(::open(path.starts_with('/') ? "/" : ".", kFlags));
  if (path.starts_with('/')) (void)takeName(path);
  while (folder.get() >= 0 && !path.empty()) {
    folder = FileDescriptor(::openat(folder.get(), takeName(path).c_str(), kFlags));
  }
#endif
  return folder;
}

}  // namespace

Result<FileLocation> FileLocation::find(std::string_view op, const std::string& path) {
  MNK_TRY(checkPath(op, path));
  const auto cannotFollow = [&](int number) {
    return fileError(op, "the path cannot be followed to a file", path, number, "Pass the path of a file.");
  };
  std::string folder;  // without links; empty, or ends with a slash
  std::string name, rest = path;
  for (int links = 0;;) {
    if (rest.starts_with('/')) {
      (void)takeName(rest);
      folder = "/";
    }
    const bool isLast = rest.find('/') == rest.npos;
    name = takeName(rest);
    const std::string whole = folder + name;
    struct stat status {};
    // If its status is unknown, opening the folder or creating the file succeeds or reports the problem.
    if (::lstat(whole.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) {
      if (isLast) break;
      folder = whole + "/";
      continue;
    }
    if (!isTrusted(status, folder)) {
      return Error{.op = std::string(op),
                   .what = "the path contains a link of another user",
                   .got = whole == path ? fmt::format("\"{}\"", path) : fmt::format("\"{}\", in \"{}\"", whole, path),
                   .expected = "links that this user, root or the owner of their folder has made",
                   .fix = "Pass a path without this link, in a folder of your own."};
    }
    if (++links > kMaxLinks) return cannotFollow(ELOOP);
    std::array<char, PATH_MAX> target;
    const ssize_t length = ::readlink(whole.c_str(), target.data(), target.size());
    if (length < 0) return cannotFollow(errno);
    if (static_cast<size_t>(length) == target.size()) return cannotFollow(ENAMETOOLONG);
    rest = std::string(target.data(), static_cast<size_t>(length)) + (isLast ? "" : "/" + rest);
  }
  if (name.empty() || name == "." || name == "..") return notPlainFile(op, path);
  FileDescriptor opened = openFolder(std::move(folder));
  if (opened.get() < 0) return errno == ELOOP ? cannotFollow(errno) : cannotMakeFile(op, path, errno);
  return FileLocation{std::move(opened), std::move(name)};
}

}  // namespace mnk
