// From a graph to a running program: arguments, packed scalars, writes, random bits, and what is refused.
#include <cmath>
#include <set>

#include "check.h"
#include "lowering/call.h"
#include "lowering/module.h"
#include "lowering/threefry.h"
#include "lowering/view.h"
#include "program_runner.h"

namespace torch_tpu::lowering {
namespace {

using ir::Graph;
using ir::Node;
using ir::Number;
using ir::Operand;
using ir::Result;
using ir::TensorArg;
using ir::ViewSpec;
using stablehlo::BuildError;
using stablehlo::Dims;
using stablehlo::DType;
using testing::Bytes;
using testing::host_array;
using testing::HostArray;
using testing::Program;
using testing::values_of;

ViewSpec contiguous(DType dtype, const std::vector<int64_t>& sizes) {
  ViewSpec view{dtype, Dims(sizes.begin(), sizes.end()), std::vector<int64_t>(sizes.size(), 1), 0,
                -1};
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 2; d >= 0; --d) {
    view.strides[d] = view.strides[d + 1] * sizes[d + 1];
  }
  return view;
}

Result fresh(const ViewSpec& view) {
  Result result;
  result.view = view;
  int64_t elements = stablehlo::product(view.sizes) == 0 ? 0 : 1;
  for (size_t d = 0; d < view.sizes.size() && elements > 0; ++d) {
    elements += (view.sizes[d].fixed() - 1) * view.strides[d];
  }
  result.view.offset = 0;
  result.storage_bytes = elements * stablehlo::byte_size(view.dtype);
  result.value = value_after_write(result.view, nullptr, result.storage_bytes);
  return result;
}

Number integer(int64_t value) { return {.kind = Number::Kind::kInt, .i = value}; }
Number real(double value) { return {.kind = Number::Kind::kFloat, .f = value}; }
Number dynamic(int slot, Number::Kind kind = Number::Kind::kFloat) {
  return {.kind = kind, .slot = slot};
}

// add.Tensor of two values, alpha a given number.
Node add(int x, int y, const ViewSpec& view, Number alpha) {
  Node node;
  node.op = "add.Tensor";
  node.names = {"self", "other", "alpha"};
  node.args = {TensorArg{0}, TensorArg{1}, alpha};
  node.operands.resize(2);
  node.operands[0].value = x;
  node.operands[1].value = y;
  for (Operand& operand : node.operands) operand.view = view;
  node.results = {fresh(view)};
  node.promoted = view.dtype;
  return node;
}

TEST(a_dynamic_alpha_is_read_from_the_packed_scalars) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec view = contiguous(DType::kF32, {2, 3});
  Graph graph;
  graph.inputs = {{DType::kF32, {2, 3}}, {DType::kF32, {2, 3}}};
  graph.scalars = {DType::kI64, DType::kF32, DType::kF64};
  graph.nodes = {add(0, 1, view, dynamic(1)), add(2, 1, view, dynamic(2)),
                 add(3, 1, view, dynamic(0)), add(4, 1, view, integer(1))};
  graph.outputs = {2, 3, 4, 5};
  HostArray x = host_array<float>(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  HostArray y = host_array<float>(DType::kF32, {2, 3}, {1, 1, 1, 1, 1, 10});
  Bytes packed;
  auto append = [&packed](const auto value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    packed.insert(packed.end(), bytes, bytes + sizeof(value));
  };
  append(int64_t{-3});
  append(0.5f);
  append(0.25);
  std::vector<Bytes> out = Program(lower_module(graph, {})).run({x, y, {DType::kU32, {5}, packed}});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{1.5, 2.5, 3.5, 4.5, 5.5, 11}));
  CHECK_EQ(values_of<float>(out[1]), (std::vector<float>{1.75, 2.75, 3.75, 4.75, 5.75, 13.5}));
  CHECK_EQ(values_of<float>(out[2]), (std::vector<float>{-1.25, -0.25, 0.75, 1.75, 2.75, -16.5}));
  CHECK_EQ(values_of<float>(out[3]), (std::vector<float>{-0.25, 0.75, 1.75, 2.75, 3.75, -6.5}));
}

TEST(a_write_through_a_view_changes_the_base_and_later_reads_see_it) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec all = contiguous(DType::kF32, {4});
  ViewSpec odd{DType::kF32, {2}, {2}, 1, -1};
  Node write = add(0, 0, odd, integer(1));
  write.results[0].view = odd;
  write.results[0].written = true;
  write.results[0].base = 0;
  write.results[0].storage_bytes = 16;
  write.results[0].value = {DType::kF32, {4}};
  Graph graph;
  graph.inputs = {{DType::kF32, {4}}};
  graph.nodes = {write, add(1, 1, all, integer(1)), add(1, 1, odd, integer(1))};
  graph.outputs = {1, 2, 3};
  graph.donations = {{0, 0}};
  std::vector<Bytes> out =
      Program(lower_module(graph, {})).run({host_array<float>(DType::kF32, {4}, {1, 2, 3, 4})});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{1, 4, 3, 8}));
  CHECK_EQ(values_of<float>(out[1]), (std::vector<float>{2, 8, 6, 16}));
  // The result has the strides of its view: a storage of three elements, the middle one never written.
  CHECK_EQ(values_of<float>(out[2]), (std::vector<float>{8, 0, 16}));
}

TEST(transposed_results_lie_in_memory_order) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec transposed{DType::kF32, {2, 3}, {1, 2}, 0, -1};
  Graph graph;
  graph.inputs = {{DType::kF32, {3, 2}}};
  graph.nodes = {add(0, 0, transposed, integer(1))};
  graph.outputs = {1};
  CHECK(graph.nodes[0].results[0].value.dims == (Dims{3, 2}));
  std::vector<Bytes> out = Program(lower_module(graph, {}))
                               .run({host_array<float>(DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6})});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST(uninitialised_operands_read_as_zeros_and_empty_tensors_work) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec view = contiguous(DType::kF32, {2}), none = contiguous(DType::kF32, {0, 3});
  Graph graph;
  graph.inputs = {{DType::kF32, {2}}, {DType::kF32, {0, 3}}};
  graph.nodes = {add(-1, 0, view, real(2.0)), add(1, -1, none, integer(1))};
  graph.outputs = {2, 3};
  std::vector<Bytes> out =
      Program(lower_module(graph, {}))
          .run({host_array<float>(DType::kF32, {2}, {1, 2}), {DType::kF32, {0, 3}, {}}});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{2, 4}));
  CHECK_EQ(out[1].size(), 0u);
}

TEST(zero_dimensional_cpu_operands_are_scalars_of_the_program) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec view = contiguous(DType::kF32, {});
  Graph graph;
  graph.inputs = {{DType::kF32, {}}};
  graph.scalars = {DType::kF64};
  graph.nodes = {add(0, -1, view, integer(1)), add(1, -1, view, integer(1))};
  graph.nodes[0].operands[1].scalar_slot = 0;
  graph.nodes[1].operands[1].is_constant = true;
  graph.nodes[1].operands[1].constant = integer(3);
  graph.outputs = {2};
  std::vector<Bytes> out = Program(lower_module(graph, {}))
                               .run({host_array<float>(DType::kF32, {}, {1}),
                                     host_array<double>(DType::kU32, {2}, {0.5})});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{4.5}));
}

TEST(a_bounded_input_takes_its_true_size_from_a_scalar) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec view{DType::kF32, {stablehlo::Size::bounded(4, 0), 2}, {2, 1}, 0, -1};
  Node node = add(0, 0, contiguous(DType::kF32, {4, 2}), integer(1));
  for (Operand& operand : node.operands) operand.view = view;
  node.results[0].view = view;
  node.results[0].value = {DType::kF32, view.sizes};
  Graph graph;
  graph.inputs = {{DType::kF32, view.sizes}};
  graph.scalars = {DType::kI64};
  graph.nodes = {node};
  graph.outputs = {1};
  std::vector<Bytes> out =
      Program(lower_module(graph, {}))
          .run({host_array<float>(DType::kF32, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                host_array<int64_t>(DType::kU32, {2}, {3})});
  std::vector<float> values = values_of<float>(out[0]);
  CHECK_EQ(values.size(), 8u);
  values.resize(6);
  CHECK_EQ(values, (std::vector<float>{2, 4, 6, 8, 10, 12}));
  std::vector<std::optional<Type>> types = infer_by_lowering(node, {DType::kI64});
  REQUIRE(types.size() == 1 && types[0]);
  CHECK(types[0]->dims == view.sizes);
}

TEST(undefined_results_keep_their_number) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  ViewSpec view = contiguous(DType::kF32, {1});
  Graph graph;
  graph.inputs = {{DType::kF32, {1}}};
  graph.nodes = {add(0, 0, view, integer(1)), add(0, 0, view, integer(1))};
  graph.nodes[0].results[0].undefined = true;
  graph.outputs = {2};
  std::vector<Bytes> out =
      Program(lower_module(graph, {})).run({host_array<float>(DType::kF32, {1}, {2})});
  CHECK_EQ(values_of<float>(out[0]), (std::vector<float>{4}));
  graph.outputs = {1};
  CHECK_THROWS(lower_module(graph, {}), BuildError, "left undefined");
}

TEST(the_same_view_is_read_once) {
  ViewSpec part{DType::kF32, {2}, {1}, 1, -1};
  Graph graph;
  graph.inputs = {{DType::kF32, {4}}};
  graph.nodes = {add(0, 0, part, integer(1)), add(0, 0, part, integer(1))};
  graph.outputs = {1, 2};
  std::string text = lower_module(graph, {});
  size_t first = text.find("stablehlo.slice");
  CHECK(first != std::string::npos);
  CHECK(text.find("stablehlo.slice", first + 1) == std::string::npos);
}

TEST(inference_gives_the_lowering_s_own_types) {
  std::vector<std::optional<Type>> types =
      infer_by_lowering(add(0, 1, contiguous(DType::kBF16, {2, 5}), dynamic(0)), {DType::kF32});
  REQUIRE(types.size() == 1 && types[0]);
  CHECK(types[0]->dims == (Dims{2, 5}));
}

TEST(what_a_graph_lacks_is_named) {
  ViewSpec view = contiguous(DType::kF32, {2});
  Graph graph;
  graph.inputs = {{DType::kF32, {2}}};
  graph.nodes = {add(0, 0, view, integer(1))};
  graph.outputs = {1};
  Graph unknown = graph;
  unknown.nodes[0].op = "no_such_operator";
  CHECK_THROWS(lower_module(unknown, {}), BuildError, "no_such_operator has no lowering");
  Graph early = graph;
  early.nodes[0].operands[1].value = 5;
  CHECK_THROWS(lower_module(early, {}), BuildError, "value 5 is used before it is defined");
  Graph slot = graph;
  slot.nodes[0].args[2] = dynamic(3);
  CHECK_THROWS(lower_module(slot, {}), BuildError, "scalar slot 3 of 0");
  Graph shape = graph;
  shape.nodes[0].results[0] = fresh(contiguous(DType::kF32, {3}));
  CHECK_THROWS(lower_module(shape, {}), BuildError, "instead of tensor<3xf32>");
}

TEST(the_table_finds_its_rows_by_name) {
  REQUIRE(find_row("add.Tensor") != nullptr);
  CHECK(find_row("add.Tensor")->name == "add.Tensor");
  CHECK(find_row("relu") != nullptr && find_row("relu") == find_row("relu.default"));
  CHECK(find_row("no_such_operator") == nullptr);
  std::set<std::string_view> names;
  for (const OpRow& row : operator_table()) {
    if (!names.insert(row.name).second)
      check::fail(__FILE__, __LINE__, "two rows named " + std::string(row.name));
    if (row.lower == nullptr)
      check::fail(__FILE__, __LINE__, "no lowering in row " + std::string(row.name));
  }
}

// -- Arguments --------------------------------------------------------------------------------------------------------

TEST(arguments_are_found_by_name_and_kind) {
  Builder b;
  Node node;
  node.op = "op";
  node.names = {"self",  "weight", "tensors", "dim",  "p",    "flag",
                "sizes", "mode",   "dtype",   "mask", "none", "slot"};
  node.args = {TensorArg{0},
               TensorArg{-1},
               ir::TensorListArg{{0, -1}},
               integer(-1),
               real(0.5),
               Number{.kind = Number::Kind::kBool, .i = 1},
               std::vector<int64_t>{2, 3},
               std::string("mean"),
               DType::kF16,
               std::vector<bool>{true, false},
               ir::None{},
               dynamic(0)};
  std::vector<Value> operands = {b.parameter({DType::kF32, {2}})};
  std::vector<Value> scalars = {b.parameter({DType::kF64, {}})};
  Call c(b, node, operands, scalars);
  CHECK(c.has("self") && c.has("dim") && !c.has("weight") && !c.has("none") && !c.has("absent"));
  CHECK_EQ(c.tensor("self").id(), operands[0].id());
  CHECK_EQ(c.tensors("tensors").size(), 2u);
  CHECK(!c.tensors("tensors")[1]);
  CHECK(!c.optional_tensor("weight"));
  CHECK_EQ(c.integer("dim"), -1);
  CHECK_EQ(c.number("p"), 0.5);
  CHECK(c.boolean("flag"));
  CHECK_EQ(c.ints("sizes"), (std::vector<int64_t>{2, 3}));
  CHECK(c.ints("none").empty());
  CHECK_EQ(c.str("mode"), "mean");
  CHECK(c.dtype("dtype") == DType::kF16);
  CHECK_EQ(c.bools("mask").size(), 2u);
  CHECK_EQ(c.integer_or("none", 7), 7);
  CHECK(c.number_is_integral("dim") && !c.number_is_integral("p"));
  CHECK(!c.is_one("dim") && !c.is_one("slot") && c.is_one("flag"));
  CHECK(c.scalar("slot", DType::kF32).dtype() == DType::kF32);
  CHECK(c.scalar("p", DType::kBF16).dtype() == DType::kBF16);
  CHECK_THROWS(c.number("slot"), BuildError, "does not list it in statics");
  CHECK_THROWS(c.tensor("weight"), BuildError, "is not a tensor");
  CHECK_THROWS(c.integer("p"), BuildError, "is not an integer");
  CHECK_THROWS(c.integer("absent"), BuildError, "does not exist");
}

TEST(dimensions_wrap_with_pytorch_s_errors) {
  Builder b;
  Node node;
  std::vector<Value> none;
  Call c(b, node, none, none);
  CHECK_EQ(c.wrap_dim(-1, 3), 2);
  CHECK_EQ(c.wrap_dim(-1, 0), 0);
  CHECK_EQ(c.wrap_dims({-1, 0}, 3), (std::vector<int64_t>{2, 0}));
  CHECK_EQ(c.wrap_dims({}, 2), (std::vector<int64_t>{0, 1}));
  CHECK_THROWS(c.wrap_dim(3, 3), ArgumentError,
               "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  CHECK_THROWS(c.wrap_dims({1, -1}, 2), ArgumentError,
               "dim 1 appears multiple times in the list of dims");
}

// -- Random bits ------------------------------------------------------------------------------------------------------

TEST(threefry_gives_the_published_vectors) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  Builder b;
  std::vector<Value> words;
  for (int i = 0; i < 4; ++i) words.push_back(b.parameter({DType::kU32, {3}}));
  auto [x0, x1] = threefry2x32(b, words[0], words[1], words[2], words[3]);
  auto array = [](std::vector<uint32_t> values) {
    return host_array<uint32_t>(DType::kU32, {3}, values);
  };
  std::vector<Bytes> out =
      Program(b.finish({x0, x1}))
          .run({array({0, 0xffffffff, 0x13198a2e}), array({0, 0xffffffff, 0x03707344}),
                array({0, 0xffffffff, 0x243f6a88}), array({0, 0xffffffff, 0x85a308d3})});
  CHECK_EQ(values_of<uint32_t>(out[0]),
           (std::vector<uint32_t>{0x6b200159, 0x1cb996fc, 0xc4923a9c}));
  CHECK_EQ(values_of<uint32_t>(out[1]),
           (std::vector<uint32_t>{0x99ba4efe, 0xbb002be7, 0x483df7a0}));
}

struct Draw {
  Builder b;
  Node node;
  std::vector<Value> none, scalars;

  Draw() {
    node.op = "draw";
    node.seed_slot = 0;
    scalars = {b.parameter({DType::kI64, {}}), b.parameter({DType::kI64, {}})};
  }
  Call call() { return Call(b, node, none, scalars); }
  std::vector<Bytes> run(const std::vector<Value>& results, int64_t seed, int64_t offset) {
    return Program(b.finish(results))
        .run({host_array<int64_t>(DType::kI64, {}, {seed}),
              host_array<int64_t>(DType::kI64, {}, {offset})});
  }
};

// Threefry-2x32-20 on the host.
std::pair<uint32_t, uint32_t> reference(uint32_t k0, uint32_t k1, uint32_t x0, uint32_t x1) {
  const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDA};
  x0 += k0;
  x1 += k1;
  for (int round = 0; round < 20; ++round) {
    int by = rotations[round % 8];
    x0 += x1;
    x1 = (x1 << by | x1 >> (32 - by)) ^ x0;
    if (round % 4 == 3) {
      int group = round / 4 + 1;
      x0 += keys[group % 3];
      x1 += keys[(group + 1) % 3] + group;
    }
  }
  return {x0, x1};
}

TEST(random_bits_depend_on_seed_offset_stream_and_index_alone) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  constexpr int64_t kSeed = 0x123456789abcdef0, kOffset = 0x100000007;
  Draw draw;
  Call c = draw.call();
  std::vector<Bytes> out = draw.run(
      {c.random_bits({3, 4}), c.random_bits({5}, DType::kU32, 1), c.random_bits({4}, DType::kU64),
       c.random_bits({4}, DType::kU8), c.random_bits({0, 3})},
      kSeed, kOffset);
  auto block = [&](uint32_t i, uint32_t stream) {
    return reference(0x9abcdef0, 0x12345678 ^ 1, i, 7 + stream * 0x9E3779B9);
  };
  std::vector<uint32_t> first, second;
  for (uint32_t i = 0; i < 12; ++i) first.push_back(block(i, 0).first);
  for (uint32_t i = 0; i < 5; ++i) second.push_back(block(i, 1).first);
  CHECK_EQ(values_of<uint32_t>(out[0]), first);
  CHECK_EQ(values_of<uint32_t>(out[1]), second);
  for (uint32_t i = 0; i < 4; ++i) {
    auto [low, high] = block(i, 0);
    CHECK_EQ(values_of<uint64_t>(out[2])[i], uint64_t{high} << 32 | low);
    CHECK_EQ(out[3][i], low >> 24);
  }
  CHECK(out[4].empty());
}

TEST(uniform_numbers_fill_the_unit_interval) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  Draw draw;
  Call c = draw.call();
  constexpr int64_t kCount = 20000;
  Value single = c.random_uniform({kCount}, DType::kF32);
  Value half = c.random_uniform({kCount}, DType::kF16),
        brain = c.random_uniform({kCount}, DType::kBF16);
  std::vector<Bytes> out =
      draw.run({single, c.random_uniform({kCount}, DType::kF64), draw.b.convert(half, DType::kF32),
                draw.b.convert(brain, DType::kF32)},
               42, 0);
  auto check_moments = [](const auto& values) {
    double sum = 0, squares = 0;
    for (double x : values) {
      CHECK(x >= 0.0 && x < 1.0);
      sum += x;
      squares += x * x;
    }
    double mean = sum / values.size();
    CHECK(std::abs(mean - 0.5) < 0.01);
    CHECK(std::abs(squares / values.size() - mean * mean - 1.0 / 12) < 0.005);
  };
  check_moments(values_of<float>(out[0]));
  check_moments(values_of<double>(out[1]));
  check_moments(values_of<float>(out[2]));
  check_moments(values_of<float>(out[3]));
  CHECK_EQ(values_of<float>(out[0])[0], reference(42, 0, 0, 0).first / 256 * 0x1p-24f);
}

}  // namespace
}  // namespace torch_tpu::lowering
