// Reading the signature of a program's main function.
#include "null_program.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace null_plugin {
namespace {

using std::string_view;

constexpr std::pair<string_view, PJRT_Buffer_Type> kElementTypes[] = {
    {"i1", PJRT_Buffer_Type_PRED},
    {"i8", PJRT_Buffer_Type_S8},
    {"i16", PJRT_Buffer_Type_S16},
    {"i32", PJRT_Buffer_Type_S32},
    {"i64", PJRT_Buffer_Type_S64},
    {"ui8", PJRT_Buffer_Type_U8},
    {"ui16", PJRT_Buffer_Type_U16},
    {"ui32", PJRT_Buffer_Type_U32},
    {"ui64", PJRT_Buffer_Type_U64},
    {"f16", PJRT_Buffer_Type_F16},
    {"bf16", PJRT_Buffer_Type_BF16},
    {"f32", PJRT_Buffer_Type_F32},
    {"f64", PJRT_Buffer_Type_F64},
    {"complex<f32>", PJRT_Buffer_Type_C64},
    {"complex<f64>", PJRT_Buffer_Type_C128},
    {"f8E4M3FN", PJRT_Buffer_Type_F8E4M3FN},
    {"f8E5M2", PJRT_Buffer_Type_F8E5M2},
    {"i4", PJRT_Buffer_Type_S4},
    {"ui4", PJRT_Buffer_Type_U4},
};

string_view trimmed(string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// The position of the bracket that closes the one at `open`, or npos. Brackets in strings do not
// count.
size_t closing(string_view text, size_t open) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && text[i - 1] != '\\') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    const bool arrow = c == '>' && i > 0 && text[i - 1] == '-';
    if (c == ')' || (c == '>' && !arrow) || c == '}' || c == ']') {
      if (--depth == 0) return i;
    }
  }
  return string_view::npos;
}

// The parts of `list` between commas that are in no bracket and no string.
std::vector<string_view> split(string_view list) {
  std::vector<string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '(' || c == '<' || c == '{' || c == '[') {
      i = closing(list, i);
      if (i == string_view::npos) return parts;
    } else if (c == ',') {
      parts.push_back(trimmed(list.substr(start, i - start)));
      start = i + 1;
    }
  }
  const string_view last = trimmed(list.substr(start));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

std::optional<int64_t> number(string_view text) {
  text = trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The bounds in "#stablehlo.bounds<64, ?>" by dimension; nothing where the type has none.
std::vector<string_view> bounds_in(string_view type) {
  constexpr string_view kBounds = "#stablehlo.bounds<";
  const size_t at = type.find(kBounds);
  if (at == string_view::npos) return {};
  const size_t open = at + kBounds.size() - 1;
  return split(type.substr(open + 1, closing(type, open) - open - 1));
}

// The first "tensor<2x3xf32>" in `text`.
std::optional<Shape> parse_tensor(string_view text) {
  constexpr string_view kTensor = "tensor<";
  const size_t at = text.find(kTensor);
  if (at == string_view::npos) return std::nullopt;
  const size_t open = at + kTensor.size() - 1;
  const size_t close = closing(text, open);
  if (close == string_view::npos) return std::nullopt;
  string_view type = text.substr(open + 1, close - open - 1);
  const std::vector<string_view> bounds = bounds_in(type);
  type = split(type).front();

  Shape shape;
  while (!type.empty() && (type.front() == '?' || (type.front() >= '0' && type.front() <= '9'))) {
    const size_t x = type.find('x');
    if (x == string_view::npos) return std::nullopt;
    string_view dim = type.substr(0, x);
    if (dim == "?" && shape.dims.size() < bounds.size()) dim = bounds[shape.dims.size()];
    const std::optional<int64_t> size = number(dim);
    if (!size) return std::nullopt;
    shape.dims.push_back(*size);
    type.remove_prefix(x + 1);
  }
  for (const auto& [name, element] : kElementTypes) {
    if (type == name) shape.type = element;
  }
  shape.size = element_size(shape.type);
  if (shape.size == 0) return std::nullopt;
  for (const int64_t dim : shape.dims) shape.size *= static_cast<size_t>(dim);
  return shape;
}

// The N of "tf.aliasing_output = N : i32".
std::optional<size_t> aliased_output(string_view argument) {
  constexpr string_view kAlias = "tf.aliasing_output = ";
  const size_t at = argument.find(kAlias);
  if (at == string_view::npos) return std::nullopt;
  string_view rest = argument.substr(at + kAlias.size());
  rest = rest.substr(0, rest.find_first_not_of("0123456789"));
  const std::optional<int64_t> output = number(rest);
  if (!output) return std::nullopt;
  return static_cast<size_t>(*output);
}

// The text of the results after the arguments: "tensor<..>, tensor<..>", or nothing.
string_view results_after(string_view text) {
  text = trimmed(text);
  if (!text.starts_with("->")) return "";
  text = trimmed(text.substr(2));
  if (text.starts_with("(")) return text.substr(1, closing(text, 0) - 1);
  const size_t open = text.find('<');
  if (open == string_view::npos) return "";
  return text.substr(0, closing(text, open) + 1);
}

bool parse_list(string_view list, std::vector<Shape>* shapes, std::string* problem) {
  for (const string_view item : split(list)) {
    std::optional<Shape> shape = parse_tensor(item);
    if (!shape) {
      *problem = "no tensor type in \"" + std::string(item) + "\"";
      return false;
    }
    shapes->push_back(std::move(*shape));
  }
  return true;
}

std::string fingerprint_of(string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return std::to_string(hash);
}

}  // namespace

size_t element_size(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_PRED:
    case PJRT_Buffer_Type_S8:
    case PJRT_Buffer_Type_U8:
    case PJRT_Buffer_Type_F8E4M3FN:
    case PJRT_Buffer_Type_F8E5M2:
    case PJRT_Buffer_Type_S4:
    case PJRT_Buffer_Type_U4:
      return 1;
    case PJRT_Buffer_Type_S16:
    case PJRT_Buffer_Type_U16:
    case PJRT_Buffer_Type_F16:
    case PJRT_Buffer_Type_BF16:
      return 2;
    case PJRT_Buffer_Type_S32:
    case PJRT_Buffer_Type_U32:
    case PJRT_Buffer_Type_F32:
      return 4;
    case PJRT_Buffer_Type_S64:
    case PJRT_Buffer_Type_U64:
    case PJRT_Buffer_Type_F64:
    case PJRT_Buffer_Type_C64:
      return 8;
    case PJRT_Buffer_Type_C128:
      return 16;
    default:
      return 0;
  }
}

std::shared_ptr<const Program> parse_program(std::string text, std::string* problem) {
  constexpr string_view kMain = "@main(";
  auto program = std::make_shared<Program>();
  program->text = std::move(text);
  const string_view view = program->text;
  const size_t at = view.find(kMain);
  const size_t open = at + kMain.size() - 1;
  const size_t close = at == string_view::npos ? at : closing(view, open);
  if (close == string_view::npos) {
    *problem = "the program has no function @main";
    return nullptr;
  }
  const string_view arguments = view.substr(open + 1, close - open - 1);
  if (!parse_list(arguments, &program->arguments, problem)) return nullptr;
  if (!parse_list(results_after(view.substr(close + 1)), &program->outputs, problem))
    return nullptr;

  size_t index = 0;
  for (const string_view argument : split(arguments)) {
    const std::optional<size_t> output = aliased_output(argument);
    if (output && (*output >= program->outputs.size() ||
                   program->outputs[*output].size != program->arguments[index].size)) {
      *problem = "argument " + std::to_string(index) + " cannot be donated to output " +
                 std::to_string(*output);
      return nullptr;
    }
    if (output) program->donations.push_back({index, *output});
    ++index;
  }
  for (const Shape& shape : program->outputs) {
    program->output_types.push_back(shape.type);
    program->output_dims.insert(program->output_dims.end(), shape.dims.begin(), shape.dims.end());
    program->output_ranks.push_back(shape.dims.size());
  }
  program->fingerprint = fingerprint_of(program->text);
  return program;
}

}  // namespace null_plugin
