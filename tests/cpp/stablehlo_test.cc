// The StableHLO builder: its text, its checks, and the numbers that programs give on the CPU
// plugin.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "check.h"
#include "pjrt/buffer.h"
#include "pjrt/compile_options.h"
#include "pjrt/executable.h"
#include "stablehlo/builder.h"

namespace torch_tpu::stablehlo {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

const pjrt::Client* cpu_client() {
  static const std::unique_ptr<pjrt::Client> client = []() -> std::unique_ptr<pjrt::Client> {
    const char* path = std::getenv("TEST_PJRT_PLUGIN");
    if (path == nullptr) return nullptr;
    auto plugin = pjrt::Plugin::load(path);
    if (!plugin.ok()) throw std::runtime_error(plugin.status().message());
    auto made = pjrt::Client::create(**plugin);
    if (!made.ok()) throw std::runtime_error(made.status().message());
    return std::move(*made);
  }();
  return client.get();
}

#define NEEDS_PLUGIN() \
  if (cpu_client() == nullptr) SKIP("TEST_PJRT_PLUGIN is not set")

using Row = std::vector<double>;

// A program under construction together with its inputs' values.
class Program {
 public:
  Builder b;

  Value input(const std::vector<float>& values, const std::vector<int64_t>& dims,
              DType dtype = DType::kF32) {
    const Value v = b.parameter(Type{DType::kF32, Dims(dims.begin(), dims.end())});
    data_.push_back(values);
    shapes_.push_back(dims);
    return b.convert(v, dtype);
  }
  // A value of bounded size: the first `n` rows of x along `dim`, with what lies beyond as padding.
  Value bounded(Value x, int64_t n, int symbol, int64_t dim = 0) {
    const Value size = b.convert(input({static_cast<float>(n)}, {}), DType::kI32);
    b.bind_symbol(symbol, size);
    return b.set_dimension_size(x, size, dim, Size::bounded(x.dim(dim).bound(), symbol));
  }
  // Every result as doubles, padded to its bounds.
  std::vector<Row> run(const std::vector<Value>& results) {
    std::vector<Value> outputs;
    for (const Value& r : results) outputs.push_back(b.convert(b.pad_to_bound(r), DType::kF64));
    std::vector<Dims> dims;
    for (const Value& o : outputs) dims.push_back(o.dims());
    const std::string text = b.finish(outputs);
    pjrt::CompileOptions options;
    // Without it the CPU plugin's maximum and minimum drop NaN.
    options.env_option_overrides["xla_cpu_enable_fast_min_max"] = false;
    auto compiled = pjrt::compile(*cpu_client(), text, options);
    if (!compiled.ok()) throw std::runtime_error(compiled.status().message() + "\n" + text);
    const pjrt::Device& device = cpu_client()->devices()[0];
    std::vector<pjrt::Buffer> buffers;
    std::vector<PJRT_Buffer*> arguments;
    for (size_t i = 0; i < data_.size(); ++i) {
      auto made =
          pjrt::host_to_device(*cpu_client(), device, data_[i].data(), DType::kF32, shapes_[i]);
      if (!made.ok()) throw std::runtime_error(made.status().message());
      buffers.push_back(std::move(*made));
      arguments.push_back(buffers.back().get());
    }
    std::vector<PJRT_Buffer*> raw(outputs.size());
    const auto status = compiled->execute(arguments.data(), arguments.size(), raw.data());
    if (!status.ok()) throw std::runtime_error(status.message());
    std::vector<Row> rows;
    for (size_t i = 0; i < raw.size(); ++i) {
      const pjrt::Buffer owner(cpu_client()->api(), raw[i]);
      Row row(product(dims[i]).bound());
      const auto copied =
          pjrt::device_to_host(cpu_client()->api(), raw[i], row.data(), row.size() * 8);
      if (!copied.ok()) throw std::runtime_error(copied.message());
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  std::vector<std::vector<float>> data_;
  std::vector<std::vector<int64_t>> shapes_;
};

bool near(const Row& got, const Row& want, double tolerance = 2e-5) {
  bool same = got.size() >= want.size();
  for (size_t i = 0; same && i < want.size(); ++i) {
    const bool both_nan = std::isnan(got[i]) && std::isnan(want[i]);
    same = both_nan || got[i] == want[i] ||
           std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i]));
  }
  if (!same) check::fail("values", 0, check::show(got) + " is not " + check::show(want));
  return same;
}

Row map(const std::vector<float>& xs, double (*f)(double)) {
  Row row;
  for (const float x : xs) row.push_back(f(x));
  return row;
}

// -- Sizes and text -------------------------------------------------------------------------------

TEST(size_arithmetic_is_canonical) {
  const Size n = Size::bounded(64, 0);
  const Size m = Size::bounded(8, 1);
  CHECK(Size(3) * Size(4) == Size(12));
  CHECK(n * m == m * n);
  CHECK(n * 4 * m == m * n * 4);
  CHECK(n + 3 - 3 == n);
  CHECK(n + m == m + n);
  CHECK(n - n == Size(0));
  CHECK(floor_div(n * 6, 3) == n * 2);
  CHECK(floor_div(Size(7), 2) == Size(3));
  CHECK(n != Size(64));
  CHECK(n != Size::bounded(32, 0));
  CHECK_EQ((n * 2 + 1).bound(), 129);
  CHECK_EQ((n - m).bound(), 64);
  CHECK_EQ(n.str(), "<=64:s0");
  CHECK_EQ((n * 2).str(), "<=128:s0*2");
  CHECK((n * 0).is_static());
  CHECK_THROWS(n.fixed(), BuildError, "<=64:s0");
}

TEST(types_print_their_bounds) {
  CHECK_EQ((Type{DType::kF32, {2, 3}}).str(), "tensor<2x3xf32>");
  CHECK_EQ((Type{DType::kPred, {}}).str(), "tensor<i1>");
  CHECK_EQ((Type{DType::kF32, {Size::bounded(64, 0), 8}}).str(),
           "tensor<?x8xf32, #stablehlo.bounds<64, ?>>");
}

std::string small_module() {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 3}});
  const Value y = b.add(b.mul(x, b.like(x, 2.0)), b.like(x, 2.0));
  b.alias(0, 0);
  return b.finish({y}, "small");
}

TEST(text_depends_on_the_calls_alone) {
  CHECK_EQ(small_module(), small_module());
  CHECK_EQ(
      small_module(),
      "module @\"small\" {\n"
      "  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}) -> "
      "(tensor<2x3xf32>) {\n"
      "    %1 = stablehlo.constant dense<0x40000000> : tensor<f32>\n"
      "    %2 = \"stablehlo.broadcast_in_dim\"(%1) <{broadcast_dimensions = array<i64>}> : "
      "(tensor<f32>) -> "
      "tensor<2x3xf32>\n"
      "    %3 = \"stablehlo.multiply\"(%arg0, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
      "tensor<2x3xf32>\n"
      "    %4 = \"stablehlo.broadcast_in_dim\"(%1) <{broadcast_dimensions = array<i64>}> : "
      "(tensor<f32>) -> "
      "tensor<2x3xf32>\n"
      "    %5 = \"stablehlo.add\"(%3, %4) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n"
      "    return %5 : tensor<2x3xf32>\n"
      "  }\n"
      "}\n");
}

TEST(a_long_program_prints_quickly) {
  const auto start = std::chrono::steady_clock::now();
  Builder b;
  Value x = b.parameter({DType::kF32, {8, 8}});
  for (int i = 0; i < 1000; ++i) x = b.tanh(b.add(x, x));
  const std::string text = b.finish({x});
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::printf("2000 operations, %zu bytes: %.2f ms\n", text.size(), ms);
  CHECK(ms < 1000);
}

TEST(rules_are_checked) {
  Builder b;
  const Value x = b.parameter({DType::kF32, {2, 3}});
  const Value y = b.parameter({DType::kF32, {2, 4}});
  const Value i = b.parameter({DType::kI32, {2, 3}});
  CHECK_THROWS(b.add(x, y), BuildError,
               "stablehlo.add: cannot broadcast tensor<2x3xf32> with tensor<2x4xf32>");
  CHECK_THROWS(b.add(x, i), BuildError, "one element type");
  CHECK_THROWS(b.add(x, Value()), BuildError, "nothing");
  CHECK_THROWS(b.exp(i), BuildError, "not defined for (tensor<2x3xi32>)");
  CHECK_THROWS(b.reshape(x, {7}), BuildError, "number of elements");
  CHECK_THROWS(b.transpose(x, {0, 0}), BuildError, "repeated");
  CHECK_THROWS(b.slice(x, {0, 0}, {2, 4}), BuildError, "no part of");
  CHECK_THROWS(b.matmul(x, y), BuildError, "contracted dimensions differ");
  CHECK_THROWS(b.concatenate({x, y}, 0), BuildError, "do not match");
  CHECK_THROWS(b.constant_int(300, DType::kU8), BuildError, "does not fit into ui8");
  CHECK_THROWS(b.constant(0.5, DType::kI32), BuildError, "is no value of i32");
  CHECK_THROWS(b.reduce(Monoid::kAdd, x, {2}), BuildError, "out of range");
  CHECK_THROWS(b.parameter({DType::kF32, {Size::bounded(4, 0)}}), BuildError, "must be static");
  CHECK_THROWS(b.size(Size::bounded(4, 0), DType::kI32), BuildError, "has no value");
  const Value zero = b.constant(0, DType::kF32);
  const Value from_outside = b.add(zero, zero);
  CHECK_THROWS(b.reduce({x}, {zero}, {0},
                        [&](const std::vector<Value>& a) {
                          return std::vector<Value>{b.add(b.add(a[0], a[1]), from_outside)};
                        }),
               BuildError, "from outside");
  const Value n = b.parameter({DType::kI32, {}});
  b.bind_symbol(0, n);
  const Value r = b.set_dimension_size(x, n, 0, Size::bounded(2, 0));
  CHECK_THROWS(b.add(r, x), BuildError, "cannot broadcast");
  CHECK_THROWS(b.finish({r}), BuildError, "pad_to_bound");
  b.finish({x});
  CHECK_THROWS(b.add(x, x), BuildError, "finished");
}

// -- Numbers --------------------------------------------------------------------------------------

TEST(constants_are_exact) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  std::vector<Value> values;
  Row want;
  const auto expect = [&](Value v, double w) {
    values.push_back(v);
    want.push_back(w);
  };
  for (const DType t :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kF8E5M2, DType::kF8E4M3FN}) {
    expect(b.constant(1.5, t), 1.5);
    expect(b.constant(-0.0625, t), -0.0625);
    expect(b.constant(kNaN, t), kNaN);
  }
  for (const DType t : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kF8E5M2}) {
    expect(b.constant(-kInf, t), -kInf);
    expect(b.highest(t), kInf);
  }
  expect(b.constant(0.1, DType::kF32), 0.1F);
  expect(b.constant(0.1, DType::kF64), 0.1);
  expect(b.constant(0.1, DType::kBF16), 0.10009765625);
  expect(b.constant(0.1, DType::kF16), 0.0999755859375);
  expect(b.constant(65504, DType::kF16), 65504);
  expect(b.constant(65520, DType::kF16), kInf);
  expect(b.constant(6e-8, DType::kF16), 5.9604644775390625e-08);
  expect(b.constant(448, DType::kF8E4M3FN), 448);
  for (const auto& [t, low, high] :
       {std::tuple{DType::kI8, -128.0, 127.0}, std::tuple{DType::kI16, -32768.0, 32767.0},
        std::tuple{DType::kI32, -0x1p31, 0x1p31 - 1}, std::tuple{DType::kU8, 0.0, 255.0},
        std::tuple{DType::kI64, -0x1p63, 0x1p63}, std::tuple{DType::kU64, 0.0, 0x1p64},
        std::tuple{DType::kU32, 0.0, 0x1p32 - 1}, std::tuple{DType::kPred, 0.0, 1.0}}) {
    expect(b.lowest(t), low);
    expect(b.highest(t), high);
  }
  expect(b.unary(Unary::kReal, b.constant(2.5, DType::kC64)), 2.5);
  expect(b.unary(Unary::kImag, b.constant(2.5, DType::kC128)), 0);
  std::vector<Value> rows;
  for (const Value& v : values) rows.push_back(b.reshape(b.convert(v, DType::kF64), {1}));
  const auto got = p.run(
      {b.concatenate(rows, 0), b.dense(std::vector<int64_t>{1, 2, 3, -4}, DType::kI8, {2, 2}),
       b.dense(std::vector<double>{0.5, kNaN}, DType::kBF16, {2}), b.iota(DType::kI64, {2, 3}, 1),
       b.dense(std::vector<int64_t>{1, 0}, DType::kPred, {2})});
  CHECK(near(got[0], want, 0));
  CHECK(near(got[1], {1, 2, 3, -4}));
  CHECK(near(got[2], {0.5, kNaN}));
  CHECK(near(got[3], {0, 1, 2, 0, 1, 2}));
  CHECK(near(got[4], {1, 0}));
}

TEST(unary_operations) {
  NEEDS_PLUGIN();
  const std::vector<float> xs = {0.25F, 0.5F, -0.75F, 0.9F};
  const std::vector<float> ps = {0.25F, 1.5F, 2.75F, 4.0F};
  const std::vector<std::pair<Unary, double (*)(double)>> cases = {
      {Unary::kAbs, [](double x) { return std::fabs(x); }},
      {Unary::kNegate, [](double x) { return -x; }},
      {Unary::kSign, [](double x) { return x < 0 ? -1.0 : 1.0; }},
      {Unary::kExp, [](double x) { return std::exp(x); }},
      {Unary::kExpm1, [](double x) { return std::expm1(x); }},
      {Unary::kLog1p, [](double x) { return std::log1p(x); }},
      {Unary::kCbrt, [](double x) { return std::cbrt(x); }},
      {Unary::kSin, [](double x) { return std::sin(x); }},
      {Unary::kCos, [](double x) { return std::cos(x); }},
      {Unary::kTan, [](double x) { return std::tan(x); }},
      {Unary::kTanh, [](double x) { return std::tanh(x); }},
      {Unary::kLogistic, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Unary::kFloor, [](double x) { return std::floor(x); }},
      {Unary::kCeil, [](double x) { return std::ceil(x); }},
      {Unary::kRoundNearestEven, [](double x) { return std::nearbyint(x); }},
      {Unary::kRoundNearestAfz, [](double x) { return std::round(x); }},
      {Unary::kIsFinite, [](double) { return 1.0; }},
      {Unary::kErf, [](double x) { return std::erf(x); }},
      {Unary::kErfc, [](double x) { return std::erfc(x); }},
      {Unary::kAsin, [](double x) { return std::asin(x); }},
      {Unary::kAcos, [](double x) { return std::acos(x); }},
      {Unary::kAtan, [](double x) { return std::atan(x); }},
      {Unary::kSinh, [](double x) { return std::sinh(x); }},
      {Unary::kCosh, [](double x) { return std::cosh(x); }},
      {Unary::kAsinh, [](double x) { return std::asinh(x); }},
      {Unary::kAtanh, [](double x) { return std::atanh(x); }},
  };
  const std::vector<std::pair<Unary, double (*)(double)>> positive = {
      {Unary::kLog, [](double x) { return std::log(x); }},
      {Unary::kSqrt, [](double x) { return std::sqrt(x); }},
      {Unary::kRsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {Unary::kLgamma, [](double x) { return std::lgamma(x); }},
  };
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF64}) {
    Program p;
    const Value x = p.input(xs, {4}, t);
    const Value y = p.input(ps, {4}, t);
    std::vector<Value> results;
    for (const auto& c : cases) results.push_back(p.b.unary(c.first, x));
    for (const auto& c : positive) results.push_back(p.b.unary(c.first, y));
    results.push_back(p.b.unary(Unary::kErfInv, p.b.unary(Unary::kErf, x)));
    results.push_back(p.b.unary(Unary::kDigamma, y));
    results.push_back(p.b.unary(Unary::kAcosh, p.b.add(y, p.b.like(y, 1))));
    const auto got = p.run(results);
    const double tolerance = t == DType::kBF16 ? 0.02 : 2e-5;
    std::vector<float> rounded = xs;
    if (t == DType::kBF16) rounded[3] = 0.8984375F;
    size_t i = 0;
    for (const auto& c : cases) CHECK(near(got[i++], map(rounded, c.second), tolerance));
    for (const auto& c : positive) CHECK(near(got[i++], map(ps, c.second), tolerance));
    CHECK(near(got[i++], {0.25, 0.5, -0.75, 0.9}, tolerance));
    CHECK(near(got[i++], {-4.2274535, 0.03648998, 0.8188955, 1.2561177}, tolerance));
    CHECK(near(got[i++], {0.6931472, 1.5667992, 1.9964847 + 0, 2.2924317}, 0.05));
  }
  Program p;
  const Value i = p.input({0, 5, 255, 7}, {4}, DType::kI32);
  const auto got = p.run(
      {p.b.unary(Unary::kPopcnt, i), p.b.unary(Unary::kCountLeadingZeros, i), p.b.logical_not(i)});
  CHECK(near(got[0], {0, 2, 8, 3}));
  CHECK(near(got[1], {32, 29, 24, 29}));
  CHECK(near(got[2], {-1, -6, -256, -8}));
}

TEST(binary_operations_broadcast) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1, 2, 3, 4, 5, 6}, {2, 3});
  const Value row = p.input({2, 2, 4}, {3});
  const Value column = p.input({10, 20}, {2, 1});
  const Value xi = b.convert(x, DType::kI32);
  const Value three = b.constant_int(3, DType::kI32);
  const auto got =
      p.run({b.add(x, row),
             b.sub(column, x),
             b.mul(row, column),
             b.div(x, row),
             b.rem(xi, three),
             b.pow(x, b.like(x, 2)),
             b.max(x, row),
             b.min(x, b.like(x, 3)),
             b.binary(Binary::kAtan2, x, row),
             b.logical_and(xi, three),
             b.logical_or(xi, three),
             b.binary(Binary::kXor, xi, three),
             b.binary(Binary::kShiftLeft, xi, three),
             b.binary(Binary::kShiftRightArithmetic, b.neg(xi), b.constant_int(1, DType::kI32)),
             b.binary(Binary::kShiftRightLogical, xi, b.constant_int(1, DType::kI32)),
             b.unary(Unary::kImag, b.binary(Binary::kComplex, x, row)),
             b.binary(Binary::kNextAfter, x, b.like(x, 9)),
             b.binary(Binary::kPolygamma, b.like(x, 1), x),
             b.binary(Binary::kZeta, b.like(x, 2), x),
             b.lt(x, row),
             b.ge(x, row),
             b.eq(x, row),
             b.ne(xi, three),
             b.select(b.gt(x, row), x, b.neg(column)),
             b.clamp(b.like(x, 2), x, b.like(x, 4)),
             b.max(b.like(x, kNaN), x),
             b.is_nan(b.like(x, kNaN))});
  CHECK(near(got[0], {3, 4, 7, 6, 7, 10}));
  CHECK(near(got[1], {9, 8, 7, 16, 15, 14}));
  CHECK(near(got[2], {20, 20, 40, 40, 40, 80}));
  CHECK(near(got[3], {0.5, 1, 0.75, 2, 2.5, 1.5}));
  CHECK(near(got[4], {1, 2, 0, 1, 2, 0}));
  CHECK(near(got[5], {1, 4, 9, 16, 25, 36}));
  CHECK(near(got[6], {2, 2, 4, 4, 5, 6}));
  CHECK(near(got[7], {1, 2, 3, 3, 3, 3}));
  CHECK(near(got[8], {std::atan2(1, 2), std::atan2(2, 2)}));
  CHECK(near(got[9], {1, 2, 3, 0, 1, 2}));
  CHECK(near(got[10], {3, 3, 3, 7, 7, 7}));
  CHECK(near(got[11], {2, 1, 0, 7, 6, 5}));
  CHECK(near(got[12], {8, 16, 24, 32, 40, 48}));
  CHECK(near(got[13], {-1, -1, -2, -2, -3, -3}));
  CHECK(near(got[14], {0, 1, 1, 2, 2, 3}));
  CHECK(near(got[15], {2, 2, 4, 2, 2, 4}));
  CHECK(near(got[16], {std::nextafter(1.0F, 9.0F)}, 0));
  CHECK(near(got[17], {1.6449341, 0.6449341}));
  CHECK(near(got[18], {1.6449341, 0.6449341}));
  CHECK(near(got[19], {1, 0, 1, 0, 0, 0}));
  CHECK(near(got[20], {0, 1, 0, 1, 1, 1}));
  CHECK(near(got[21], {0, 1, 0, 0, 0, 0}));
  CHECK(near(got[22], {1, 1, 0, 1, 1, 1}));
  CHECK(near(got[23], {-10, -10, -10, 4, 5, 6}));
  CHECK(near(got[24], {2, 2, 3, 4, 4, 4}));
  CHECK(near(got[25], {kNaN, kNaN}));
  CHECK(near(got[26], {1}));
}

TEST(conversions) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1.75F, -1.75F, 0, 2}, {4});
  const Value c = b.binary(Binary::kComplex, x, b.neg(x));
  const Value bytes = b.bitcast_convert(c, DType::kU8);
  const Value pairs = b.reshape(x, {2, 2});
  const Value back = b.bitcast_convert(bytes, DType::kC64);
  const Value wide = b.bitcast_convert(b.reshape(c, {2, 2}), DType::kC128);
  const auto got = p.run(
      {b.convert(x, DType::kI32), b.convert(x, DType::kPred), b.convert(x, DType::kF16),
       b.bitcast_convert(x, DType::kI32),
       b.bitcast_convert(b.bitcast_convert(x, DType::kU8), DType::kF32),
       b.unary(Unary::kImag, back), b.unary(Unary::kReal, b.bitcast_convert(pairs, DType::kC64)),
       b.unary(Unary::kReal, b.bitcast_convert(wide, DType::kC64)),
       b.bitcast_convert(b.convert(x, DType::kPred), DType::kU8), b.convert(c, DType::kPred),
       b.bitcast_convert(c, DType::kF32),
       b.unary(Unary::kImag, b.bitcast_convert(b.bitcast_convert(c, DType::kI64), DType::kC64))});
  CHECK_EQ(bytes.type().str(), "tensor<4x8xui8>");
  CHECK_EQ(wide.type().str(), "tensor<2xcomplex<f64>>");
  CHECK(near(got[0], {1, -1, 0, 2}));
  CHECK(near(got[1], {1, 1, 0, 1}));
  CHECK(near(got[2], {1.75, -1.75, 0, 2}));
  CHECK(near(got[3],
             {0x3FE00000, static_cast<double>(static_cast<int32_t>(0xBFE00000)), 0, 0x40000000},
             0));
  CHECK(near(got[4], {1.75, -1.75, 0, 2}));
  CHECK(near(got[5], {-1.75, 1.75, 0, -2}));
  CHECK(near(got[6], {1.75, 0}));
  CHECK(near(got[7], {1.75, -1.75, 0, 2}));
  CHECK(near(got[8], {1, 1, 0, 1}));
  CHECK(near(got[9], {1, 1, 0, 1}));
  CHECK(near(got[10], {1.75, -1.75, -1.75, 1.75, 0, 0, 2, -2}));
  CHECK(near(got[11], {-1.75, 1.75, 0, -2}));
}

TEST(shape_operations) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1, 2, 3, 4, 5, 6}, {2, 3});
  const Value one = b.convert(p.input({1}, {}), DType::kI32);
  const Value zero = b.constant_int(0, DType::kI32);
  const auto got =
      p.run({b.transpose(x, {1, 0}), b.reshape(x, {3, 2}), b.slice(x, {0, 0}, {2, 3}, {1, 2}),
             b.slice_dim(x, 1, 1, 2), b.dynamic_slice(x, {one, zero}, {1, 2}),
             b.dynamic_update_slice(x, b.constant(9, DType::kF32, {1, 2}), {zero, one}),
             b.pad(x, b.like(x, 7), {1, 0}, {0, -1}, {0, 1}), b.concatenate({x, b.neg(x)}, 1),
             b.reverse(x, {0}), b.broadcast_in_dim(b.constant(3, DType::kF32, {2}), {2, 2}, {0}),
             b.flatten(b.broadcast_to(b.slice_dim(x, 0, 0, 1), {2, 3}))});
  CHECK(near(got[0], {1, 4, 2, 5, 3, 6}));
  CHECK(near(got[1], {1, 2, 3, 4, 5, 6}));
  CHECK(near(got[2], {1, 3, 4, 6}));
  CHECK(near(got[3], {2, 5}));
  CHECK(near(got[4], {4, 5}));
  CHECK(near(got[5], {1, 9, 9, 4, 5, 6}));
  CHECK(near(got[6], {7, 7, 7, 7, 1, 7, 2, 7, 4, 7, 5, 7}));
  CHECK(near(got[7], {1, 2, 3, -1, -2, -3, 4, 5, 6, -4, -5, -6}));
  CHECK(near(got[8], {4, 5, 6, 1, 2, 3}));
  CHECK(near(got[9], {3, 3, 3, 3}));
  CHECK(near(got[10], {1, 2, 3, 1, 2, 3}));
}

TEST(reductions_and_windows) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1, 5, 3, 4, 2, 6}, {2, 3});
  const Value i = b.convert(x, DType::kI32);
  const Value positions = b.iota(DType::kI32, x.dims(), 1);
  const auto argmax =
      b.reduce({x, positions}, {b.lowest(DType::kF32), b.constant_int(0, DType::kI32)}, {1},
               [&](const std::vector<Value>& a) {
                 const Value keep = b.ge(a[0], a[2]);
                 return std::vector<Value>{b.select(keep, a[0], a[2]), b.select(keep, a[1], a[3])};
               });
  Window pool;
  pool.sizes = {1, 2};
  pool.padding = {{0, 0}, {1, 0}};
  Window tiles;
  tiles.sizes = {2, 1};
  const Value pooled = b.reduce_window(Monoid::kMaximum, x, tiles);
  const Value gradient = b.select_and_scatter(
      x, b.constant(1, DType::kF32, pooled.dims()), b.like(x, 0), tiles,
      [&](const std::vector<Value>& a) { return std::vector<Value>{b.ge(a[0], a[1])}; },
      [&](const std::vector<Value>& a) { return std::vector<Value>{b.add(a[0], a[1])}; });
  // A constant from outside may be used in the body.
  const Value two = b.like(x, 2);
  const Value doubled = b.reduce({x}, {b.like(x, 0)}, {0}, [&](const std::vector<Value>& a) {
    return std::vector<Value>{b.add(a[0], b.div(b.mul(a[1], two), two))};
  })[0];
  const auto got =
      p.run({b.reduce(Monoid::kAdd, x, {1}), b.reduce(Monoid::kMultiply, x, {0}, true),
             b.reduce(Monoid::kMaximum, x, {0, 1}), b.reduce(Monoid::kMinimum, i, {1}),
             b.reduce(Monoid::kAnd, i, {0}), b.reduce(Monoid::kOr, b.gt(x, b.like(x, 5)), {1}),
             b.reduce(Monoid::kXor, i, {0}), argmax[1], b.reduce_window(Monoid::kAdd, x, pool),
             pooled, gradient, doubled, b.reduce(Monoid::kMaximum, b.div(x, b.sub(x, x)), {1}),
             b.reduce(Monoid::kMinimum,
                      b.concatenate({x, b.constant(kNaN, DType::kF32, {2, 1})}, 1), {1})});
  CHECK(near(got[0], {9, 12}));
  CHECK(near(got[1], {4, 10, 18}));
  CHECK(near(got[2], {6}));
  CHECK(near(got[3], {1, 2}));
  CHECK(near(got[4], {0, 0, 2}));
  CHECK(near(got[5], {0, 1}));
  CHECK(near(got[6], {5, 7, 5}));
  CHECK(near(got[7], {1, 2}));
  CHECK(near(got[8], {1, 6, 8, 4, 6, 8}));
  CHECK(near(got[9], {4, 5, 6}));
  CHECK(near(got[10], {0, 1, 0, 1, 0, 1}));
  CHECK(near(got[11], {5, 7, 9}));
  CHECK(near(got[12], {kInf, kInf}));
  CHECK(near(got[13], {kNaN, kNaN}));
}

TEST(contractions) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  b.set_precision(Precision::kHighest);
  const Value x = p.input({1, 2, 3, 4, 5, 6}, {2, 3});
  const Value batch = p.input({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  ConvolutionDims c;
  c.input_spatial = {2};
  c.kernel_spatial = {2};
  c.output_spatial = {2};
  c.padding = {{1, 1}};
  const Value signal = p.input({1, 2, 3, 4}, {1, 1, 4});
  const Value kernel = p.input({1, 0, -1}, {1, 1, 3});
  ConvolutionDims grouped = c;
  grouped.feature_groups = 2;
  const Value two_signals = p.input({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 4});
  const Value two_kernels = p.input({1, 0, -1, 1, 1, 1}, {2, 1, 3});
  const Value half = b.convert(x, DType::kBF16);
  const Value mixed = b.dot_general(half, half, {}, {}, {1}, {1}, DType::kF32);
  CHECK_EQ(mixed.type().str(), "tensor<2x2xf32>");
  const auto got =
      p.run({b.matmul(x, b.transpose(x, {1, 0})), b.matmul(batch, batch), mixed,
             b.convolution(signal, kernel, c), b.convolution(two_signals, two_kernels, grouped)});
  CHECK(near(got[0], {14, 32, 32, 77}));
  CHECK(near(got[1], {7, 10, 15, 22, 67, 78, 91, 106}));
  CHECK(near(got[2], {14, 32, 32, 77}));
  CHECK(near(got[3], {-2, -2, -2, 3}));
  CHECK(near(got[4], {-2, -2, -2, 3, 11, 18, 21, 15}));
}

TEST(indexing_sorting_and_control) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1, 2, 3, 4, 5, 6}, {3, 2});
  const Value rows = p.input({2, 0, 2}, {3, 1}, DType::kI32);
  GatherDims g;
  g.offset_dims = {1};
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.index_vector_dim = 1;
  g.slice_sizes = {1, 2};
  ScatterDims s;
  s.update_window_dims = {1};
  s.inserted_window_dims = {0};
  s.scatter_dims_to_operand_dims = {0};
  s.index_vector_dim = 1;
  const Builder::Body sum = [&](const std::vector<Value>& a) {
    return std::vector<Value>{b.add(a[0], a[1])};
  };
  const Value v = p.input({3, static_cast<float>(kNaN), 1, 3, -2}, {5});
  const auto sorted =
      b.sort({v, b.iota(DType::kI32, v.dims(), 0)}, 0, true,
             [&](const std::vector<Value>& a) { return std::vector<Value>{b.lt(a[0], a[1])}; });
  const auto top = b.top_k(v, 3);
  const Value limit = b.constant_int(4, DType::kI32);
  const Value step = b.mul(x, b.like(x, 2));
  const auto loop = b.while_loop(
      {b.constant_int(0, DType::kI32), x},
      [&](const std::vector<Value>& a) { return std::vector<Value>{b.lt(a[0], limit)}; },
      [&](const std::vector<Value>& a) {
        return std::vector<Value>{b.add(a[0], b.constant_int(1, DType::kI32)), b.add(a[1], step)};
      });
  const auto branch = b.if_else(
      b.gt(b.reduce(Monoid::kAdd, x, {0, 1}), b.like(x, 20)),
      [&] { return std::vector<Value>{b.neg(x)}; }, [&] { return std::vector<Value>{x}; });
  const auto barrier = b.optimization_barrier({x, v});
  const auto got =
      p.run({b.gather(x, rows, g), b.scatter(x, rows, b.constant(10, DType::kF32, {3, 2}), s, sum),
             sorted[1], top.first, top.second, loop[1], branch[0], barrier[0]});
  CHECK(near(got[0], {5, 6, 1, 2, 5, 6}));
  CHECK(near(got[1], {11, 12, 3, 4, 25, 26}));
  CHECK_EQ(got[2].size(), 5);
  CHECK(near(got[3], {kNaN, 3, 3}));
  CHECK(near(got[4], {1, 0, 3}));
  CHECK(near(got[5], {9, 18, 27, 36, 45, 54}));
  CHECK(near(got[6], {-1, -2, -3, -4, -5, -6}));
  CHECK(near(got[7], {1, 2, 3, 4, 5, 6}));
}

TEST(transforms_and_factorisations) {
  NEEDS_PLUGIN();
  Program p;
  Builder& b = p.b;
  const Value x = p.input({1, 2, 3, 4}, {4});
  const Value a = p.input({4, 2, 2, 5}, {2, 2});
  const Value factor = b.cholesky(a, true);
  const Value spectrum = b.fft(x, Builder::Fft::kRfft, {4});
  const auto got =
      p.run({b.unary(Unary::kReal, spectrum), b.unary(Unary::kImag, spectrum),
             b.fft(spectrum, Builder::Fft::kIrfft, {4}), b.slice(factor, {1, 0}, {2, 2}),
             b.triangular_solve(a, b.reshape(b.slice_dim(x, 0, 0, 2), {2, 1}), true, true, false,
                                false)});
  CHECK(near(got[0], {10, -2, -2}));
  CHECK(near(got[1], {0, 2, 0}));
  CHECK(near(got[2], {1, 2, 3, 4}));
  CHECK(near(got[3], {1, 2}));
  CHECK(near(got[4], {0.25, 0.3}));
  Builder text;
  const Value y = text.parameter({DType::kF32, {2}});
  const auto called =
      text.custom_call("kernel", {y}, {y.type(), Type{DType::kI32, {}}}, "{\"a\": 1}");
  CHECK(text.finish(called).find(
            "call_target_name = \"kernel\", backend_config = \"{\\\"a\\\": 1}\"") !=
        std::string::npos);
}

// -- Bounded sizes: 3 of 4 rows, with rows of garbage (99) behind them ----------------------------

struct BoundedCase : Program {
  Value x = bounded(input({1, 2, 4, 3, 5, 6, 99, 99}, {4, 2}), 3, 0);  // [?<=4, 2]
  Value n = b.size(x.dim(0), DType::kF32);
  Value y = b.transpose(x, {1, 0});  // [2, ?<=4]
};

TEST(bounded_elementwise_and_reductions) {
  NEEDS_PLUGIN();
  BoundedCase p;
  Builder& b = p.b;
  const Value mean = b.div(b.reduce(Monoid::kAdd, p.x, {0}), p.n);
  const Value shifted = b.sub(p.x, b.reduce(Monoid::kMaximum, p.x, {0}, true));
  const Value e = b.exp(shifted);
  const Value softmax = b.div(e, b.reduce(Monoid::kAdd, e, {0}, true));
  Window cumulative;
  cumulative.sizes = {4, 1};
  cumulative.padding = {{3, 0}, {0, 0}};
  const Value running = b.reduce_window(Monoid::kAdd, p.x, cumulative);
  CHECK_EQ(running.type().str(), p.x.type().str());
  const Value erf = b.unary(Unary::kErf, b.unary(Unary::kLgamma, p.x));
  const Value filled = b.constant(2, DType::kF32, p.x.dims());
  const auto got = p.run(
      {mean, b.reduce(Monoid::kAdd, softmax, {0}), running, b.reduce(Monoid::kAdd, p.x, {1}),
       b.reduce(Monoid::kMinimum, p.y, {0, 1}), b.reduce(Monoid::kMultiply, p.x, {0}),
       b.reduce(Monoid::kAdd, erf, {0}), b.reduce(Monoid::kAdd, filled, {0, 1}),
       b.reduce(Monoid::kAdd, b.iota(DType::kI32, p.x.dims(), 0), {0}),
       b.reduce(Monoid::kAdd, b.select(b.gt(p.x, b.like(p.x, 3)), p.x, b.like(p.x, 0)), {0, 1}),
       b.reduce(Monoid::kAdd, b.broadcast_in_dim(b.constant(1, DType::kF32, {2}), p.x.dims(), {1}),
                {0, 1}),
       b.size(floor_div(p.x.dim(0) * 5 - 1, 2), DType::kI64)});
  CHECK(near(got[0], {10.0 / 3, 11.0 / 3}));
  CHECK(near(got[1], {1, 1}));
  CHECK(near(got[2], {1, 2, 5, 5, 10, 11}));
  CHECK(near(got[3], {3, 7, 11}));
  CHECK(near(got[4], {1}));
  CHECK(near(got[5], {20, 36}));
  CHECK(near(got[6], {std::erf(0.0) + std::erf(std::lgamma(4.0)) + std::erf(std::lgamma(5.0)),
                      std::erf(0.0) + std::erf(std::lgamma(3.0)) + std::erf(std::lgamma(6.0))}));
  CHECK(near(got[7], {12}));
  CHECK(near(got[8], {3, 3}));
  CHECK(near(got[9], {15}));
  CHECK(near(got[10], {6}));
  CHECK(near(got[11], {7}));
}

TEST(bounded_shapes) {
  NEEDS_PLUGIN();
  BoundedCase p;
  Builder& b = p.b;
  const Size n = p.x.dim(0);
  const Value flat = b.flatten(p.x);
  const Value flat_y = b.flatten(p.y);
  CHECK_EQ(flat.type().str(), "tensor<?xf32, #stablehlo.bounds<8>>");
  const Value joined = b.concatenate({p.x, b.constant(7, DType::kF32, {2, 2}), p.x}, 0);
  const Value padded = b.pad(p.x, b.like(p.x, -1), {1, 0}, {1, 0});
  CHECK(joined.dim(0) == n * 1 + 2 + n);
  const Value tail = b.slice_dim(p.x, 0, 1, 4);
  CHECK(tail.dim(0) == n - 1);
  const auto got = p.run({flat, flat_y, b.reshape(flat_y, {2, n}), b.reshape(p.y, {n, 2}), joined,
                          padded, b.reverse(p.x, {0}), tail, b.slice(p.x, {0, 0}, {4, 2}, {2, 1}),
                          b.reduce(Monoid::kAdd, joined, {0}), b.reduce(Monoid::kAdd, padded, {0}),
                          b.slice_dim(p.x, 0, 0, 1), b.reshape(p.x, {1, n, 1, 2}),
                          b.reduce(Monoid::kAdd, b.reverse(p.y, {1}), {1})});
  CHECK(near(got[0], {1, 2, 4, 3, 5, 6}));
  CHECK(near(got[1], {1, 4, 5, 2, 3, 6}));
  CHECK(near({got[2].begin(), got[2].begin() + 3}, {1, 4, 5}));
  CHECK(near({got[2].begin() + 4, got[2].begin() + 7}, {2, 3, 6}));
  CHECK(near(got[3], {1, 4, 5, 2, 3, 6}));
  CHECK(near(got[4], {1, 2, 4, 3, 5, 6, 7, 7, 7, 7, 1, 2, 4, 3, 5, 6}));
  CHECK(near(got[5], {-1, -1, 1, 2, 4, 3, 5, 6, -1, -1}));
  CHECK(near(got[6], {5, 6, 4, 3, 1, 2}));
  CHECK(near(got[7], {4, 3, 5, 6}));
  CHECK(near(got[8], {1, 2, 5, 6}));
  CHECK(near(got[9], {34, 36}));
  CHECK(near(got[10], {8, 9}));
  CHECK(near(got[11], {1, 2}));
  CHECK(near(got[12], {1, 2, 4, 3, 5, 6}));
  CHECK(near(got[13], {10, 11}));
}

TEST(bounded_contractions_and_indexing) {
  NEEDS_PLUGIN();
  BoundedCase p;
  Builder& b = p.b;
  const Value gram = b.matmul(p.y, p.x);
  const Value outer = b.matmul(p.x, p.y);
  const auto sorted = b.sort({p.x}, 0, true, [&](const std::vector<Value>& a) {
    return std::vector<Value>{b.gt(a[0], a[1])};
  });
  GatherDims g;
  g.offset_dims = {1};
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.index_vector_dim = 1;
  g.slice_sizes = {1, 2};
  const Value order = b.sub(b.sub(b.convert(p.n, DType::kI32), b.constant_int(1, DType::kI32)),
                            b.iota(DType::kI32, {p.x.dim(0), 1}, 0));
  const Value flipped = b.gather(p.x, order, g);
  ScatterDims s;
  s.update_window_dims = {1};
  s.inserted_window_dims = {0};
  s.scatter_dims_to_operand_dims = {0};
  s.index_vector_dim = 1;
  const Value table = b.constant(0, DType::kF32, {2, 2});
  const Value same_row = b.constant_int(1, DType::kI32, {p.x.dim(0), 1});
  const Value scattered = b.scatter(table, same_row, p.x, s, [&](const std::vector<Value>& a) {
    return std::vector<Value>{b.add(a[0], a[1])};
  });
  ConvolutionDims c;
  c.input_spatial = {2};
  c.kernel_spatial = {2};
  c.output_spatial = {2};
  c.padding = {{1, 1}};
  const Value convolved =
      b.convolution(b.reshape(p.y, {2, 1, p.x.dim(0)}), b.constant(1, DType::kF32, {1, 1, 3}), c);
  const auto loop = b.while_loop(
      {b.constant_int(0, DType::kI32), p.x},
      [&](const std::vector<Value>& a) {
        return std::vector<Value>{b.lt(a[0], b.constant_int(2, DType::kI32))};
      },
      [&](const std::vector<Value>& a) {
        return std::vector<Value>{b.add(a[0], b.constant_int(1, DType::kI32)), b.add(a[1], p.x)};
      });
  const auto got =
      p.run({gram, b.reduce(Monoid::kAdd, outer, {0, 1}), sorted[0], flipped, scattered, convolved,
             b.reduce(Monoid::kAdd, convolved, {0, 1, 2}), b.reduce(Monoid::kAdd, loop[1], {0})});
  CHECK(near(got[0], {42, 44, 44, 49}));
  CHECK(near(got[1], {10 * 10 + 11 * 11}));
  CHECK(near(got[2], {5, 6, 4, 3, 1, 2}));
  CHECK(near(got[3], {5, 6, 4, 3, 1, 2}));
  CHECK(near(got[4], {0, 0, 10, 11}));
  CHECK(near({got[5].begin(), got[5].begin() + 3}, {5, 10, 9}));
  CHECK(near(got[6], {24 + 5 + 11 + 9}));
  CHECK(near(got[7], {30, 33}));
}

}  // namespace
}  // namespace torch_tpu::stablehlo
