#include "engine/disk_cache.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace torch_tpu::engine {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'t', 't', 'p', 'u', 'x', '0', '0', '1'};
constexpr const char* kSuffix = ".program";
constexpr std::string_view kNewPrefix =
    ".new-";  // then the writer's process id, and what makes it unique
constexpr int64_t kPruneEvery = int64_t{64}
                                << 20;  // bytes written between two looks at the directory's size

struct Header {
  char magic[8];
  ir::Key key;
  ir::Key checksum;
  uint64_t size;
};

ir::Key checksum(const std::string& bytes) {
  ir::KeyHasher hasher;
  hasher.add_bytes(bytes.data(), bytes.size());
  return hasher.finish();
}

// Why the directory cannot be used, or empty. Makes it, private to the user, where it is missing.
std::string prepare(const std::string& directory) {
  std::error_code error;
  const fs::path parent = fs::absolute(fs::path(directory) / ".").parent_path().parent_path();
  fs::create_directories(parent, error);
  if (error) return error.message();
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
  struct stat info;
  if (stat(directory.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "it is not a directory";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if ((info.st_mode & 0022) != 0) return "other users may write to it";
  if (access(directory.c_str(), W_OK | X_OK) != 0) return std::strerror(errno);
  return "";
}

std::string default_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/')
    return std::string(xdg) + "/torchtpu";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/torchtpu";
  return "";
}

// Whether `name` is a file that a process began to write and can no longer finish.
bool is_abandoned(const std::string& name) {
  if (!name.starts_with(kNewPrefix)) return false;
  char* end = nullptr;
  const long writer = std::strtol(name.c_str() + kNewPrefix.size(), &end, 10);
  return *end != '-' || writer <= 0 || (kill(static_cast<pid_t>(writer), 0) != 0 && errno == ESRCH);
}

}  // namespace

DiskCacheSettings disk_cache_settings() {
  DiskCacheSettings settings;
  if (const char* text = std::getenv("TORCH_TPU_CACHE_SIZE"); text != nullptr && *text != 0) {
    char* end = nullptr;
    settings.limit_bytes = std::strtoll(text, &end, 10);
    TORCH_CHECK_VALUE(*end == 0 && settings.limit_bytes > 0, "TORCH_TPU_CACHE_SIZE=", text,
                      " is not a positive number of bytes");
  }
  if (const char* off = std::getenv("TORCH_TPU_CACHE"); off != nullptr && std::string(off) == "0")
    return settings;
  const char* asked = std::getenv("TORCH_TPU_CACHE_DIR");
  settings.explicit_place = asked != nullptr && *asked != 0;
  settings.directory = settings.explicit_place ? asked : default_directory();
  return settings;
}

DiskCache::DiskCache() {
  const auto [directory, explicit_place, limit_bytes] = disk_cache_settings();
  limit_bytes_ = limit_bytes;
  if (directory.empty()) return;
  if (const std::string problem = prepare(directory); !problem.empty()) {
    TORCH_CHECK(!explicit_place, "the program cache directory TORCH_TPU_CACHE_DIR=", directory,
                " cannot be used: ", problem,
                ". Name a directory of your own, or set TORCH_TPU_CACHE=0");
    TORCH_WARN("torch.tpu: the program cache directory ", directory, " is not used: ", problem,
               ". Programs will be compiled again in each process");
    return;
  }
  directory_ = directory;
}

std::string DiskCache::path_of(const ir::Key& key) const {
  return directory_ + "/" + key.hex() + kSuffix;
}

bool DiskCache::contains(const ir::Key& key) const {
  return enabled() && ::access(path_of(key).c_str(), R_OK) == 0;
}

std::optional<std::string> DiskCache::read(const ir::Key& key) const {
  if (!enabled()) return std::nullopt;
  const std::string path = path_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Header header;
  std::string bytes;
  bool whole = static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header)) &&
               std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.key == key;
  std::error_code error;
  whole = whole && fs::file_size(path, error) == sizeof header + header.size && !error;
  if (whole) {
    bytes.resize(header.size);
    whole = static_cast<bool>(file.read(bytes.data(), static_cast<std::streamsize>(header.size))) &&
            checksum(bytes) == header.checksum;
  }
  if (!whole) {
    remove(key);
    return std::nullopt;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // recently used
  return bytes;
}

void DiskCache::write(const ir::Key& key, const std::string& bytes) {
  if (!enabled()) return;
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key;
  header.checksum = checksum(bytes);
  header.size = bytes.size();
  const std::string place =
      directory_ + "/" + std::string(kNewPrefix) + std::to_string(getpid()) + "-XXXXXX";
  std::string temporary = place;
  int fd = mkstemp(temporary.data());
  if (fd < 0 && errno == ENOENT && prepare(directory_).empty()) {  // somebody cleared it away
    temporary = place;
    fd = mkstemp(temporary.data());
  }
  if (fd < 0) return;
  const auto put = [fd](const void* data, size_t n) {
    return ::write(fd, data, n) == static_cast<ssize_t>(n);
  };
  const bool whole = put(&header, sizeof header) && put(bytes.data(), bytes.size());
  close(fd);
  if (!whole || rename(temporary.c_str(), path_of(key).c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  written_since_prune_ += static_cast<int64_t>(bytes.size());
  // The first one of a process: else many short processes would never look.
  if (!pruned_ || written_since_prune_ >= std::min(kPruneEvery, limit_bytes_ / 4)) prune();
}

void DiskCache::remove(const ir::Key& key) const { unlink(path_of(key).c_str()); }

void DiskCache::prune() {
  written_since_prune_ = 0;
  pruned_ = true;
  struct File {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;  // another process may take files away meanwhile
    if (is_abandoned(it->path().filename().string())) {
      fs::remove(it->path(), gone);
      continue;
    }
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone || it->path().extension() != kSuffix) continue;
    files.push_back({it->last_write_time(gone), bytes, it->path()});
    total += bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= limit_bytes_) break;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace torch_tpu::engine
