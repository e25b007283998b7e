// Plugin files before they are loaded: which one to use, and a hash that names its build.
#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "pjrt/plugin.h"

namespace torch_tpu::pjrt {
namespace {

namespace fs = std::filesystem;

constexpr char kGooglePciVendor[] = "0x1ae0";
// v2 and v3, v4, v5p, v5e, v6e, tpu7x.
constexpr std::array kTpuPciDevices = {"0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"};

constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15;
constexpr size_t kHashBlock = size_t{1} << 18;

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<PluginChoice> from_variable(const char* name, const std::string& path, bool is_tpu) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return Status(Code::kNotFound, std::string(name) + " names \"" + path +
                                       "\", which is not a file: set it to the path of a PJRT "
                                       "plugin (a shared library), or unset it.");
  }
  return PluginChoice{path, is_tpu};
}

bool looks_like_libtpu(const std::string& path) {
  return fs::path(path).filename().string().find("libtpu") != std::string::npos;
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

// Four independent chains, so that hashing costs less than reading.
class Hasher {
 public:
  // Every call but the last must bring a multiple of kStep bytes.
  void add(const char* data, size_t size) {
    size_t i = 0;
    for (; i + kStep <= size; i += kStep) add_step(data + i);
    if (i < size) {
      std::array<char, kStep> rest = {};
      std::memcpy(rest.data(), data + i, size - i);
      add_step(rest.data());
    }
    size_ += size;
  }
  uint64_t finish() const {
    uint64_t hash = mix(kHashSeed, size_);
    for (const uint64_t lane : lanes_) hash = mix(hash, lane);
    return hash;
  }

 private:
  static constexpr size_t kStep = 4 * sizeof(uint64_t);

  void add_step(const char* data) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), data, sizeof(words));
    for (size_t i = 0; i < words.size(); ++i) lanes_[i] = mix(lanes_[i], words[i]);
  }

  std::array<uint64_t, 4> lanes_ = {1, 2, 3, 4};
  uint64_t size_ = 0;
};

template <typename T>
bool read_at(std::ifstream& file, uint64_t offset, T* out, size_t size = sizeof(T)) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(
      file.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(size)));
}

// The GNU build id among the notes of `segment`, or empty.
std::string build_id_in(std::ifstream& file, const Elf64_Phdr& segment) {
  constexpr uint64_t kLargestNotes = uint64_t{1} << 16;
  if (segment.p_filesz > kLargestNotes) return "";
  std::vector<char> notes(segment.p_filesz);
  if (!read_at(file, segment.p_offset, notes.data(), notes.size())) return "";
  const size_t align = segment.p_align == 8 ? 8 : 4;
  const auto padded = [align](size_t n) { return (n + align - 1) / align * align; };
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const size_t name_at = at + sizeof(note);
    const size_t desc_at = name_at + padded(note.n_namesz);
    if (desc_at + note.n_descsz > notes.size()) return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name_at, "GNU", 4) == 0) {
      return std::string(notes.data() + desc_at, note.n_descsz);
    }
    at = desc_at + padded(note.n_descsz);
  }
  return "";
}

std::string build_id(std::ifstream& file) {
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return "";
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof(segment), &segment)) return "";
    if (segment.p_type != PT_NOTE) continue;
    std::string id = build_id_in(file, segment);
    if (!id.empty()) return id;
  }
  return "";
}

}  // namespace

int count_tpu_chips(const std::string& pci_devices) {
  int count = 0;
  std::error_code error;
  fs::directory_iterator entries(pci_devices, error);
  if (error) return 0;
  for (const fs::directory_entry& entry : entries) {
    if (first_word(entry.path() / "vendor") != kGooglePciVendor) continue;
    const std::string device = first_word(entry.path() / "device");
    count +=
        std::find(kTpuPciDevices.begin(), kTpuPciDevices.end(), device) != kTpuPciDevices.end();
  }
  return count;
}

Result<PluginChoice> discover(const PluginCandidates& candidates) {
  const std::string chosen = variable("TORCH_TPU_PJRT_PLUGIN");
  if (!chosen.empty()) {
    return from_variable("TORCH_TPU_PJRT_PLUGIN", chosen, looks_like_libtpu(chosen));
  }
  const std::string libtpu = variable("TPU_LIBRARY_PATH");
  if (!libtpu.empty()) return from_variable("TPU_LIBRARY_PATH", libtpu, true);
  const int chips = count_tpu_chips();
  if (chips > 0) {
    if (!candidates.libtpu_path.empty()) return PluginChoice{candidates.libtpu_path, true};
    return Status(Code::kNotFound, "this host has " + std::to_string(chips) +
                                       " TPU chip(s) but libtpu is not installed: run `pip install "
                                       "libtpu`, or set TPU_LIBRARY_PATH to libtpu.so.");
  }
  if (!candidates.cpu_path.empty()) return PluginChoice{candidates.cpu_path, false};
  return Status(Code::kNotFound,
                "this host has no TPU chip and no PJRT plugin for CPUs is installed: run `pip "
                "install xla-cpu-pjrt`, or set TORCH_TPU_PJRT_PLUGIN to a PJRT plugin.");
}

Result<uint64_t> hash_plugin_file(const std::string& path) {
  std::ifstream file;
  file.rdbuf()->pubsetbuf(nullptr, 0);  // the reads below are large
  file.open(path, std::ios::binary);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!file || error)
    return Status(Code::kNotFound, "cannot read the PJRT plugin \"" + path + "\".");
  Hasher hasher;
  const std::string id = build_id(file);
  if (!id.empty()) {
    hasher.add(id.data(), id.size());
    return mix(hasher.finish(), size);
  }
  file.clear();
  file.seekg(0);
  std::vector<char> block(kHashBlock);
  do {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    hasher.add(block.data(), static_cast<size_t>(file.gcount()));
  } while (file);
  return hasher.finish();
}

}  // namespace torch_tpu::pjrt
