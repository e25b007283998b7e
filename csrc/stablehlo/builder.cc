// The builder's core: the function, its parameters and results, printing of operations and regions.
#include "stablehlo/builder.h"

#include <charconv>

#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {

void append_int(std::string* text, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text->append(digits, end);
}

void append_type(std::string* text, const Type& type) {
  text->append("tensor<");
  bool bounded = false;
  for (const Size& d : type.dims) {
    if (d.is_static()) {
      append_int(text, d.bound());
    } else {
      text->push_back('?');
      bounded = true;
    }
    text->push_back('x');
  }
  text->append(mlir_name(type.dtype));
  if (bounded) {
    text->append(", #stablehlo.bounds<");
    for (size_t i = 0; i < type.dims.size(); ++i) {
      if (i > 0) text->append(", ");
      if (type.dims[i].is_static()) {
        text->push_back('?');
      } else {
        append_int(text, type.dims[i].bound());
      }
    }
    text->push_back('>');
  }
  text->push_back('>');
}

void append_quoted(std::string* text, std::string_view value) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  text->push_back('"');
  for (const char c : value) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text->push_back('\\');
      text->push_back(c);
    } else if (u < 0x20 || u >= 0x7f) {
      text->push_back('\\');
      text->push_back(kHex[u >> 4]);
      text->push_back(kHex[u & 15]);
    } else {
      text->push_back(c);
    }
  }
  text->push_back('"');
}

void fail(std::string_view op, const std::string& what, BuildError::Cause cause,
          std::vector<Type> operands) {
  throw BuildError(std::string(op) + ": " + what, cause, std::move(operands));
}

std::string describe(std::span<const Value> values) {
  std::string text = "(";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    if (values[i]) {
      append_type(&text, values[i].type());
    } else {
      text += "nothing";
    }
  }
  return text + ")";
}

std::string describe(const std::vector<int64_t>& values) { return int_list(values); }

void check_dim(std::string_view op, int64_t dim, const Value& x) {
  if (dim < 0 || dim >= x.rank()) {
    fail(op, "dimension " + std::to_string(dim) + " does not exist in " + x.type().str());
  }
}

std::vector<bool> dim_set(std::string_view op, const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t d : dims) {
    if (d < 0 || d >= rank || seen[d]) {
      fail(op, "dimensions " + describe(dims) + " are out of range or repeated for rank " +
                   std::to_string(rank));
    }
    seen[d] = true;
  }
  return seen;
}

void Attributes::name(std::string_view name) {
  if (!text_.empty()) text_ += ", ";
  text_ += name;
  text_ += " = ";
}

Attributes& Attributes::ints(std::string_view attribute, std::span<const int64_t> values) {
  name(attribute);
  text_ += "array<i64";
  for (size_t i = 0; i < values.size(); ++i) {
    text_ += i == 0 ? ": " : ", ";
    append_int(&text_, values[i]);
  }
  text_ += '>';
  return *this;
}

Attributes& Attributes::bools(std::string_view attribute, const std::vector<bool>& values) {
  name(attribute);
  text_ += "array<i1";
  for (size_t i = 0; i < values.size(); ++i) {
    text_ += i == 0 ? ": " : ", ";
    text_ += values[i] ? "true" : "false";
  }
  text_ += '>';
  return *this;
}

Attributes& Attributes::integer(std::string_view attribute, int64_t value) {
  name(attribute);
  append_int(&text_, value);
  text_ += " : i64";
  return *this;
}

Attributes& Attributes::boolean(std::string_view attribute, bool value) {
  return raw(attribute, value ? "true" : "false");
}

Attributes& Attributes::padding(std::string_view attribute,
                                const std::vector<std::pair<int64_t, int64_t>>& values) {
  name(attribute);
  text_ += "dense<";
  if (!values.empty()) {
    text_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      text_ += i == 0 ? "[" : ", [";
      append_int(&text_, values[i].first);
      text_ += ", ";
      append_int(&text_, values[i].second);
      text_ += ']';
    }
    text_ += ']';
  }
  text_ += "> : tensor<";
  append_int(&text_, static_cast<int64_t>(values.size()));
  text_ += "x2xi64>";
  return *this;
}

Attributes& Attributes::raw(std::string_view attribute, std::string_view value) {
  name(attribute);
  text_ += value;
  return *this;
}

std::string int_list(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    append_int(&text, values[i]);
  }
  text += ']';
  return text;
}

// -- Impl -----------------------------------------------------------------------------------------

Value Builder::Impl::fresh(Type type) {
  const int id = static_cast<int>(region_of.size());
  region_of.push_back(scopes.back().region);
  parameter_of.push_back(-1);
  return Value(id, std::move(type));
}

void Builder::Impl::append_name(std::string* out, int id) const {
  const int parameter = parameter_of[id];
  *out += parameter < 0 ? "%" : "%arg";
  append_int(out, parameter < 0 ? id : parameter);
}

int Builder::Impl::resolve(std::string_view op, const Value& v) {
  if (finished) fail(op, "this builder has finished its module");
  if (!v || v.id() >= static_cast<int>(region_of.size()))
    fail(op, "an operand is no value of this program");
  const int home = region_of[v.id()];
  if (home == scopes.back().region) return v.id();
  bool constants_only = false;
  for (size_t i = scopes.size(); i-- > 0;) {
    if (scopes[i].region == home) {
      if (!constants_only) return v.id();
      for (const auto& [literal, constant] : scopes[i].constants) {
        if (constant.id() == v.id()) return emit_constant(literal, v.type()).id();
      }
      fail(op, "the body of a reduction, sort or scatter uses a value of type " + v.type().str() +
                   " from outside; only its arguments and constants are allowed");
    }
    constants_only = constants_only || scopes[i].capture == Capture::kConstants;
  }
  fail(op, "an operand of type " + v.type().str() + " belongs to a region that is closed");
}

void Builder::Impl::append_call(std::string_view op, std::span<const Value> operands,
                                std::string_view attributes, std::string_view regions_text) {
  text += " = \"";
  text += op;
  text += "\"(";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += ", ";
    append_name(&text, ids[i]);
  }
  text += ')';
  if (!attributes.empty()) {
    text += " <{";
    text += attributes;
    text += "}>";
  }
  if (!regions_text.empty()) {
    text += ' ';
    text += regions_text;
  }
  text += " : (";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += ", ";
    append_type(&text, operands[i].type());
  }
  text += ") -> ";
  ++operations;
}

Value Builder::Impl::emit(std::string_view op, std::initializer_list<Value> operands, Type result,
                          std::string_view attributes) {
  return emit(op, std::span<const Value>(operands.begin(), operands.size()), std::move(result),
              attributes);
}

Value Builder::Impl::emit(std::string_view op, std::span<const Value> operands, Type result,
                          std::string_view attributes, std::string_view regions_text) {
  ids.clear();
  for (const Value& v : operands) ids.push_back(resolve(op, v));
  if (finished) fail(op, "this builder has finished its module");
  Value value = fresh(std::move(result));
  text += "    ";
  append_name(&text, value.id());
  append_call(op, operands, attributes, regions_text);
  append_type(&text, value.type());
  text += '\n';
  return value;
}

std::vector<Value> Builder::Impl::emit_many(std::string_view op, std::span<const Value> operands,
                                            std::vector<Type> results, std::string_view attributes,
                                            std::string_view regions_text) {
  if (results.size() == 1)
    return {emit(op, operands, std::move(results[0]), attributes, regions_text)};
  require(!results.empty(), op, "an operation without results was asked for");
  ids.clear();
  for (const Value& v : operands) ids.push_back(resolve(op, v));
  std::vector<Value> values;
  values.reserve(results.size());
  text += "    ";
  for (Type& type : results) {
    if (!values.empty()) text += ", ";
    values.push_back(fresh(std::move(type)));
    append_name(&text, values.back().id());
  }
  append_call(op, operands, attributes, regions_text);
  text += '(';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    append_type(&text, values[i].type());
  }
  text += ")\n";
  return values;
}

Value Builder::Impl::emit_constant(std::string literal, const Type& type) {
  if (finished) fail("stablehlo.constant", "this builder has finished its module");
  auto& known = scopes.back().constants;
  if (const auto it = known.find(literal); it != known.end()) return it->second;
  Value value = fresh(type);
  text += "    ";
  append_name(&text, value.id());
  text += " = stablehlo.constant ";
  text += literal;
  text += '\n';
  ++operations;
  known.emplace(std::move(literal), value);
  return value;
}

Builder::Impl::RegionText Builder::Impl::region(std::string_view op,
                                                const std::vector<Type>& arguments, Capture capture,
                                                const Body& body) {
  // Puts the text of the enclosing region back, also when the body throws.
  struct Restore {
    Impl* impl;
    std::string outer;
    ~Restore() {
      impl->text = std::move(outer);
      impl->scopes.pop_back();
    }
  };
  Scope scope;
  scope.region = ++regions;
  scope.capture = capture;
  scopes.push_back(std::move(scope));
  Restore restore{this, std::exchange(text, {})};

  std::vector<Value> values;
  text += "{\n";
  if (!arguments.empty()) {
    text += "    ^bb0(";
    for (const Type& type : arguments) {
      if (!values.empty()) text += ", ";
      values.push_back(fresh(type));
      append_name(&text, values.back().id());
      text += ": ";
      append_type(&text, type);
    }
    text += "):\n";
  }
  RegionText result;
  result.results = body(values);
  ids.clear();
  for (const Value& v : result.results) ids.push_back(resolve(op, v));
  text += "    \"stablehlo.return\"(";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += ", ";
    append_name(&text, ids[i]);
  }
  text += ") : (";
  for (size_t i = 0; i < result.results.size(); ++i) {
    if (i > 0) text += ", ";
    append_type(&text, result.results[i].type());
  }
  text += ") -> ()\n    }";
  result.text = std::move(text);
  return result;
}

// -- The function ---------------------------------------------------------------------------------

Builder::Builder() : impl_(std::make_unique<Impl>()) {
  impl_->text.reserve(1 << 14);
  impl_->scopes.emplace_back();
}

Builder::~Builder() = default;

Value Builder::parameter(Type type) {
  if (impl_->finished) fail("parameter", "this builder has finished its module");
  if (!all_static(type.dims)) fail("parameter", "its dimensions must be static, got " + type.str());
  for (const Size& d : type.dims) {
    if (d.bound() < 0) fail("parameter", "a dimension is negative in " + type.str());
  }
  const int id = static_cast<int>(impl_->region_of.size());
  impl_->region_of.push_back(0);
  impl_->parameter_of.push_back(static_cast<int>(impl_->parameters.size()));
  impl_->parameters.push_back(type);
  impl_->alias_of.push_back(-1);
  return Value(id, std::move(type));
}

void Builder::alias(int64_t parameter, int64_t output) {
  if (parameter < 0 || parameter >= static_cast<int64_t>(impl_->parameters.size())) {
    fail("alias", "there is no parameter " + std::to_string(parameter));
  }
  if (impl_->alias_of[parameter] >= 0) {
    fail("alias", "parameter " + std::to_string(parameter) + " is given away twice");
  }
  impl_->alias_of[parameter] = output;
}

void Builder::bind_symbol(int symbol, Value size) {
  if (!size || size.dtype() != DType::kI32 || size.rank() != 0) {
    fail("bind_symbol", "a size is a 0-d i32, got " + describe({&size, 1}));
  }
  impl_->symbols.insert_or_assign(symbol, std::move(size));
}

std::string Builder::finish(const std::vector<Value>& results, const std::string& module_name) {
  if (impl_->scopes.size() != 1) fail("finish", "a region is still open");
  std::vector<int> taken(results.size(), -1);
  for (size_t p = 0; p < impl_->parameters.size(); ++p) {
    const int64_t output = impl_->alias_of[p];
    if (output < 0) continue;
    if (output >= static_cast<int64_t>(results.size()) || taken[output] >= 0) {
      fail("alias", "output " + std::to_string(output) + " does not exist or takes two parameters");
    }
    if (!(results[output].type() == impl_->parameters[p])) {
      fail("alias", "parameter of type " + impl_->parameters[p].str() +
                        " cannot become output of type " + results[output].type().str());
    }
    taken[output] = static_cast<int>(p);
  }
  impl_->ids.clear();
  for (const Value& v : results) {
    impl_->ids.push_back(impl_->resolve("finish", v));
    if (!all_static(v.dims())) {
      fail("finish",
           "a result of type " + v.type().str() + " has a run-time size; pad it with pad_to_bound");
    }
  }

  std::string module;
  module.reserve(impl_->text.size() + 256 + 64 * (impl_->parameters.size() + 2 * results.size()));
  module += "module @";
  append_quoted(&module, module_name);
  module += " {\n  func.func public @main(";
  for (size_t p = 0; p < impl_->parameters.size(); ++p) {
    if (p > 0) module += ", ";
    module += "%arg";
    append_int(&module, static_cast<int64_t>(p));
    module += ": ";
    append_type(&module, impl_->parameters[p]);
    if (impl_->alias_of[p] >= 0) {
      module += " {tf.aliasing_output = ";
      append_int(&module, impl_->alias_of[p]);
      module += " : i32}";
    }
  }
  std::string types;
  for (size_t i = 0; i < results.size(); ++i) {
    if (i > 0) types += ", ";
    append_type(&types, results[i].type());
  }
  module += ") -> (" + types + ") {\n";
  module += impl_->text;
  module += "    return";
  for (size_t i = 0; i < results.size(); ++i) {
    module += i == 0 ? " " : ", ";
    impl_->append_name(&module, impl_->ids[i]);
  }
  if (!results.empty()) module += " : " + types;
  module += "\n  }\n}\n";
  impl_->finished = true;
  return module;
}

int64_t Builder::operation_count() const { return impl_->operations; }

bool Builder::only_short_trailing_reductions(int64_t limit) const {
  return impl_->longest_trailing_reduction > 0 && impl_->longest_trailing_reduction <= limit &&
         !impl_->other_reductions;
}

}  // namespace torch_tpu::stablehlo
