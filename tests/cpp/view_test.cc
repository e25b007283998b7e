// Views against plain loops: random chains of view operations read, written, and moved to other offsets at run time.
#include "lowering/view.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "check.h"
#include "program_runner.h"

namespace torch_tpu::lowering {
namespace {

using ir::ValueSpec;
using ir::ViewSpec;
using stablehlo::Dims;
using stablehlo::DType;
using testing::Bytes;
using testing::HostArray;
using testing::Program;
using Ints = std::vector<int64_t>;

Dims to_dims(const Ints& sizes) { return Dims(sizes.begin(), sizes.end()); }

int64_t count_of(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<int64_t>());
}

struct PlainView {
  DType dtype;
  Ints sizes, strides;
  int64_t offset = 0;

  ViewSpec spec(int slot = -1) const { return {dtype, to_dims(sizes), strides, offset, slot}; }
  std::string str() const {
    return std::string(stablehlo::mlir_name(dtype)) + " sizes " + check::show(sizes) + " strides " +
           check::show(strides) + " offset " + std::to_string(offset);
  }
  // Storage elements in the view's row-major order.
  Ints places() const {
    Ints places = {offset};
    for (size_t d = 0; d < sizes.size(); ++d) {
      Ints next;
      for (int64_t place : places) {
        for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(place + i * strides[d]);
      }
      places = next;
    }
    return places;
  }
};

PlainView contiguous(DType dtype, const Ints& sizes) {
  PlainView view{dtype, sizes, Ints(sizes.size(), 1)};
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 2; d >= 0; --d) {
    view.strides[d] = view.strides[d + 1] * std::max<int64_t>(sizes[d + 1], 1);
  }
  return view;
}

int64_t width(DType dtype) { return stablehlo::byte_size(dtype); }

// Bytes that are no NaN in any type and valid bools.
uint8_t plain_byte(std::mt19937& random, bool bools) { return random() % (bools ? 2 : 0x3f); }

Bytes random_bytes(std::mt19937& random, int64_t count, bool bools) {
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = plain_byte(random, bools);
  return bytes;
}

// Values to write, of `count` elements. No bf16 subnormals: LLVM moves bf16 through f32 in places, and x86's AVX512-BF16
// conversion back flushes them (seen with xla-cpu-pjrt 0.0.1). What lies around a write keeps every bit.
Bytes random_values(std::mt19937& random, DType dtype, int64_t count, bool bools) {
  Bytes bytes = random_bytes(random, count * width(dtype), bools);
  if (dtype != DType::kBF16) return bytes;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const int exponent = (bytes[i + 1] & 0x7f) << 1 | bytes[i] >> 7;
    if (exponent == 0) bytes[i] = bytes[i + 1] = 0;
  }
  return bytes;
}

Bytes expected_read(const Bytes& storage, const PlainView& view) {
  Bytes result;
  int64_t w = width(view.dtype);
  for (int64_t place : view.places()) {
    result.insert(result.end(), storage.begin() + place * w, storage.begin() + (place + 1) * w);
  }
  if (view.dtype == DType::kPred) {
    for (uint8_t& byte : result) byte = byte != 0;
  }
  return result;
}

Bytes expected_write(Bytes storage, const PlainView& view, const Bytes& value) {
  int64_t w = width(view.dtype), i = 0;
  for (int64_t place : view.places())
    std::copy_n(value.begin() + w * i++, w, storage.begin() + place * w);
  return storage;
}

// -- Random views -----------------------------------------------------------------------------------------------------

class ViewMaker {
 public:
  explicit ViewMaker(unsigned seed) : random_(seed) {}

  std::mt19937& random() { return random_; }
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  HostArray storage() {
    static const DType kTypes[] = {DType::kF32,  DType::kI64,  DType::kU8,
                                   DType::kPred, DType::kBF16, DType::kC64,
                                   DType::kF64,  DType::kI16,  DType::kF8E5M2};
    HostArray array{kTypes[pick(0, std::size(kTypes) - 1)], {}, {}};
    int64_t rank = pick(1, 4);
    static const int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 8, 12};
    for (int64_t d = 0; d < rank; ++d) array.dims.push_back(kSizes[pick(0, 7)]);
    array.bytes = random_bytes(random_, count_of(array.dims) * width(array.dtype),
                               array.dtype == DType::kPred);
    return array;
  }

  // A contiguous view of the storage in its own or another dtype.
  PlainView base(const HostArray& storage, bool other_dtype) {
    PlainView view = contiguous(storage.dtype, storage.dims);
    if (other_dtype) {
      static const DType kTypes[] = {DType::kF32,  DType::kU8,  DType::kI32,
                                     DType::kPred, DType::kI64, DType::kC64};
      DType dtype = kTypes[pick(0, std::size(kTypes) - 1)];
      int64_t bytes = storage.bytes.size();
      Ints dims = storage.dims;
      int64_t last = dims.back() * width(storage.dtype);
      if (last % width(dtype) == 0 && pick(0, 2) > 0) {
        dims.back() = last / width(dtype);
      } else {
        dims = {bytes / width(dtype)};
      }
      view = contiguous(dtype, dims);
    }
    return view;
  }

  PlainView chain(PlainView view, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) apply(view);
    return view;
  }

  // Any strides that stay inside.
  PlainView as_strided(DType dtype, int64_t count) {
    PlainView view{dtype, {}, {}};
    int64_t rank = pick(1, 3), room = count - 1;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t size = pick(1, 4);
      int64_t stride = size > 1 ? pick(0, std::max<int64_t>(0, room / (size - 1))) : pick(0, 9);
      if (size > 1) room -= (size - 1) * stride;
      view.sizes.push_back(size);
      view.strides.push_back(stride);
    }
    view.offset = pick(0, room);
    return view;
  }

 private:
  void apply(PlainView& v) {
    int64_t rank = v.sizes.size();
    if (rank == 0) return unsqueeze(v);
    int64_t d = pick(0, rank - 1);
    switch (pick(0, 9)) {
      case 0: {
        int64_t e = pick(0, rank - 1);
        std::swap(v.sizes[d], v.sizes[e]);
        std::swap(v.strides[d], v.strides[e]);
        break;
      }
      case 1:
      case 2: {
        if (v.sizes[d] == 0) break;
        int64_t start = pick(0, v.sizes[d] - 1);
        v.offset += start * v.strides[d];
        v.sizes[d] = pick(pick(0, 9) == 0 ? 0 : 1, v.sizes[d] - start);
        break;
      }
      case 3: {
        if (v.sizes[d] == 0) break;
        v.offset += pick(0, v.sizes[d] - 1) * v.strides[d];
        erase(v, d);
        break;
      }
      case 4: {
        if (v.sizes[d] < 2) break;
        int64_t step = pick(2, 3), start = pick(0, step - 1);
        if (start >= v.sizes[d]) break;
        v.offset += start * v.strides[d];
        v.sizes[d] = (v.sizes[d] - start + step - 1) / step;
        v.strides[d] *= step;
        break;
      }
      case 5:
        unsqueeze(v);
        break;
      case 6:
        if (v.sizes[d] == 1) {
          v.sizes[d] = pick(1, 3);
          v.strides[d] = 0;
        }
        break;
      case 7: {  // unflatten
        for (int64_t inner : {2, 3, 4}) {
          if (v.sizes[d] <= 1 || v.sizes[d] % inner != 0) continue;
          v.sizes.insert(v.sizes.begin() + d + 1, inner);
          v.strides.insert(v.strides.begin() + d + 1, v.strides[d]);
          v.sizes[d] /= inner;
          v.strides[d] *= inner;
          break;
        }
        break;
      }
      case 8: {  // flatten two neighbours
        if (d + 1 >= rank || v.strides[d] != v.strides[d + 1] * v.sizes[d + 1]) break;
        v.sizes[d + 1] *= v.sizes[d];
        erase(v, d);
        break;
      }
      default: {  // unfold or diagonal
        if (v.sizes[d] < 2) break;
        if (pick(0, 1) == 0) {
          int64_t size = pick(1, v.sizes[d]), step = pick(1, 3);
          v.sizes.push_back(size);
          v.strides.push_back(v.strides[d]);
          v.sizes[d] = (v.sizes[d] - size) / step + 1;
          v.strides[d] *= step;
        } else if (rank >= 2) {
          int64_t e = (d + 1) % rank;
          v.sizes[d] = std::min(v.sizes[d], v.sizes[e]);
          v.strides[d] += v.strides[e];
          erase(v, e);
        }
      }
    }
  }

  void unsqueeze(PlainView& v) {
    int64_t d = pick(0, v.sizes.size());
    v.sizes.insert(v.sizes.begin() + d, 1);
    v.strides.insert(v.strides.begin() + d, pick(0, 7));
  }

  static void erase(PlainView& v, int64_t d) {
    v.sizes.erase(v.sizes.begin() + d);
    v.strides.erase(v.strides.begin() + d);
  }

  std::mt19937 random_;
};

PlainView random_view(ViewMaker& make, const HostArray& storage, int64_t i) {
  if (i % 8 == 7) return make.as_strided(storage.dtype, count_of(storage.dims));
  PlainView base = make.base(storage, i % 4 == 3);
  return count_of(base.sizes) == 0 ? base : make.chain(base, make.pick(1, 7));
}

bool overlaps(const PlainView& view) {
  Ints places = view.places();
  return std::set<int64_t>(places.begin(), places.end()).size() != places.size();
}

// The text of a program that reads one view.
std::string read_text(DType dtype, const Ints& dims, const ViewSpec& view) {
  Builder b;
  Value storage = b.parameter({dtype, to_dims(dims)});
  Value offset = view.offset_slot >= 0 ? b.parameter({DType::kI64, {}}) : Value();
  return b.finish({read_view(b, storage, view, offset)});
}

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

// -- Fuzz -------------------------------------------------------------------------------------------------------------

constexpr int kPrograms = 6;
constexpr int kStoragesPerProgram = 4;
constexpr int kViewsPerStorage = 16;

TEST(reads_show_what_the_strides_say) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  for (int seed = 0; seed < kPrograms; ++seed) {
    ViewMaker make(seed);
    Builder b;
    std::vector<HostArray> storages;
    std::vector<Value> results;
    std::vector<std::pair<int, PlainView>> views;
    for (int s = 0; s < kStoragesPerProgram; ++s) {
      storages.push_back(make.storage());
      Value parameter = b.parameter({storages[s].dtype, to_dims(storages[s].dims)});
      for (int i = 0; i < kViewsPerStorage; ++i) {
        PlainView view = random_view(make, storages[s], i);
        Value shown = read_view(b, parameter, view.spec());
        CHECK(shown.type() == (stablehlo::Type{view.dtype, to_dims(view.sizes)}));
        results.push_back(shown);
        views.emplace_back(s, view);
      }
    }
    std::vector<Bytes> outputs = Program(b.finish(results)).run(storages);
    for (size_t i = 0; i < views.size(); ++i) {
      const auto& [s, view] = views[i];
      if (outputs[i] == expected_read(storages[s].bytes, view)) continue;
      check::fail(__FILE__, __LINE__,
                  "seed " + std::to_string(seed) + ": read of " +
                      stablehlo::mlir_name(storages[s].dtype) + check::show(storages[s].dims) +
                      " through " + view.str());
    }
  }
}

struct WriteCase {
  int storage;  // -1: uninitialised
  PlainView view;
  Bytes value;
  Bytes before;
};

TEST(writes_change_what_the_strides_say_and_nothing_else) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  for (int seed = 0; seed < kPrograms; ++seed) {
    ViewMaker make(1000 + seed);
    Builder b;
    std::vector<HostArray> arguments;
    std::vector<Value> results;
    std::vector<WriteCase> cases;
    for (int s = 0; s < kStoragesPerProgram; ++s) {
      HostArray storage = make.storage();
      arguments.push_back(storage);
      Value parameter = b.parameter({storage.dtype, to_dims(storage.dims)});
      ValueSpec old{storage.dtype, to_dims(storage.dims)};
      int64_t bytes = storage.bytes.size();
      for (int i = 0; i < kViewsPerStorage; ++i) {
        PlainView view = random_view(make, storage, i);
        CHECK(may_overlap(view.spec()) || !overlaps(view));
        if (overlaps(view)) continue;
        bool bools = storage.dtype == DType::kPred || view.dtype == DType::kPred;
        bool fresh = i % 5 == 4;
        HostArray value{view.dtype, view.sizes,
                        random_values(make.random(), view.dtype, count_of(view.sizes), bools)};
        ValueSpec next = value_after_write(view.spec(), fresh ? nullptr : &old, bytes);
        CHECK_EQ(stablehlo::product(next.dims).fixed() * width(next.dtype), bytes);
        Value v = b.parameter({value.dtype, to_dims(value.dims)});
        Value written = write_view(b, fresh ? Value() : parameter, v, view.spec(), next);
        CHECK(written.type() == (stablehlo::Type{next.dtype, next.dims}));
        arguments.push_back(value);
        results.push_back(written);
        cases.push_back({s, view, value.bytes, fresh ? Bytes(bytes, 0) : storage.bytes});
      }
    }
    std::vector<Bytes> outputs = Program(b.finish(results)).run(arguments);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (outputs[i] == expected_write(cases[i].before, cases[i].view, cases[i].value)) continue;
      check::fail(__FILE__, __LINE__,
                  "seed " + std::to_string(seed) + ": write into storage " +
                      std::to_string(cases[i].storage) + " through " + cases[i].view.str());
    }
  }
}

TEST(a_moved_view_is_right_wherever_same_form_says_so) {
  if (!testing::has_plugin()) SKIP("TEST_PJRT_PLUGIN is not set");
  int moved = 0;
  for (int seed = 0; seed < kPrograms; ++seed) {
    ViewMaker make(2000 + seed);
    HostArray storage = make.storage();
    ValueSpec old{storage.dtype, to_dims(storage.dims)};
    int64_t bytes = storage.bytes.size();
    Builder b;
    Value parameter = b.parameter({storage.dtype, to_dims(storage.dims)});
    std::vector<HostArray> values;
    std::vector<PlainView> views;
    std::vector<Value> results;
    for (int i = 0; i < 12; ++i) {
      PlainView view = random_view(make, storage, i);
      if (overlaps(view)) continue;
      ViewSpec spec = view.spec(0);
      bool bools = storage.dtype == DType::kPred || view.dtype == DType::kPred;
      views.push_back(view);
      values.push_back({view.dtype, view.sizes,
                        random_values(make.random(), view.dtype, count_of(view.sizes), bools)});
      Value offset = b.parameter({DType::kI64, {}});
      Value value = b.parameter({view.dtype, to_dims(view.sizes)});
      results.push_back(read_view(b, parameter, spec, offset));
      results.push_back(
          write_view(b, parameter, value, spec, value_after_write(spec, &old, bytes), offset));
    }
    Program program(b.finish(results));
    for (int round = 0; round < 12; ++round) {
      std::vector<HostArray> arguments = {storage};
      std::vector<PlainView> now = views;
      for (size_t i = 0; i < views.size(); ++i) {
        int64_t elements = bytes / width(views[i].dtype);
        now[i].offset = make.pick(0, std::max<int64_t>(0, elements - 1));
        if (round == 0 || !same_form(old, views[i].spec(0), now[i].spec(0)))
          now[i].offset = views[i].offset;
        CHECK(same_form(old, views[i].spec(0), now[i].spec(0)));
        if (now[i].offset != views[i].offset) ++moved;
        arguments.push_back(testing::host_array<int64_t>(DType::kI64, {}, {now[i].offset}));
        arguments.push_back(values[i]);
      }
      std::vector<Bytes> outputs = program.run(arguments);
      for (size_t i = 0; i < views.size(); ++i) {
        std::string where = "seed " + std::to_string(seed) + ": from offset " +
                            std::to_string(views[i].offset) + " to " + now[i].str() + " of " +
                            stablehlo::mlir_name(storage.dtype) + check::show(storage.dims);
        if (outputs[2 * i] != expected_read(storage.bytes, now[i]))
          check::fail(__FILE__, __LINE__, "read, " + where);
        if (outputs[2 * i + 1] != expected_write(storage.bytes, now[i], values[i].bytes)) {
          check::fail(__FILE__, __LINE__, "write, " + where);
        }
      }
    }
  }
  CHECK(moved > 100);
}

// -- Forms ------------------------------------------------------------------------------------------------------------

TEST(common_views_need_no_gather) {
  struct Case {
    Ints storage, sizes, strides;
    int64_t offset;
  };
  const Case kCases[] = {
      {{8, 16}, {16, 8}, {1, 16}, 0},                   // transpose
      {{8, 16}, {8, 4}, {16, 1}, 5},                    // narrow
      {{8, 16}, {16}, {1}, 48},                         // select
      {{8, 16}, {4, 8}, {32, 2}, 17},                   // steps
      {{2, 8, 48}, {2, 4, 8, 4}, {384, 4, 48, 1}, 16},  // heads of the middle third
      {{2, 8, 49},
       {2, 8, 4, 4},
       {392, 49, 4, 1},
       33},                                  // heads of a part that the row is no multiple of
      {{8, 8}, {8}, {9}, 0},                 // diagonal
      {{100}, {5, 7}, {7, 1}, 13},           // a parameter in a flat buffer
      {{8, 16}, {3, 8, 16}, {0, 16, 1}, 0},  // expand
  };
  for (const Case& c : kCases) {
    ViewSpec view{DType::kF32, to_dims(c.sizes), c.strides, c.offset, -1};
    CHECK(!mentions(read_text(DType::kF32, c.storage, view), "gather"));
    view.offset_slot = 0;
    CHECK(!mentions(read_text(DType::kF32, c.storage, view), "gather"));
  }
}

TEST(slices_of_storage_dimensions_need_no_reshape) {
  ViewSpec narrow{DType::kF32, {4, 3, 16}, {128, 16, 1}, 32, -1};
  CHECK(!mentions(read_text(DType::kF32, {4, 8, 16}, narrow), "reshape"));
  narrow.offset_slot = 0;
  std::string text = read_text(DType::kF32, {4, 8, 16}, narrow);
  CHECK(!mentions(text, "reshape"));
  CHECK(mentions(text, "dynamic_slice"));
}

TEST(a_step_along_the_first_dimension_keeps_its_form) {
  ValueSpec cache{DType::kF32, {4, 8, 16}};
  ViewSpec row{DType::kF32, {4, 16}, {128, 1}, 32, 0};
  for (int64_t position = 0; position < 8; ++position) {
    ViewSpec other = row;
    other.offset = position * 16;
    CHECK(same_form(cache, row, other));
  }
  ViewSpec crossing = row;
  crossing.offset = 8;  // rows that lie across two positions
  CHECK(!same_form(cache, row, crossing));
  ViewSpec outside = row;
  outside.offset = 128;
  CHECK(!same_form(cache, row, outside));
}

TEST(a_dense_write_decides_the_storage_type) {
  ViewSpec transposed{DType::kF32, {3, 5}, {1, 3}, 0, -1};
  ValueSpec bytes{DType::kU8, {60}};
  CHECK(value_after_write(transposed, &bytes, 60) == (ValueSpec{DType::kF32, {5, 3}}));
  ViewSpec part{DType::kF32, {3}, {1}, 2, -1};
  CHECK(value_after_write(part, &bytes, 60) == bytes);
  CHECK(value_after_write(part, nullptr, 60) == (ValueSpec{DType::kF32, {15}}));
  CHECK(value_after_write(part, nullptr, 61) == (ValueSpec{DType::kU8, {61}}));
  ViewSpec none{DType::kF32, {0, 4}, {4, 1}, 0, -1};
  CHECK(value_after_write(none, nullptr, 0) == (ValueSpec{DType::kF32, {0, 4}}));
}

TEST(a_view_outside_its_storage_is_refused) {
  ViewSpec view{DType::kF32, {4}, {2}, 2, -1};
  CHECK_THROWS(read_text(DType::kF32, {8}, view), stablehlo::BuildError, "leaves its storage");
}

}  // namespace
}  // namespace torch_tpu::lowering
