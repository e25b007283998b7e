// The text of a key.
#include "ir/key.h"

namespace torch_tpu::ir {

std::string Key::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[i] = kDigits[hi >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[lo >> (60 - 4 * i) & 15];
  }
  return text;
}

}  // namespace torch_tpu::ir
