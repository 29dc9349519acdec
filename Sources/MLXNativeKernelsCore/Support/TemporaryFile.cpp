#include "Support/TemporaryFile.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>

namespace mnk {

namespace {

constexpr std::string_view kStart = ".mnk-save-", kEnd = ".tmp";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kRandomDigits = 16;
constexpr int kAttempts = 100;

std::atomic<bool> namesAlways = false;

bool isPlainFileOfThisUser(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

// Whether the path names this open file rather than a link to it.
bool names(const char* path, int file) {
  struct stat named {
  }, open{};
  return ::lstat(path, &named) == 0 && ::fstat(file, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
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

}  // namespace

TemporaryFile::TemporaryFile(std::string folder) : folder_(std::move(folder)) {
  name_ = folder_ + std::string(kStart) + std::string(kRandomDigits, '-') + std::string(kEnd);
}

bool TemporaryFile::isTemporaryName(std::string_view name) {
  return name.size() == kStart.size() + kRandomDigits + kEnd.size() && name.starts_with(kStart) &&
         name.ends_with(kEnd) && name.find_first_not_of(kDigits, kStart.size()) == name.size() - kEnd.size();
}

TemporaryFile::~TemporaryFile() {
  if (isNamed_) ::unlink(name_.c_str());  // before closing the descriptor releases the lock
}

void TemporaryFile::chooseName() {
  std::random_device random;
  const auto end = name_.end() - kEnd.size();
  std::generate(end - kRandomDigits, end, [&] { return kDigits[random() % kDigits.size()]; });
}

int TemporaryFile::make() {
#ifdef O_TMPFILE
  if (!namesAlways) {
    const char* folder = folder_.empty() ? "." : folder_.c_str();
    FileDescriptor file(::open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (file.get() >= 0 && ::access(OpenFileLink(file.get()).path, F_OK) == 0) {
      file_ = std::move(file);
      return 0;
    }
  }
#endif
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    chooseName();
    FileDescriptor file(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0 && errno == EEXIST) continue;
    if (file.get() < 0) return errno;
    // Another save may have seen the file before it was locked and considered it abandoned.
    if (!lock(file.get()) && errno == EWOULDBLOCK) continue;
    if (!names(name_.c_str(), file.get())) continue;
    file_ = std::move(file);
    isNamed_ = true;
    return 0;
  }
  return EEXIST;
}

int TemporaryFile::moveTo(const std::string& path) {
#ifdef O_TMPFILE
  if (!isNamed_) {
    (void)lock(file_.get());  // before others can see it
    const OpenFileLink link(file_.get());
    for (int attempt = 0; !isNamed_; ++attempt) {
      chooseName();
      isNamed_ = ::linkat(AT_FDCWD, link.path, AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) == 0;
      if (!isNamed_ && (errno != EEXIST || attempt == kAttempts)) return errno;
    }
  }
#endif
  if (::rename(name_.c_str(), path.c_str()) != 0) return errno;
  isNamed_ = false;
  return 0;
}

void TemporaryFile::removeAbandoned(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    struct stat status {};
    // Check first: opening something other than a regular file could have side effects.
    if (!isTemporaryName(path.filename().native()) || ::lstat(path.c_str(), &status) != 0 ||
        !isPlainFileOfThisUser(status)) {
      continue;
    }
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !isPlainFileOfThisUser(status)) continue;
    // Its owner may have renamed it meanwhile. With the lock held, neither the owner nor another save changes the name.
    if (lock(file.get()) && names(path.c_str(), file.get())) ::unlink(path.c_str());
  }
}

void TemporaryFile::setNamesAlways(bool always) {
  namesAlways = always;
}

}  // namespace mnk
