// Compiled programs on disk, shared between processes. Loading one runs its code, so the directory must be ours alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/key.h"

namespace torch_tpu::engine {

// What the environment says of the cache. Throws ValueError for a size that is none.
struct DiskCacheSettings {
  std::string directory;  // "" where it is switched off or has no place
  bool explicit_place = false;
  int64_t limit_bytes = int64_t{4} << 30;
};
DiskCacheSettings disk_cache_settings();

// TORCH_TPU_CACHE=0 switches it off, TORCH_TPU_CACHE_DIR places it (default: $XDG_CACHE_HOME/torchtpu or
// ~/.cache/torchtpu), TORCH_TPU_CACHE_SIZE limits its bytes (least recently used programs go first).
class DiskCache {
 public:
  // Throws a c10::Error when TORCH_TPU_CACHE_DIR cannot be used; a default directory that cannot is left unused with a
  // warning.
  DiskCache();

  bool enabled() const { return !directory_.empty(); }
  const std::string& directory() const { return directory_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  bool contains(const ir::Key& key) const;
  // The stored bytes, checked against their checksum; a damaged file is removed and reads as absent.
  std::optional<std::string> read(const ir::Key& key) const;
  // Written beside and renamed, so that readers see a whole file or none. Best effort: a full disk loses the entry only.
  void write(const ir::Key& key, const std::string& bytes);
  // Takes a file that the plugin refused to load away.
  void remove(const ir::Key& key) const;

 private:
  std::string path_of(const ir::Key& key) const;
  // Removes the least recently used programs beyond the limit, and what killed processes left half-written.
  void prune();

  std::string directory_;
  int64_t limit_bytes_;
  int64_t written_since_prune_ = 0;
  bool pruned_ = false;
};

}  // namespace torch_tpu::engine
