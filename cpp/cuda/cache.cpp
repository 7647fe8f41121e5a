// Reads and writes the files of the kernel cache.
#include "cuda/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/env.h"
#include "cuda/of_process.h"

namespace rlx::cuda {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_bytes = uint64_t{1} << 30;  // of a folder

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

struct Entry {
  fs::path path;
  fs::file_time_type used;  // to a day
  uint64_t bytes;
};

bool is_key(const std::string& text) {
  return text.size() == 2 * std::tuple_size_v<Digest> &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c); });
}

bool is_kind(const std::string& ending) {
  return std::ranges::count(std::array{".cubin", ".kernel", ".plan", ".algo"}, ending) > 0;
}

// The entries of a folder, which may hold other files too. What a process that was killed while it
// wrote left behind is removed.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code failed;
  const auto abandoned = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;  // another process may be at it too
    const auto used = at->last_write_time(gone);
    const uint64_t bytes = gone ? 0 : at->file_size(gone);
    if (gone) continue;
    const fs::path& path = at->path();
    if (is_key(path.stem()) && is_kind(path.extension())) entries.push_back({path, used, bytes});
    const std::string name = path.filename();  // an entry's while it is written begins as it does
    const bool temporary = path.extension() == ".tmp" && is_key(name.substr(0, name.find('.')));
    if (temporary && used < abandoned) fs::remove(path, gone);
  }
  return entries;
}

// Bytes of the entries that stay: where `coming` do not fit beside them, those used longest ago are
// removed, and a few more, so that this is rare. Who reads one at this moment has it open.
uint64_t trim(const std::string& folder, uint64_t coming) {
  std::vector<Entry> entries = entries_of(folder);
  uint64_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  if (bytes + coming <= most_bytes) return bytes;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& oldest : entries) {
    if (bytes + coming <= most_bytes / 8 * 7) break;
    std::error_code none;
    fs::remove(oldest.path, none);
    bytes -= oldest.bytes;
  }
  return bytes;
}

// What each folder holds, as far as this process knows.
struct Folders {
  std::mutex mutex;
  std::map<std::string, uint64_t> bytes;
};

void make_room(const std::string& folder, uint64_t bytes) {
  auto& folders = of_process<Folders>();
  const std::lock_guard lock(folders.mutex);
  const auto [known, first] = folders.bytes.try_emplace(folder, 0);
  known->second += bytes;
  if (first || known->second > most_bytes) known->second = trim(folder, bytes) + bytes;
}

// So that it is not the first to be removed. A folder that is only read keeps its times.
void note_use(int fd, const struct stat& status) {
  constexpr time_t day = 24 * 60 * 60;
  if (status.st_mtime < time(nullptr) - day) futimens(fd, nullptr);
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
  note_use(file.fd, status);
  return contents;
}

void DiskCache::write(const Digest& key, std::span<const std::byte> contents) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  make_room(folder_, sizeof(Header) + contents.size());
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
