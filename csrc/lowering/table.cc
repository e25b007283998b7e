// The operator table, made of the families' rows.
#include "lowering/table.h"

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/families.h"

namespace torch_tpu::lowering {
namespace {

std::vector<OpRow> concatenate_families() {
  std::vector<OpRow> rows;
#define TORCH_TPU_APPEND_FAMILY(name) \
  rows.insert(rows.end(), k##name##Rows, k##name##Rows + k##name##RowCount);
  TORCH_TPU_OPERATOR_FAMILIES(TORCH_TPU_APPEND_FAMILY)
#undef TORCH_TPU_APPEND_FAMILY
  return rows;
}

const std::vector<OpRow>& rows() {
  static const std::vector<OpRow> table = concatenate_families();
  return table;
}

std::unordered_map<std::string_view, const OpRow*> index_rows() {
  std::unordered_map<std::string_view, const OpRow*> index;
  index.reserve(rows().size());
  for (const OpRow& row : rows()) {
    if (!index.emplace(row.name, &row).second) {
      throw std::logic_error("the operator table has two rows named " + std::string(row.name));
    }
  }
  return index;
}

}  // namespace

std::span<const OpRow> operator_table() { return rows(); }

const OpRow* find_row(std::string_view name) {
  static const std::unordered_map<std::string_view, const OpRow*> index = index_rows();
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace torch_tpu::lowering
