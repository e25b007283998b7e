// 128-bit keys, and a streaming hasher of 64-bit words that makes them: two independent
// multiply-and-fold lanes, about a nanosecond a word in pairs, two singly. Not cryptographic. The
// same words give the same key on every machine.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

namespace torch_tpu::ir {

struct Key {
  uint64_t lo = 0, hi = 0;
  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
  std::string hex() const;  // 32 digits, hi first
};

class KeyHasher {
 public:
  KeyHasher() = default;
  explicit KeyHasher(uint64_t seed) { add(seed); }

  void add(uint64_t word) {
    lo_ = fold(lo_ ^ word ^ kStep, kLow);
    hi_ = fold(hi_ ^ std::rotl(word, 29) ^ kMask, kHigh);
  }
  // Two words at the price of one; not the same as adding them one after the other.
  void add_pair(uint64_t first, uint64_t second) {
    lo_ = fold(lo_ ^ first ^ kStep, second ^ kLow);
    hi_ = fold(hi_ ^ std::rotl(second, 29) ^ kMask, std::rotl(first, 17) ^ kHigh);
  }
  void add(const Key& key) { add_pair(key.lo, key.hi); }
  void add_double(double value) { add(std::bit_cast<uint64_t>(value)); }
  // The length goes in first, so that neighbouring strings do not run together.
  void add_bytes(const void* data, size_t size) {
    add(static_cast<uint64_t>(size));
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 16; size -= 16, p += 16) {
      uint64_t words[2];
      std::memcpy(words, p, 16);
      add_pair(words[0], words[1]);
    }
    if (size >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
      size -= 8;
      p += 8;
    }
    if (size > 0) {
      uint64_t word = 0;
      std::memcpy(&word, p, size);
      add(word);
    }
  }
  void add_bytes(std::string_view text) { add_bytes(text.data(), text.size()); }

  // The key of what was added so far; more may be added afterwards.
  Key finish() const {
    const uint64_t a = mix(lo_ ^ std::rotl(hi_, 32));
    const uint64_t b = mix(hi_ + kMask);
    return {a ^ std::rotl(b, 17), b};
  }

 private:
  static constexpr uint64_t kLow = 0x9E3779B97F4A7C15, kHigh = 0xD6E8FEB86659FD93,
                            kMask = 0xA0761D6478BD642F, kStep = 0xE7037ED1A0B428DB;

  static uint64_t fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t lo_ = 0x2D358DCCAA6C78A5, hi_ = 0x8BB84B93962EACC9;
};

}  // namespace torch_tpu::ir

template <>
struct std::hash<torch_tpu::ir::Key> {
  size_t operator()(const torch_tpu::ir::Key& key) const noexcept {
    return static_cast<size_t>(key.lo);
  }
};
