#include "Support/TemporaryFile.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "Support/Crc32.hpp"

namespace mnk {

namespace {

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

}  // namespace

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

}  // namespace mnk
