// Reads and writes the files of the kernel cache.
#include "cuda/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "core/env.h"

namespace rlx::cuda {
namespace {

namespace fs = std::filesystem;

struct Header {
  char magic[8] = {'r', 'l', 'x', 'k', 'e', 'r', 'n', '1'};
  Digest key{}, contents{};
  uint64_t size = 0;
};

Digest digest_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

void say_once(const std::string& what) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) std::fprintf(stderr, "rlx: no kernel cache: %s\n", what.c_str());
}

// What a process that was killed while it wrote left behind.
void remove_abandoned(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> cleaned;
  const std::lock_guard lock(mutex);
  if (!cleaned.insert(folder).second) return;
  std::error_code none;
  const auto before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".tmp") continue;
    const auto written = entry.last_write_time(none);
    if (!none && written < before) fs::remove(entry.path(), none);
  }
}

struct File {
  explicit File(int fd) : fd(fd) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  int fd;
};

bool write_all(int fd, const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n <= 0) return false;
    at += n, size -= size_t(n);
  }
  return true;
}

bool read_all(int fd, void* bytes, size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::read(fd, at, size);
    if (n <= 0) return false;
    at += n, size -= size_t(n);
  }
  return true;
}

}  // namespace

std::string cache_folder() {
  if (const auto chosen = env("CUDA_PTX_CACHE")) return *chosen == "off" ? "" : *chosen;
  if (const auto xdg = system_env("XDG_CACHE_HOME")) return *xdg + "/rlx/kernels";
  if (const auto home = system_env("HOME")) return *home + "/.cache/rlx/kernels";
  return "";
}

std::string DiskCache::path(const Digest& key) const {
  return folder_ + "/" + hexadecimal(key) + "." + kind_;
}

std::optional<std::vector<std::byte>> DiskCache::read(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  const File file(open(path(key).c_str(), O_RDONLY | O_CLOEXEC));
  Header header;
  const Header expected;
  struct stat status{};
  if (file.fd < 0 || fstat(file.fd, &status) != 0) return std::nullopt;
  if (!read_all(file.fd, &header, sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.key != key ||
      header.size != uint64_t(status.st_size) - sizeof header) {
    return std::nullopt;
  }
  std::vector<std::byte> contents(header.size);
  if (!read_all(file.fd, contents.data(), contents.size())) return std::nullopt;
  if (digest_of(contents) != header.contents) return std::nullopt;
  return contents;
}

void DiskCache::write(const Digest& key, std::span<const std::byte> contents) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  remove_abandoned(folder_);
  static std::atomic<uint64_t> number{0};
  const std::string temporary = path(key) + "." + std::to_string(getpid()) + "." +
                                std::to_string(number++) + ".tmp";
  Header header;
  header.key = key, header.contents = digest_of(contents), header.size = contents.size();
  bool whole = false;
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.fd < 0) return say_once(folder_ + ": " + std::strerror(errno));
    whole = write_all(file.fd, &header, sizeof header) &&
            write_all(file.fd, contents.data(), contents.size());
  }
  if (!whole || rename(temporary.c_str(), path(key).c_str()) != 0) {
    say_once(folder_ + ": " + std::strerror(errno));
    unlink(temporary.c_str());
  }
}

}  // namespace rlx::cuda
