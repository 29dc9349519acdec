// Which files a save may replace, what it leaves behind, and what it removes after killed saves.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <thread>

#include "Cache/CacheFileFixture.hpp"
#include "Support/File.hpp"

namespace mnk::test {

namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytesOfText(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<void> replace(const std::string& path, std::string_view text = "new") {
  auto replacement = FileReplacement::make("Test", path);
  if (!replacement) return std::move(replacement).error();
  if (auto written = replacement->write(bytesOfText(text)); !written) return written;
  return replacement->commit();
}

// With unnamed temporary files, if the system has them, and with named ones.
template <typename Body>
void withEitherTemporary(Body body) {
  for (const bool namesAlways : {false, true}) {
    const Context context(namesAlways ? "named" : "unnamed");
    TemporaryFile::setNamesAlways(namesAlways);
    body();
    TemporaryFile::setNamesAlways(false);
  }
}

// A name that a save of this file gives its temporary file for a moment.
std::string temporaryName(std::string_view file, uint32_t attempt) {
  Crc32 sum;
  sum.add(bytesOfText(file));
  return fmt::format(".mnk-save-{:08x}{:08x}.tmp", sum.value(), attempt);
}

mode_t permissionsOf(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

std::set<int> openFiles() {
  std::set<int> open;
  for (int number = 0; number < 1024; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) open.insert(number);
  }
  return open;
}

constexpr ExpectedError kNotPlain{.op = "Test",
                                  .what = "the path does not lead to a plain file",
                                  .got = "other",
                                  .expected = "a plain file",
                                  .fix = "Pass the path of a file, not of a folder, a pipe or a device."};

}  // namespace

TEST(FileReplacement, RefusesAnythingButAPlainFile) {
  FileDescriptor socket;
  const std::function<void(const std::string&)> makers[] = {
      [](const std::string& path) { EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0); },
      [](const std::string& path) { fs::create_directory(path); },
      [&](const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        socket = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM, 0));
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
      }};
  for (const auto& make : makers) {
    const CacheFolder folder;
    make(folder.path("other"));
    struct stat before {
    }, after{};
    EXPECT_EQ(::lstat(folder.path("other").c_str(), &before), 0);
    EXPECT_ERROR(replace(folder.path("other")), (kNotPlain));
    EXPECT_EQ(::lstat(folder.path("other").c_str(), &after), 0);
    EXPECT(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    EXPECT_EQ(folder.fileCount(), 1u);
    // Nor through a link.
    fs::create_symlink("other", folder.path("to other"));
    EXPECT_ERROR(replace(folder.path("to other")), (kNotPlain));
  }
}

TEST(FileReplacement, FollowsLinksToTheirTarget) {
  const CacheFolder folder;
  fs::create_directory(folder.path("inside"));
  writeFile(folder.path("inside/file"), bytesOfText("old"));
  fs::create_symlink("inside/file", folder.path("relative"));
  fs::create_symlink(folder.path("relative"), folder.path("absolute"));
  for (const char* link : {"relative", "absolute"}) {
    REQUIRE(replace(folder.path(link), link));
    EXPECT(fs::is_symlink(folder.path(link)));
    EXPECT(readFile(folder.path("inside/file")) == bytesOfText(link));
  }
  // Links in the middle, to a folder and on to its parent.
  fs::create_directory_symlink("inside", folder.path("around"));
  fs::create_directory_symlink(folder.path("around/../around"), folder.path("way"));
  for (const char* path : {"around/file", "way//./file", "way/../relative"}) {
    REQUIRE(replace(folder.path(path), path));
    EXPECT(readFile(folder.path("inside/file")) == bytesOfText(path));
  }
  EXPECT_ERROR(replace(folder.path("way/..")), {.what = "the path does not lead to a plain file"});
  fs::create_symlink("inside/new", folder.path("dangling"));
  REQUIRE(replace(folder.path("dangling")));
  EXPECT(fs::is_symlink(folder.path("dangling")) && fs::is_regular_file(fs::symlink_status(folder.path("inside/new"))));

  fs::create_symlink("endless", folder.path("loop"));
  fs::create_symlink("loop", folder.path("endless"));
  EXPECT_ERROR(replace(folder.path("loop")), {.op = "Test",
                                              .what = "the path cannot be followed to a file",
                                              .got = "loop\": Too many levels of symbolic links",
                                              .expected = "a file that can be read or written there",
                                              .fix = "Pass the path of a file."});
  EXPECT(fs::is_symlink(folder.path("loop")));
}

TEST(FileReplacement, KeepsThePermissionsOfTheOldFile) {
  withEitherTemporary([] {
    const CacheFolder folder;
    REQUIRE(replace(folder.path()));
    EXPECT_EQ(permissionsOf(folder.path()), 0600u);  // holds user data
    for (const mode_t mode : {0644u, 0660u, 0400u}) {
      EXPECT_EQ(::chmod(folder.path().c_str(), mode), 0);
      REQUIRE(replace(folder.path()));
      EXPECT_EQ(permissionsOf(folder.path()), mode);
    }
  });
}

TEST(FileReplacement, WithoutCommitNothingChanges) {
  withEitherTemporary([] {
    const CacheFolder folder;
    REQUIRE(replace(folder.path(), "old"));
    {
      FileReplacement replacement = REQUIRE(FileReplacement::make("Test", folder.path()));
      REQUIRE(replacement.write(bytesOfText("new")));
      const FileReplacement moved = std::move(replacement);
    }
    EXPECT_EQ(folder.fileCount(), 1u);
    EXPECT(readFile(folder.path()) == bytesOfText("old"));
  });
}

TEST(FileReplacement, PiecesOfAnySizeArriveInOrder) {
  const CacheFolder folder;
  std::vector<std::byte> all;
  FileReplacement replacement = REQUIRE(FileReplacement::make("Test", folder.path()));
  for (const size_t count : {1, 1 << 18, 100, (1 << 18) - 100, (1 << 18) - 1, 1, 0, (1 << 19) + 3, 7}) {
    std::vector<std::byte> piece(count);
    for (std::byte& byte : piece) byte = static_cast<std::byte>(all.size() * 7 + (&byte - piece.data()) * 13);
    all.insert(all.end(), piece.begin(), piece.end());
    REQUIRE(replacement.write(piece));
  }
  REQUIRE(replacement.commit());
  EXPECT(readFile(folder.path()) == all);
  FileReader reader = REQUIRE(FileReader::open("Test", folder.path()));
  std::vector<std::byte> read(all.size());
  size_t at = 0;
  for (const size_t count : {3, 1 << 18, (1 << 18) - 1, 2, 1 << 19}) {
    REQUIRE(reader.read(std::span(read).subspan(at, count)));
    at += count;
  }
  REQUIRE(reader.read(std::span(read).subspan(at)));
  EXPECT(read == all);
}

// A process started meanwhile would otherwise hold the file and its lock.
TEST(FileReplacement, OtherProcessesInheritNoFile) {
  withEitherTemporary([] {
    const CacheFolder folder;
    const std::set<int> before = openFiles();
    const FileReplacement replacement = REQUIRE(FileReplacement::make("Test", folder.path()));
    size_t opened = 0;
    for (const int number : openFiles()) {
      struct stat status {};
      if (before.contains(number) || ::fstat(number, &status) != 0 || !S_ISREG(status.st_mode)) continue;
      opened += 1;
      EXPECT_EQ(::fcntl(number, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    EXPECT(opened >= 1);
  });
}

// Saves of other files leave the remains alone: to find them, each save would have to list the folder.
TEST(FileReplacement, RemovesFilesOfKilledSavesOfTheSameFile) {
  withEitherTemporary([] {
    const CacheFolder folder;
    for (const uint32_t attempt : {0, 3, 15})
      writeFile(folder.path(temporaryName("file", attempt)), bytesOfText("left"));
    REQUIRE(replace(folder.path("other")));
    EXPECT_EQ(folder.fileCount(), 4u);
    REQUIRE(replace(folder.path("file")));
    EXPECT_EQ(folder.fileCount(), 2u);
  });
}

TEST(FileReplacement, SavesBesideMoreSavesThanSharedNames) {
  withEitherTemporary([] {
    const CacheFolder folder;
    std::vector<FileReplacement> others;
    for (int i = 0; i < 20; ++i) others.push_back(REQUIRE(FileReplacement::make("Test", folder.path("file"))));
    REQUIRE(replace(folder.path("file")));
    for (FileReplacement& other : others) REQUIRE(other.commit());
    EXPECT_EQ(folder.fileCount(), 1u);
  });
}

// Otherwise, another user could redirect a save that has begun.
TEST(FileReplacement, StaysInTheFolderThatItFound) {
  withEitherTemporary([] {
    const CacheFolder folder;
    for (const char* name : {"first", "second"}) fs::create_directory(folder.path(name));
    writeFile(folder.path("second/file"), bytesOfText("old"));
    FileReplacement replacement = REQUIRE(FileReplacement::make("Test", folder.path("first/file")));
    fs::rename(folder.path("first"), folder.path("moved"));
    fs::create_directory_symlink("second", folder.path("first"));
    REQUIRE(replacement.write(bytesOfText("new")));
    REQUIRE(replacement.commit());
    EXPECT(readFile(folder.path("moved/file")) == bytesOfText("new"));
    EXPECT(readFile(folder.path("second/file")) == bytesOfText("old"));
  });
}

TEST(FileReplacement, KeepsForeignFilesAndFilesInUse) {
  withEitherTemporary([] {
    const CacheFolder folder;
    const auto temporary = [&](uint32_t attempt) { return folder.path(temporaryName("file", attempt)); };
    writeFile(folder.path("other"), bytesOfText("kept"));
    fs::create_directory(temporary(0));
    fs::create_symlink("other", temporary(1));
    EXPECT_EQ(::mkfifo(temporary(2).c_str(), 0600), 0);
    const FileDescriptor held(::open(temporary(3).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
    size_t kept = 5;
    if (::geteuid() == 0) {
      writeFile(temporary(4), bytesOfText("of another user"));
      EXPECT_EQ(::chown(temporary(4).c_str(), 1, 1), 0);
      kept += 1;
    }
    REQUIRE(replace(folder.path("file")));
    EXPECT_EQ(folder.fileCount(), kept + 1);
    EXPECT(fs::exists(temporary(3)));
  });
}

TEST(FileReplacement, RefusesTheNameOfATemporaryFile) {
  const CacheFolder folder;
  EXPECT_ERROR(replace(folder.path(".mnk-save-0123456789abcdef.tmp")), {.what = "the name is one of temporary files",
                                                                        .got = ".mnk-save-0123456789abcdef.tmp",
                                                                        .expected = "a name that no later save removes",
                                                                        .fix = "Pass another name."});
  EXPECT_EQ(folder.fileCount(), 0u);
}

// Only root can create files of other users.
TEST(FileReplacement, KeepsGroupsAndRefusesForeignLinks) {
  if (::geteuid() != 0) return;
  const CacheFolder folder;
  writeFile(folder.path("file"), bytesOfText("old"));
  EXPECT_EQ(::chown(folder.path("file").c_str(), 0, 7), 0);
  EXPECT_EQ(::chmod(folder.path("file").c_str(), 0640), 0);
  fs::create_symlink("file", folder.path("link"));
  EXPECT_EQ(::lchown(folder.path("link").c_str(), 7, 7), 0);
  fs::create_symlink("link", folder.path("own"));
  fs::create_directory_symlink(".", folder.path("here"));
  EXPECT_EQ(::lchown(folder.path("here").c_str(), 7, 7), 0);
  const std::pair<const char*, const char*> refused[] = {
      {"link", "/link\""}, {"own", "/link\", in \""}, {"here/file", "/here\", in \""}, {"here/new", "/here\", in \""}};
  for (const auto& [path, got] : refused) {
    const Context context(path);
    EXPECT_ERROR(replace(folder.path(path)),
                 {.what = "the path contains a link of another user",
                  .got = got,
                  .expected = "links that this user, root or the owner of their folder has made",
                  .fix = "Pass a path without this link, in a folder of your own."});
  }
  EXPECT(!fs::exists(folder.path("new")));
  EXPECT(readFile(folder.path("file")) == bytesOfText("old"));
  REQUIRE(replace(folder.path("file")));
  struct stat status {};
  EXPECT_EQ(::stat(folder.path("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, 7u);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

// Each save looks for abandoned files while the others create, lock and rename theirs.
TEST(FileReplacement, ManyConcurrentSavesAllSucceed) {
  withEitherTemporary([] {
    const CacheFolder folder;
    std::vector<std::thread> threads;
    std::atomic<size_t> failures = 0;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        const std::string name = folder.path(std::to_string(thread));
        for (int i = 0; i < 50; ++i) {
          const std::string text = std::to_string(i);
          if (!replace(name, text) || readFile(name) != bytesOfText(text)) failures += 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures.load(), 0u);
    EXPECT_EQ(folder.fileCount(), 4u);
  });
}

TEST(Crc32, MatchesZipForPiecesOfAnySize) {
  Crc32 known;
  known.add(bytesOfText("123456789"));
  EXPECT_EQ(known.value(), 0xCBF43926u);
  // The definition, bit by bit.
  std::vector<std::byte> bytes(200);
  uint32_t expected = 0xFFFFFFFF;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 37 + 11);
    expected ^= static_cast<uint32_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) expected = (expected >> 1) ^ (expected & 1 ? 0xEDB88320 : 0);
  }
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    Crc32 sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(sum.value(), ~expected);
  }
}

}  // namespace mnk::test
