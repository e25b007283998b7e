// Graphs: printing and the validator. Keys: quality and speed of the hasher.
#include <algorithm>
#include <chrono>

#include "check.h"
#include "ir/graph.h"
#include "ir/key.h"

namespace torch_tpu::ir {
namespace {

ViewSpec dense_view(DType dtype, const std::vector<int64_t>& sizes) {
  ViewSpec view;
  view.dtype = dtype;
  view.sizes = Dims(sizes.begin(), sizes.end());
  view.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride *= sizes[i];
  }
  return view;
}

Operand operand_of(int value, ViewSpec view) {
  Operand operand;
  operand.value = value;
  operand.view = std::move(view);
  return operand;
}

// y = x + $0 * x[:1]; x.add_(y) written back into x's storage, which is donated.
Graph example() {
  Graph g;
  g.inputs = {{DType::kF32, {2, 3}}};
  g.scalars = {DType::kF32, DType::kI64, DType::kI64};
  const ViewSpec whole = dense_view(DType::kF32, {2, 3});
  Number alpha;
  alpha.kind = Number::Kind::kFloat;
  alpha.slot = 0;
  Node add;
  add.op = "add.Tensor";
  add.names = {"self", "other", "alpha"};
  add.args = {TensorArg{0}, TensorArg{1}, alpha};
  add.operands = {operand_of(0, whole), operand_of(0, dense_view(DType::kF32, {1, 3}))};
  add.results.resize(1);
  add.results[0].view = whole;
  add.results[0].storage_bytes = 24;
  add.results[0].value = {DType::kF32, {2, 3}};
  Node write = add;
  write.operands[1] = operand_of(1, whole);
  write.results[0].written = true;
  write.results[0].base = 0;
  g.nodes = {add, write};
  g.outputs = {2};
  g.donations = {{0, 0}};
  return g;
}

template <typename Change>
std::string broken(Change change) {
  Graph g = example();
  change(g);
  return verify(g);
}

bool says(const std::string& problem, const std::string& part) {
  if (problem.find(part) != std::string::npos) return true;
  check::fail("verify", 0, "\"" + problem + "\" does not say \"" + part + "\"");
  return false;
}

TEST(a_graph_reads_well) {
  CHECK_EQ(to_string(example()),
           "input %0: f32[2,3]\n"
           "scalar $0: f32\n"
           "scalar $1: i64\n"
           "scalar $2: i64\n"
           "add.Tensor(self=%0:f32[2,3] strides [3, 1], other=%0:f32[1,3] strides [3, 1], "
           "alpha=$0) promoted f32\n"
           "  %1: f32[2,3] seen as f32[2,3] strides [3, 1]\n"
           "add.Tensor(self=%0:f32[2,3] strides [3, 1], other=%1:f32[2,3] strides [3, 1], "
           "alpha=$0) promoted f32\n"
           "  %2: f32[2,3] = %0 written through f32[2,3] strides [3, 1]\n"
           "return %2\n"
           "donate input 0 to output 0\n");
}

TEST(every_argument_kind_prints) {
  Graph g = example();
  Number whole;
  whole.i = -7;
  Number truth;
  truth.kind = Number::Kind::kBool;
  truth.i = 1;
  Number imaginary;
  imaginary.kind = Number::Kind::kComplex;
  imaginary.f = 0.5;
  imaginary.im = 2;
  Node& node = g.nodes[0];
  node.names = {"a", "b", "c", "d", "e", "f", "g", "h"};
  node.args = {None{},
               TensorListArg{{0, -1}},
               whole,
               std::vector<Number>{truth, imaginary},
               std::vector<int64_t>{1, 2},
               std::vector<bool>{true, false},
               std::string("mean"),
               DType::kBF16};
  CHECK_EQ(verify(g), "");
  CHECK(says(to_string(g),
             "(a=none, b=[%0:f32[2,3] strides [3, 1], undefined], c=-7, d=[true, (0.5+2j)], e=[1, "
             "2], f=[1, 0], "
             "g=\"mean\", h=bf16)"));
}

TEST(a_good_graph_passes) {
  CHECK_EQ(verify(example()), "");
  CHECK_EQ(verify(Graph()), "");
  // Byte views, empty views, uninitialised operands and run-time offsets are all right.
  CHECK_EQ(broken([](Graph& g) {
             g.nodes[0].operands[0].view = dense_view(DType::kU8, {24});
             g.nodes[0].operands[1].value = -1;
             g.nodes[1].operands[0].view = dense_view(DType::kF32, {0, 100});
             g.nodes[1].operands[1].view.offset_slot = 1;
             g.nodes[1].seed_slot = 1;
           }),
           "");
}

TEST(numbers_as_operands_and_undefined_results) {
  Graph g = example();
  g.nodes[0].operands[0] = operand_of(-1, dense_view(DType::kF32, {}));
  g.nodes[0].operands[0].scalar_slot = 0;
  g.nodes[0].operands[1] = operand_of(-1, dense_view(DType::kF32, {}));
  g.nodes[0].operands[1].is_constant = true;
  g.nodes[0].operands[1].constant.i = 3;
  g.nodes[0].results.resize(2);
  g.nodes[0].results[1].undefined = true;  // is %2: the next node makes %3
  g.outputs = {3};
  CHECK_EQ(verify(g), "");
  CHECK(says(to_string(g),
             "add.Tensor(self=$0:f32[] strides [], other=3:f32[] strides [], alpha=$0)"));
  CHECK(says(to_string(g), "%2: undefined"));
  g.outputs = {2};
  CHECK(says(verify(g), "a result left undefined"));
  g.nodes[0].operands[0].scalar_slot = 9;
  CHECK(says(verify(g), "an operand is scalar 9 of 3"));
}

TEST(broken_graphs_are_named) {
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].value = 1; }),
             "node 0 (add.Tensor): an operand uses value 1, which is not defined yet"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].view.offset = 1; }),
             "28 bytes of a storage of 24"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].view.strides = {4, 1}; }),
             "28 bytes of a storage of 24"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].view.strides = {1}; }),
             "2 sizes and 1 strides"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].view.offset = -1; }), "negative offset"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].operands[0].view.offset_slot = 0; }),
             "needs an i64 scalar"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].args[0] = TensorArg{2}; }), "operand 2 of 2"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].names.pop_back(); }), "2 names for 3 arguments"));
  CHECK(says(broken([](Graph& g) { g.scalars.clear(); }), "a number is scalar 0 of 0"));
  CHECK(says(broken([](Graph& g) { g.scalars[1] = DType::kU8; }), "scalar 1: scalars are"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].seed_slot = 2; }),
             "the random offset is scalar 3 of 3"));
  CHECK(says(broken([](Graph& g) { g.nodes[1].results[0].base = 2; }),
             "a written result uses value 2"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].results[0].base = 0; }), "a fresh result"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].results[0].storage_bytes = 20; }),
             "storage of 20 bytes"));
  CHECK(says(broken([](Graph& g) { g.nodes[0].results[0].value.dims = {5}; }),
             "24 bytes of a storage of 20"));
  CHECK(says(broken([](Graph& g) { g.outputs = {3}; }), "outputs: output uses value 3"));
  CHECK(says(broken([](Graph& g) { g.donations.emplace_back(0, 0); }), "donated twice"));
  CHECK(says(broken([](Graph& g) { g.donations = {{1, 0}}; }), "does not exist"));
  CHECK(says(broken([](Graph& g) { g.inputs[0].dims = {6}; }),
             "is not of the output's type tensor<2x3xf32>"));
}

// -- Keys -----------------------------------------------------------------------------------------

Key key_of(std::initializer_list<uint64_t> words) {
  KeyHasher h;
  for (const uint64_t w : words) h.add(w);
  return h.finish();
}

size_t collisions(std::vector<uint64_t> halves) {
  std::sort(halves.begin(), halves.end());
  return halves.end() - std::unique(halves.begin(), halves.end());
}

TEST(keys_compare_and_print) {
  CHECK_EQ((Key{0x0123456789ABCDEF, 0xFEDCBA9876543210}).hex(), "fedcba98765432100123456789abcdef");
  CHECK(key_of({1, 2}) == key_of({1, 2}));
  CHECK(key_of({1, 2}) != key_of({2, 1}));
  CHECK(key_of({}) != key_of({0}));
  CHECK(key_of({0}) != key_of({0, 0}));
  KeyHasher a;
  a.add_bytes("ab");
  a.add_bytes("c");
  KeyHasher b;
  b.add_bytes("a");
  b.add_bytes("bc");
  CHECK(a.finish() != b.finish());
  // The same on every machine: keys name files on disk.
  CHECK_EQ(key_of({1, 2, 3}).hex(), "9a7a1057081065166f90793946322054");
}

TEST(structured_words_do_not_collide) {
  // Each half of the key alone is free of collisions over 5 million inputs that differ in few low
  // bits.
  std::vector<uint64_t> lows;
  std::vector<uint64_t> highs;
  const auto put = [&](const Key& key) {
    lows.push_back(key.lo);
    highs.push_back(key.hi);
  };
  for (uint64_t a = 0; a < 128; ++a) {
    for (uint64_t b = 0; b < 128; ++b) {
      for (uint64_t c = 0; c < 128; ++c) put(key_of({a, b, c}));
    }
  }
  for (uint64_t i = 0; i < 1000000; ++i) {
    put(key_of({i}));
    put(key_of({8, 8, i << 20, 1, 0, 0}));
    KeyHasher pairs;
    pairs.add_pair(i, 8);
    pairs.add_pair(i & 1023, i >> 10);
    put(pairs.finish());
  }
  for (int length = 4; length < 400; ++length) {
    KeyHasher zeros;
    KeyHasher ones;
    for (int i = 0; i < length; ++i) {
      zeros.add(uint64_t{0});
      ones.add(~uint64_t{0});
    }
    put(zeros.finish());
    put(ones.finish());
  }
  CHECK_EQ(collisions(std::move(lows)), 0);
  CHECK_EQ(collisions(std::move(highs)), 0);
}

TEST(every_input_bit_moves_half_of_the_key) {
  for (int position = 0; position < 4; ++position) {
    for (int bit = 0; bit < 64; ++bit) {
      double changed_low = 0;
      double changed_high = 0;
      for (uint64_t sample = 0; sample < 64; ++sample) {
        uint64_t words[4] = {sample, 8, sample * sample, 1};
        const Key before = key_of({words[0], words[1], words[2], words[3]});
        words[position] ^= uint64_t{1} << bit;
        const Key after = key_of({words[0], words[1], words[2], words[3]});
        changed_low += std::popcount(before.lo ^ after.lo);
        changed_high += std::popcount(before.hi ^ after.hi);
      }
      CHECK(changed_low / 64 > 24 && changed_low / 64 < 40);
      CHECK(changed_high / 64 > 24 && changed_high / 64 < 40);
    }
  }
}

TEST(hashing_is_fast) {
  KeyHasher h;
  const auto start = std::chrono::steady_clock::now();
  constexpr int kWords = 4'000'000;
  for (uint64_t i = 0; i < kWords; ++i) h.add(i);
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
      kWords;
  std::printf("%.2f ns a word (%s)\n", ns, h.finish().hex().c_str());
  CHECK(ns < 1000);
}

}  // namespace
}  // namespace torch_tpu::ir
