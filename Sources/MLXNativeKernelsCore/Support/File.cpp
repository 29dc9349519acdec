#include "Support/File.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <system_error>

#include "Support/Crc32.hpp"
#include "Support/Errors.hpp"

namespace mnk {

Error fileError(std::string_view op, std::string_view what, const std::string& path, int number, std::string_view fix) {
  return invalidArgument(op, what, fmt::format("\"{}\": {}", path, std::generic_category().message(number)),
                         "a file that can be read or written there", fix);
}

// Where a file is or will be: its open folder and its name there. A path that is examined once and used again later can
// lead elsewhere the second time; names in an open folder cannot.
struct FileLocation {
  FileDescriptor folder;
  std::string name;

  // Follows symbolic links, also to a file that does not exist. In a folder that others can write to, another user's
  // link could lead anywhere: every link in the path must belong to this user, to root or to the owner of its folder.
  static Result<FileLocation> find(std::string_view op, const std::string& path);
};

namespace {

// Larger spans bypass the buffer.
constexpr size_t kFileBufferBytes = 1 << 18;

Error notPlainFile(std::string_view op, const std::string& path) {
  return invalidArgument(op, "the path does not lead to a plain file", fmt::format("\"{}\"", path), "a plain file",
                         "Pass the path of a file, not of a folder, a pipe or a device.");
}

Error cannotMakeFile(std::string_view op, const std::string& path, int number) {
  return fileError(op, "no file can be made beside the path", path, number,
                   "Pass a path in a folder that exists and that this process may write to.");
}

// Refuses an empty path, and one with a null character, where the system would end it.
Result<void> checkPath(std::string_view op, const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return invalidArgument(op, "the path names no file", path.empty() ? "an empty path" : "a path with a zero in it",
                         "the name of a file", "Pass the path of a file.");
}

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

constexpr std::string_view kStart = ".mnk-save-", kEnd = ".tmp";
constexpr std::string_view kDigits = "0123456789abcdef";
// The checksum of the target's name, then the number of the attempt.
constexpr size_t kNameDigits = 8, kAttemptDigits = 8;
constexpr int kSharedNames = 16;  // which each save of a target examines; further attempts have random names
constexpr int kAttempts = 100;

std::atomic<bool> namesAlways = false;

bool isPlainFileOfThisUser(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

bool statusOf(int folder, const char* name, struct stat& status) {
  return ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// Whether the name is that of this open file rather than of a link to it.
bool names(int folder, const char* name, int file) {
  struct stat named {
  }, open{};
  return statusOf(folder, name, named) && ::fstat(file, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

template <typename Digit>
void setDigits(std::string& name, size_t from, size_t count, Digit digit) {
  for (size_t i = 0; i < count; ++i) name[from + i] = kDigits[digit(count - 1 - i) % kDigits.size()];
}

// Also false if the file system has no locks; nothing is considered abandoned there.
bool lock(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0;
}

#ifdef O_TMPFILE
// The link through which the system can name an open file.
struct OpenFileLink {
  char path[32];
  explicit OpenFileLink(int file) { ::snprintf(path, sizeof path, "/proc/self/fd/%d", file); }
};
#endif

// On Apple's systems, fsync leaves data in the disk's cache.
int synchronize(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(file);
}

// Makes the new name survive a power loss. Ignores errors of file systems that do so anyway and refuse the call, and of
// folders that cannot be read and therefore not opened.
int synchronizeFolder(int folder) {
  const FileDescriptor file(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || synchronize(file.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<FileReader> FileReader::open(std::string_view op, const std::string& path) {
  MNK_TRY(checkPath(op, path));
  FileReader reader(op, path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (reader.file_.get() < 0) {
    const bool isMissing = errno == ENOENT;
    return fileError(op, isMissing ? "there is no such file" : "the file cannot be opened", path, errno,
                     "Pass the path of a file that this process may read.");
  }
  struct stat status {};
  if (::fstat(reader.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return notPlainFile(op, path);
  reader.length_ = static_cast<uint64_t>(status.st_size);
  reader.buffer_.reset(new std::byte[kFileBufferBytes]);
  return reader;
}

Result<size_t> FileReader::readSome(std::span<std::byte> into) {
  ssize_t got;
  do got = ::read(file_.get(), into.data(), into.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) return fileError(op_, "the file cannot be read", path_, errno, "Check the disk, and read it again.");
  if (got == 0) {
    return invalidArgument(op_, "the file became shorter while it was read", fmt::format("\"{}\"", path_),
                           bytesText(length_), "Make sure that no other process writes to the file.");
  }
  return static_cast<size_t>(got);
}

Result<void> FileReader::read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (used_ == filled_) {
      const bool isDirect = into.size() >= kFileBufferBytes;
      MNK_TRY(auto got, readSome(isDirect ? into : std::span(buffer_.get(), kFileBufferBytes)));
      if (isDirect) {
        into = into.subspan(got);
        continue;
      }
      used_ = 0;
      filled_ = got;
    }
    const size_t count = std::min(into.size(), filled_ - used_);
    std::memcpy(into.data(), buffer_.get() + used_, count);
    used_ += count;
    into = into.subspan(count);
  }
  return {};
}

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
      return invalidArgument(
          op, "the path contains a link of another user",
          whole == path ? fmt::format("\"{}\"", path) : fmt::format("\"{}\", in \"{}\"", whole, path),
          "links that this user, root or the owner of their folder has made",
          "Pass a path without this link, in a folder of your own.");
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

TemporaryFile::TemporaryFile(int folder, std::string target)
    : folder_(folder), target_(std::move(target)), name_(kStart) {
  Crc32 sum;
  sum.add(std::as_bytes(std::span(target_)));
  name_.append(kNameDigits + kAttemptDigits, '0').append(kEnd);
  setDigits(name_, kStart.size(), kNameDigits, [&](size_t digit) { return sum.value() >> (4 * digit); });
}

bool TemporaryFile::isTemporaryName(std::string_view name) {
  return name.size() == kStart.size() + kNameDigits + kAttemptDigits + kEnd.size() && name.starts_with(kStart) &&
         name.ends_with(kEnd) && name.find_first_not_of(kDigits, kStart.size()) == name.size() - kEnd.size();
}

TemporaryFile::~TemporaryFile() {
  if (isNamed_) ::unlinkat(folder_, name_.c_str(), 0);  // before closing the descriptor releases the lock
}

void TemporaryFile::chooseName(int attempt) {
  const size_t from = kStart.size() + kNameDigits;
  if (attempt < kSharedNames) {
    setDigits(name_, from, kAttemptDigits, [&](size_t digit) { return static_cast<size_t>(attempt) >> (4 * digit); });
  } else {
    std::random_device random;
    setDigits(name_, from, kAttemptDigits, [&](size_t) { return random(); });
  }
}

int TemporaryFile::make() {
  removeAbandoned();
#ifdef O_TMPFILE
  if (!namesAlways) {
    FileDescriptor file(::openat(folder_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (file.get() >= 0 && ::access(OpenFileLink(file.get()).path, F_OK) == 0) {
      file_ = std::move(file);
      return 0;
    }
  }
#endif
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    chooseName(attempt);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    FileDescriptor file(::openat(folder_, name_.c_str(), kFlags, 0600));
    if (file.get() < 0 && errno == EEXIST) continue;
    if (file.get() < 0) return errno;
    // Another save may have seen the file before it was locked and considered it abandoned.
    if (!lock(file.get()) && errno == EWOULDBLOCK) continue;
    if (!names(folder_, name_.c_str(), file.get())) continue;
    file_ = std::move(file);
    isNamed_ = true;
    return 0;
  }
  return EEXIST;
}

int TemporaryFile::replaceTarget() {
#ifdef O_TMPFILE
  if (!isNamed_) {
    (void)lock(file_.get());  // before others can see it
    const OpenFileLink link(file_.get());
    for (int attempt = 0; !isNamed_; ++attempt) {
      chooseName(attempt);
      isNamed_ = ::linkat(AT_FDCWD, link.path, folder_, name_.c_str(), AT_SYMLINK_FOLLOW) == 0;
      if (!isNamed_ && (errno != EEXIST || attempt == kAttempts)) return errno;
    }
  }
#endif
  if (::renameat(folder_, name_.c_str(), folder_, target_.c_str()) != 0) return errno;
  isNamed_ = false;
  return 0;
}

void TemporaryFile::removeAbandoned() {
  for (int attempt = 0; attempt < kSharedNames; ++attempt) {
    chooseName(attempt);
    const char* name = name_.c_str();
    struct stat status {};
    // Check first: opening something other than a regular file could have side effects.
    if (!statusOf(folder_, name, status) || !isPlainFileOfThisUser(status)) continue;
    const FileDescriptor file(::openat(folder_, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !isPlainFileOfThisUser(status)) continue;
    // Its owner may have renamed it meanwhile. With the lock held, neither the owner nor another save changes the name.
    if (lock(file.get()) && names(folder_, name, file.get())) ::unlinkat(folder_, name, 0);
  }
}

void TemporaryFile::setNamesAlways(bool always) {
  namesAlways = always;
}

FileReplacement::FileReplacement(std::string_view op, const std::string& path, FileLocation location)
    : op_(op), path_(path), folder_(std::move(location.folder)), file_(folder_.get(), std::move(location.name)) {
  buffer_.reserve(kFileBufferBytes);
}

Result<FileReplacement> FileReplacement::make(std::string_view op, const std::string& path) {
  MNK_TRY(auto location, FileLocation::find(op, path));
  if (TemporaryFile::isTemporaryName(location.name)) {
    return invalidArgument(op, "the name is one of temporary files", fmt::format("\"{}\"", path),
                           "a name that no later save removes", "Pass another name.");
  }
  struct stat status {};
  const bool exists = ::fstatat(location.folder.get(), location.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return cannotMakeFile(op, path, errno);
  if (exists && !S_ISREG(status.st_mode)) return notPlainFile(op, path);
  FileReplacement result(op, path, std::move(location));
  if (exists) {
    result.permissions_ = status.st_mode & 0777;
    result.group_ = status.st_gid;
  }
  if (const int number = result.file_.make(); number != 0) return cannotMakeFile(op, path, number);
  return result;
}

Result<void> FileReplacement::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kFileBufferBytes) MNK_TRY(flush());
  if (bytes.size() >= kFileBufferBytes) return writeOut(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> FileReplacement::flush() {
  auto written = writeOut(buffer_);
  buffer_.clear();
  return written;
}

Result<void> FileReplacement::writeOut(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.descriptor(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fileError(op_, "the file cannot be written", path_, count < 0 ? errno : ENOSPC,
                       "Make room on the disk, and save again.");
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<void> FileReplacement::commit() {
  MNK_TRY(flush());
  // Some file systems have no permissions. If the group cannot be set, its permissions must not go to another group.
  const bool hasGroup = !group_ || ::fchown(file_.descriptor(), -1, *group_) == 0;
  (void)::fchmod(file_.descriptor(), permissions_ & (hasGroup ? 0777 : 0707));
  if (synchronize(file_.descriptor()) != 0) {
    return fileError(op_, "the file cannot be written", path_, errno, "Make room on the disk, and save again.");
  }
  if (const int number = file_.replaceTarget(); number != 0) {
    return fileError(op_, "the new file cannot take its place", path_, number,
                     "Pass the path of a file, not of a folder, that may be replaced.");
  }
  if (const int number = synchronizeFolder(folder_.get()); number != 0) {
    return fileError(op_, "the new file may be lost if the machine stops now", path_, number,
                     "Check the disk, and save again.");
  }
  return {};
}

}  // namespace mnk
