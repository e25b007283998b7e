// Reductions over dimensions and over windows.
#include "stablehlo/builder.h"
#include "stablehlo/builder_impl.h"

namespace torch_tpu::stablehlo {
namespace {

constexpr const char* kReduce = "stablehlo.reduce";
constexpr const char* kReduceWindow = "stablehlo.reduce_window";
constexpr const char* kSelectAndScatter = "stablehlo.select_and_scatter";

Binary combining(Monoid op) {
  switch (op) {
    case Monoid::kAdd:
      return Binary::kAdd;
    case Monoid::kMultiply:
      return Binary::kMultiply;
    case Monoid::kMaximum:
      return Binary::kMaximum;
    case Monoid::kMinimum:
      return Binary::kMinimum;
    case Monoid::kAnd:
      return Binary::kAnd;
    case Monoid::kOr:
      return Binary::kOr;
    case Monoid::kXor:
      return Binary::kXor;
  }
  return Binary::kAdd;
}

Value identity(Builder& b, Monoid op, DType dtype) {
  switch (op) {
    case Monoid::kMultiply:
      return b.constant_int(1, dtype);
    case Monoid::kMaximum:
      return b.lowest(dtype);
    case Monoid::kMinimum:
      return b.highest(dtype);
    case Monoid::kAnd:
      return is_signed_int(dtype) ? b.constant_int(-1, dtype) : b.highest(dtype);
    case Monoid::kAdd:
    case Monoid::kOr:
    case Monoid::kXor:
      return b.constant_int(0, dtype);
  }
  return b.constant_int(0, dtype);
}

Builder::Body monoid_body(Builder& b, Monoid op) {
  return [&b, op](const std::vector<Value>& args) {
    return std::vector<Value>{b.binary(combining(op), args[0], args[1])};
  };
}

void check_inits(std::string_view op, const std::vector<Value>& xs,
                 const std::vector<Value>& inits) {
  bool fits = !xs.empty() && xs.size() == inits.size();
  for (size_t i = 0; fits && i < xs.size(); ++i) {
    fits = xs[i] && inits[i] && xs[i].dims() == xs[0].dims() && inits[i].rank() == 0 &&
           inits[i].dtype() == xs[i].dtype();
  }
  if (!fits) {
    fail(op, "operands " + describe(xs) + " do not match each other or their initial values " +
                 describe(inits));
  }
}

std::vector<Type> element_types(const std::vector<Value>& xs) {
  std::vector<Type> types;
  for (const Value& x : xs) types.push_back(Type{x.dtype(), {}});
  return types;
}

std::vector<int64_t> bounded_dims(const Value& x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!x.dims()[d].is_static()) dims.push_back(d);
  }
  return dims;
}

}  // namespace

Window complete_window(std::string_view op, const Window& window, int64_t rank) {
  Window w = window;
  const auto n = static_cast<size_t>(rank);
  for (std::vector<int64_t>* list :
       {&w.sizes, &w.strides, &w.base_dilations, &w.window_dilations}) {
    if (list->empty()) list->assign(n, 1);
    bool fits = list->size() == n;
    for (const int64_t v : *list) fits = fits && v >= 1;
    if (!fits) fail(op, "window " + describe(*list) + " does not fit rank " + std::to_string(rank));
  }
  if (w.padding.empty()) w.padding.assign(n, {0, 0});
  if (w.padding.size() != n) fail(op, "padding does not fit rank " + std::to_string(rank));
  return w;
}

Size window_output(const Size& input, int64_t window, int64_t stride, int64_t base_dilation,
                   int64_t window_dilation, const std::pair<int64_t, int64_t>& padding) {
  Size dilated = input;
  if (base_dilation > 1 && input != Size(0)) dilated = input * base_dilation - (base_dilation - 1);
  const Size padded = dilated + (padding.first + padding.second);
  const int64_t reach = window == 0 ? 0 : (window - 1) * window_dilation + 1;
  if (padded.bound() < reach || padded.bound() <= 0) return Size(0);
  return floor_div(padded - reach + stride, stride);
}

std::string Builder::Impl::combiner(std::string_view op, const std::vector<Type>& elements,
                                    const Body& body) {
  std::vector<Type> arguments = elements;
  arguments.insert(arguments.end(), elements.begin(), elements.end());
  RegionText r = region(op, arguments, Capture::kConstants, body);
  bool fits = r.results.size() == elements.size();
  for (size_t i = 0; fits && i < elements.size(); ++i) fits = r.results[i].type() == elements[i];
  if (!fits)
    fail(op, "its body returns " + describe(r.results) + ", which are not its accumulators' types");
  return std::move(r.text);
}

Value Builder::reduce(Monoid op, Value x, const std::vector<int64_t>& dims, bool keepdim) {
  require(static_cast<bool>(x), kReduce, "no operand");
  if (dims.empty()) return x;
  const Value result =
      reduce({x}, {identity(*this, op, x.dtype())}, dims, monoid_body(*this, op))[0];
  if (!keepdim) return result;
  Dims kept = x.dims();
  for (const int64_t d : dims) kept[d] = Size(1);
  return reshape(result, kept);
}

std::vector<Value> Builder::reduce(const std::vector<Value>& xs, const std::vector<Value>& inits,
                                   const std::vector<int64_t>& dims, const Body& body) {
  check_inits(kReduce, xs, inits);
  const std::vector<bool> reduced = dim_set(kReduce, dims, xs[0].rank());
  Dims kept;
  int64_t elements = 1;
  for (int64_t d = 0; d < xs[0].rank(); ++d) {
    if (!reduced[d]) {
      kept.push_back(xs[0].dims()[d]);
      impl_->other_reductions |= elements > 1;
    } else {
      elements *= xs[0].dims()[d].bound();
    }
  }
  impl_->longest_trailing_reduction = std::max(impl_->longest_trailing_reduction, elements);
  std::vector<Type> results;
  for (const Value& x : xs) results.push_back(Type{x.dtype(), kept});
  const std::string combined = impl_->combiner(kReduce, element_types(xs), body);
  std::vector<Value> operands = xs;
  operands.insert(operands.end(), inits.begin(), inits.end());
  return impl_->emit_many(kReduce, operands, std::move(results),
                          Attributes().ints("dimensions", dims).text(), "(" + combined + ")");
}

Value Builder::reduce_window(Monoid op, Value x, const Window& window) {
  require(static_cast<bool>(x), kReduceWindow, "no operand");
  return reduce_window({x}, {identity(*this, op, x.dtype())}, window, monoid_body(*this, op))[0];
}

std::vector<Value> Builder::reduce_window(const std::vector<Value>& xs,
                                          const std::vector<Value>& inits, const Window& window,
                                          const Body& body) {
  check_inits(kReduceWindow, xs, inits);
  const Window w = complete_window(kReduceWindow, window, xs[0].rank());
  Dims dims;
  for (int64_t d = 0; d < xs[0].rank(); ++d) {
    dims.push_back(window_output(xs[0].dims()[d], w.sizes[d], w.strides[d], w.base_dilations[d],
                                 w.window_dilations[d], w.padding[d]));
  }
  const std::vector<int64_t> bounded = bounded_dims(xs[0]);
  std::vector<Value> operands;
  std::vector<Type> results;
  for (size_t i = 0; i < xs.size(); ++i) {
    operands.push_back(bounded.empty() ? xs[i] : mask_to_bound(*this, xs[i], inits[i], &bounded));
    results.push_back(Type{xs[i].dtype(), bounds_of(dims)});
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  const std::string combined = impl_->combiner(kReduceWindow, element_types(xs), body);
  const std::string attributes = Attributes()
                                     .ints("window_dimensions", w.sizes)
                                     .ints("window_strides", w.strides)
                                     .ints("base_dilations", w.base_dilations)
                                     .ints("window_dilations", w.window_dilations)
                                     .padding("padding", w.padding)
                                     .text();
  std::vector<Value> values = impl_->emit_many(kReduceWindow, operands, std::move(results),
                                               attributes, "(" + combined + ")");
  for (Value& v : values) v = with_dims(*this, v, dims);
  return values;
}

Value Builder::select_and_scatter(Value x, Value source, Value init, const Window& window,
                                  const Body& select, const Body& scatter) {
  check_inits(kSelectAndScatter, {x}, {init});
  const Value operands[] = {x, source, init};
  const Window w = complete_window(kSelectAndScatter, window, x.rank());
  bool fits = source && source.dtype() == x.dtype() && source.rank() == x.rank();
  for (int64_t d = 0; fits && d < x.rank(); ++d) {
    if (w.base_dilations[d] != 1 || w.window_dilations[d] != 1)
      fail(kSelectAndScatter, "its window cannot be dilated");
    if (!x.dims()[d].is_static() && (w.sizes[d] != 1 || w.strides[d] != 1)) {
      fail(kSelectAndScatter, "not defined along a dimension of run-time size: " + x.type().str());
    }
    fits = source.dims()[d] ==
           window_output(x.dims()[d], w.sizes[d], w.strides[d], 1, 1, w.padding[d]);
  }
  if (!fits) fail(kSelectAndScatter, "operands do not match the window: " + describe(operands));
  const Type element{x.dtype(), {}};
  const Impl::RegionText chosen =
      impl_->region(kSelectAndScatter, {element, element}, Impl::Capture::kConstants, select);
  if (chosen.results.size() != 1 || !(chosen.results[0].type() == Type{DType::kPred, {}})) {
    fail(kSelectAndScatter,
         "its selection must return one 0-d i1, got " + describe(chosen.results));
  }
  const std::string combined = impl_->combiner(kSelectAndScatter, {element}, scatter);
  const std::string attributes = Attributes()
                                     .ints("window_dimensions", w.sizes)
                                     .ints("window_strides", w.strides)
                                     .padding("padding", w.padding)
                                     .text();
  const Value padded[] = {pad_to_bound(x), pad_to_bound(source), init};
  const Value result = impl_->emit(kSelectAndScatter, padded, padded[0].type(), attributes,
                                   "(" + chosen.text + ", " + combined + ")");
  return with_dims(*this, result, x.dims());
}

}  // namespace torch_tpu::stablehlo
