// The conformance suite of csrc/pjrt, one body for every plugin: TEST_PJRT_PLUGIN names the plugin
// to run against. What a plugin cannot do (the null plugin has no values, libtpu needs a TPU for a
// client) is skipped by capability. TEST_LIBTPU names a libtpu to run the whole suite against once
// more, in a child process, because libtpu can end it.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "pjrt/buffer.h"
#include "pjrt/executable.h"
#include "pjrt/topology.h"

namespace {

using namespace torch_tpu::pjrt;  // NOLINT: the subject of the test
using torch_tpu::stablehlo::DType;

constexpr char kAdd[] = R"(module @add {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})";

constexpr char kAddInPlace[] = R"(module @add_in_place {
  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32},
                         %arg1: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})";

constexpr char kTwoResults[] = R"(module @two_results {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xi1>, tensor<4x2xi32>) {
    %0 = stablehlo.compare EQ, %arg0, %arg0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.iota dim = 0 : tensor<4x2xi32>
    return %0, %1 : tensor<4xi1>, tensor<4x2xi32>
  }
})";

constexpr char kMatmul[] = R"(module @matmul {
  func.func public @main(%arg0: tensor<256x128xf32>, %arg1: tensor<128x64xf32>)
      -> (tensor<256x64xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
        : (tensor<256x128xf32>, tensor<128x64xf32>) -> tensor<256x64xf32>
    return %0 : tensor<256x64xf32>
  }
})";

constexpr int64_t kDims[] = {2, 3};
constexpr std::array<float, 6> kOnes = {1, 1, 1, 1, 1, 1};
constexpr std::array<float, 6> kCounting = {0, 1, 2, 3, 4, 5};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const Plugin* plugin() {
  static const Plugin* loaded = [] {
    Result<const Plugin*> result = Plugin::load(variable("TEST_PJRT_PLUGIN"));
    if (!result.ok()) {
      std::cerr << "TEST_PJRT_PLUGIN: " << result.status().str() << "\n";
      std::exit(1);
    }
    return *result;
  }();
  return loaded;
}

// The client most tests share, or null on libtpu without a TPU.
const Client* client() {
  static const Client* shared = [] {
    Result<std::unique_ptr<Client>> result = Client::create(*plugin());
    return result.ok() ? std::move(result).value().release() : nullptr;
  }();
  return shared;
}

bool executes() {
  const auto found = plugin()->attributes().find("executes");
  return found == plugin()->attributes().end() || found->second != torch_tpu::pjrt::Value(false);
}

bool has_topologies() { return plugin()->is_libtpu(); }

#define NEEDS_CLIENT() \
  if (client() == nullptr) SKIP("no client without a TPU")
#define NEEDS_TOPOLOGIES() \
  if (!has_topologies()) SKIP("the plugin has no topologies")
#define REQUIRE_OK(expression)                                                                \
  do {                                                                                        \
    if (!(expression).ok()) {                                                                 \
      ::torch_tpu::check::fail(__FILE__, __LINE__, #expression ": " + why(expression).str()); \
      return;                                                                                 \
    }                                                                                         \
  } while (false)

const Status& why(const Status& status) { return status; }
template <typename T>
const Status& why(const Result<T>& result) {
  return result.status();
}

const Device& device(int ordinal = 0) {
  return client()->devices().at(static_cast<size_t>(ordinal));
}

template <typename T>
void check_content(PJRT_Buffer* buffer, const std::vector<T>& expected) {
  const Api& api = plugin()->api();
  std::vector<T> values(expected.size());
  REQUIRE_OK(device_to_host(api, buffer, values.data(), values.size() * sizeof(T)));
  CHECK_EQ(values, expected);
}

void check_result(PJRT_Buffer* buffer, const std::vector<float>& expected) {
  if (executes()) check_content(buffer, expected);
}

std::string temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "pjrt_test_XXXXXX").string();
  return mkdtemp(name.data()) == nullptr ? "" : name;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

// ---- Status, options, discovery: no client ----

TEST(status_says_code_and_message) {
  CHECK(Status().ok());
  CHECK_EQ(Status().str(), std::string("OK"));
  const Status status(Code::kNotFound, "no such thing");
  CHECK_EQ(status.str(), std::string("NOT_FOUND: no such thing"));
  CHECK_EQ(status.with_prefix("load").message(), std::string("load: no such thing"));
  CHECK(Status().with_prefix("load").ok());
  CHECK_EQ(static_cast<int>(Result<int>(status).status().code()), 5);
  CHECK_EQ(*Result<int>(7), 7);
}

TEST(compile_options_have_the_bytes_of_the_proto) {
  const std::string minus_one = bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  CHECK(CompileOptions().serialize() ==
        bytes({0x1a, 0x0f, 0x08}) + minus_one + bytes({0x20, 1, 0x28, 1}));

  CompileOptions replicas;
  replicas.num_replicas = 4;
  replicas.device_assignment = {0, 1, 2, 3};
  CHECK(replicas.serialize().find(bytes({0x4a, 12, 8, 4, 0x10, 1, 0x1a, 6, 0x0a, 4, 0, 1, 2, 3})) !=
        std::string::npos);

  CompileOptions partitions;
  partitions.num_partitions = 2;
  partitions.use_spmd_partitioning = true;
  partitions.use_shardy = true;
  partitions.device_assignment = {0, 1};
  CHECK(partitions.serialize().find(bytes({0x30, 1, 0x4a, 14, 8,    1, 0x10, 2,    0x1a, 3, 0x0a,
                                           1,    0, 0x1a, 3,  0x0a, 1, 1,    0x98, 1,    1})) !=
        std::string::npos);

  CompileOptions overrides;
  overrides.compile_portable_executable = true;
  overrides.optimization_level = OptimizationLevel::kO1;
  overrides.env_option_overrides["b"] = true;
  overrides.env_option_overrides["a"] = std::string("x");
  overrides.env_option_overrides["c"] = int64_t{300};
  overrides.env_option_overrides["d"] = 1.0;
  CHECK(overrides.serialize() ==
        bytes({0x1a, 0x12, 0x08}) + minus_one +
            bytes({0x20, 1,  0x28, 1, 0xc0, 1,    19, 0x20, 1,          //
                   0x3a, 8,  0x0a, 1, 'a',  0x12, 3,  0x0a, 1,    'x',  //
                   0x3a, 7,  0x0a, 1, 'b',  0x12, 2,  0x10, 1,          //
                   0x3a, 8,  0x0a, 1, 'c',  0x12, 3,  0x18, 0xac, 2,    //
                   0x3a, 14, 0x0a, 1, 'd',  0x12, 9,  0x21, 0,    0,   0, 0, 0, 0, 0xf0, 0x3f}));
}

TEST(tpu_chips_are_counted_on_the_pci_bus) {
  const std::filesystem::path bus = temporary_folder();
  write_file(bus / "0000:00:04.0/vendor", "0x1ae0\n");
  write_file(bus / "0000:00:04.0/device", "0x0063\n");
  write_file(bus / "0000:00:05.0/vendor", "0x1ae0\n");
  write_file(bus / "0000:00:05.0/device", "0x0042\n");  // a network card of the same vendor
  write_file(bus / "0000:00:06.0/vendor", "0x8086\n");
  write_file(bus / "0000:00:06.0/device", "0x0063\n");
  CHECK_EQ(count_tpu_chips(bus.string()), 1);
  CHECK_EQ(count_tpu_chips((bus / "missing").string()), 0);
  std::filesystem::remove_all(bus);
}

TEST(discovery_follows_variables_then_hardware_then_the_cpu_plugin) {
  const std::string file = plugin()->path();
  setenv("TPU_LIBRARY_PATH", file.c_str(), 1);
  setenv("TORCH_TPU_PJRT_PLUGIN", "/nonexistent/plugin.so", 1);
  const Result<PluginChoice> missing = discover({"", "cpu.so"});
  CHECK_EQ(missing.status().code(), Code::kNotFound);
  CHECK(missing.status().message().find("TORCH_TPU_PJRT_PLUGIN") != std::string::npos);

  setenv("TORCH_TPU_PJRT_PLUGIN", file.c_str(), 1);
  Result<PluginChoice> choice = discover({"", "cpu.so"});
  REQUIRE_OK(choice);
  CHECK_EQ(choice->path, file);
  CHECK_EQ(choice->is_tpu, plugin()->is_libtpu());

  unsetenv("TORCH_TPU_PJRT_PLUGIN");
  choice = discover({"", "cpu.so"});
  REQUIRE_OK(choice);
  CHECK_EQ(choice->path, file);
  CHECK(choice->is_tpu);

  unsetenv("TPU_LIBRARY_PATH");
  if (count_tpu_chips() > 0) SKIP("this host has TPU chips");
  choice = discover({"libtpu.so", "cpu.so"});
  REQUIRE_OK(choice);
  CHECK_EQ(choice->path, std::string("cpu.so"));
  CHECK(!choice->is_tpu);
  const Result<PluginChoice> nothing = discover({"libtpu.so", ""});
  CHECK_EQ(nothing.status().code(), Code::kNotFound);
  CHECK(nothing.status().message().find("xla-cpu-pjrt") != std::string::npos);
}

TEST(a_plugin_is_loaded_once) {
  const Result<const Plugin*> again = Plugin::load(plugin()->path());
  REQUIRE_OK(again);
  CHECK(*again == plugin());
  CHECK_EQ(plugin()->api_major(), 0);
  CHECK(plugin()->api_minor() > 0);
  const Result<uint64_t> hash = hash_plugin_file(plugin()->path());
  REQUIRE_OK(hash);
  CHECK_EQ(*hash, plugin()->file_hash());
}

TEST(what_is_not_a_plugin_is_refused) {
  CHECK_EQ(Plugin::load("/nonexistent/plugin.so").status().code(), Code::kNotFound);
  const std::filesystem::path folder = temporary_folder();
  write_file(folder / "plugin.so", "not a library");
  CHECK_EQ(Plugin::load((folder / "plugin.so").string()).status().code(), Code::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST(the_file_hash_names_the_content) {
  const std::filesystem::path folder = temporary_folder();
  std::string content(100003, 'x');
  write_file(folder / "a", content);
  write_file(folder / "copy_of_a", content);
  content[50000] = 'y';
  write_file(folder / "b", content);
  const Result<uint64_t> a = hash_plugin_file((folder / "a").string());
  const Result<uint64_t> copy = hash_plugin_file((folder / "copy_of_a").string());
  const Result<uint64_t> b = hash_plugin_file((folder / "b").string());
  REQUIRE(a.ok() && copy.ok() && b.ok());
  CHECK_EQ(*a, *copy);
  CHECK(*a != *b);
  CHECK_EQ(hash_plugin_file((folder / "missing").string()).status().code(), Code::kNotFound);
  std::filesystem::remove_all(folder);
}

// ---- Client and devices ----

TEST(a_client_without_a_tpu_is_a_clean_error) {
  if (!plugin()->is_libtpu() || count_tpu_chips() > 0) SKIP("for libtpu without a TPU");
  const Result<std::unique_ptr<Client>> result = Client::create(*plugin());
  CHECK(!result.ok());
  CHECK(!result.status().message().empty());
}

TEST(the_client_names_its_devices) {
  NEEDS_CLIENT();
  CHECK(!client()->platform_name().empty());
  CHECK(!client()->cache_key().empty());
  CHECK(client()->num_global_devices() >= client()->num_devices());
  if (!plugin()->is_libtpu()) CHECK_EQ(client()->num_devices(), 1);
  for (int i = 0; i < client()->num_devices(); ++i) {
    CHECK_EQ(device(i).ordinal(), i);
    CHECK(device(i).id() >= 0);
    CHECK(!device(i).kind().empty());
  }
  const Result<MemoryStats> stats = device().memory_stats();
  if (!stats.ok()) CHECK_EQ(stats.status().code(), Code::kUnimplemented);
}

TEST(the_number_of_cpu_devices_can_be_chosen) {
  NEEDS_CLIENT();
  if (plugin()->is_libtpu()) SKIP("for plugins with virtual devices");
  ClientOptions options;
  options.cpu_device_count = 3;
  const Result<std::unique_ptr<Client>> three = Client::create(*plugin(), options);
  REQUIRE_OK(three);
  CHECK_EQ((*three)->num_devices(), 3);
  CHECK_EQ((*three)->devices()[2].ordinal(), 2);
}

// ---- Buffers ----

TEST(every_element_type_has_a_buffer_type) {
  for (int i = 0; i <= static_cast<int>(DType::kU4); ++i) {
    const auto dtype = static_cast<DType>(i);
    const Result<DType> back = dtype_of(buffer_type(dtype));
    REQUIRE_OK(back);
    CHECK_EQ(*back, dtype);
  }
  CHECK_EQ(dtype_of(PJRT_Buffer_Type_TOKEN).status().code(), Code::kUnimplemented);
}

TEST(host_values_come_back) {
  NEEDS_CLIENT();
  const Api& api = client()->api();
  const Result<Buffer> buffer =
      host_to_device(*client(), device(), kCounting.data(), DType::kF32, kDims);
  REQUIRE_OK(buffer);
  CHECK(await_ready(api, buffer->get()).ok());
  const auto dims = dimensions(api, buffer->get());
  REQUIRE_OK(dims);
  CHECK_EQ(std::vector<int64_t>(dims->begin(), dims->end()), std::vector<int64_t>({2, 3}));
  CHECK_EQ(*element_type(api, buffer->get()), PJRT_Buffer_Type_F32);
  CHECK_EQ(*host_size(api, buffer->get()), sizeof(kCounting));
  CHECK(*on_device_size(api, buffer->get()) >= sizeof(kCounting));
  CHECK_EQ(*is_deleted(api, buffer->get()), false);
  check_content<float>(buffer->get(), {0, 1, 2, 3, 4, 5});
  float too_small[2];
  CHECK(!device_to_host(api, buffer->get(), too_small, sizeof(too_small)).ok());
  if (client()->host_visible_memory()) {
    const Result<void*> pointer = unsafe_pointer(api, buffer->get());
    REQUIRE_OK(pointer);
    CHECK_EQ(std::memcmp(*pointer, kCounting.data(), sizeof(kCounting)), 0);
  }
}

TEST(strided_host_arrays_are_gathered) {
  NEEDS_CLIENT();
  const int64_t dims[] = {3, 2};
  const int64_t transposed[] = {sizeof(float), 3 * sizeof(float)};
  const Result<Buffer> buffer =
      host_to_device(*client(), device(), kCounting.data(), DType::kF32, dims, transposed);
  REQUIRE_OK(buffer);
  check_content<float>(buffer->get(), {0, 3, 1, 4, 2, 5});
  const int64_t one_stride[] = {4};
  CHECK_EQ(host_to_device(*client(), device(), kCounting.data(), DType::kF32, dims, one_stride)
               .status()
               .code(),
           Code::kInvalidArgument);
}

TEST(scalars_and_empty_arrays_are_buffers) {
  NEEDS_CLIENT();
  const int64_t value = -5;
  const Result<Buffer> scalar = host_to_device(*client(), device(), &value, DType::kI64, {});
  REQUIRE_OK(scalar);
  check_content<int64_t>(scalar->get(), {-5});
  const int64_t dims[] = {0, 4};
  const Result<Buffer> empty = host_to_device(*client(), device(), &value, DType::kI64, dims);
  REQUIRE_OK(empty);
  CHECK_EQ(*host_size(client()->api(), empty->get()), 0);
  CHECK(await_ready(client()->api(), empty->get()).ok());
}

TEST(element_types_keep_their_bytes) {
  NEEDS_CLIENT();
  if (plugin()->is_libtpu()) SKIP("a chip may not hold every type");
  std::vector<unsigned char> pattern(64, 1);
  for (int i = 0; i <= static_cast<int>(DType::kF8E5M2); ++i) {
    const auto dtype = static_cast<DType>(i);
    const int64_t dims[] = {64 / torch_tpu::stablehlo::byte_size(dtype)};
    const Result<Buffer> buffer = host_to_device(*client(), device(), pattern.data(), dtype, dims);
    REQUIRE_OK(buffer);
    check_content<unsigned char>(buffer->get(), pattern);
  }
}

TEST(a_borrowed_array_is_given_back_once) {
  NEEDS_CLIENT();
  for (const Borrow borrow : {Borrow::kUntilTransferCompletes, Borrow::kZeroCopy}) {
    struct {
      std::mutex mutex;
      std::condition_variable changed;
      int calls = 0;
      bool ok = false;
    } state;
    alignas(64) std::array<float, 6> data = kCounting;
    {
      const Result<Buffer> buffer =
          host_to_device_borrowed(*client(), device(), data.data(), DType::kF32, kDims, {}, borrow,
                                  [&state](const Status& status) {
                                    const std::lock_guard lock(state.mutex);
                                    ++state.calls;
                                    state.ok = status.ok();
                                    state.changed.notify_all();
                                  });
      REQUIRE_OK(buffer);
      check_content<float>(buffer->get(), {0, 1, 2, 3, 4, 5});
    }
    std::unique_lock lock(state.mutex);
    CHECK(state.changed.wait_for(lock, std::chrono::seconds(20),
                                 [&state] { return state.calls > 0; }));
    CHECK_EQ(state.calls, 1);
    CHECK(state.ok);
  }
}

TEST(events_tell_when_they_are_ready) {
  NEEDS_CLIENT();
  const Result<Buffer> buffer =
      host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
  REQUIRE_OK(buffer);
  Result<Event> event = ready_event(client()->api(), buffer->get());
  REQUIRE_OK(event);
  CHECK(event->await().ok());
  CHECK(event->is_ready());
  bool called = false;
  CHECK(event->on_ready([&called](const Status& status) { called = status.ok(); }).ok());
  CHECK(called);
  Event moved = std::move(*event);
  CHECK(!*event);
  CHECK(event->is_ready());
  CHECK(moved.await().ok());
}

// ---- Programs ----

TEST(a_program_runs) {
  NEEDS_CLIENT();
  const Api& api = client()->api();
  const Result<Executable> program = compile(*client(), kAdd, {});
  REQUIRE_OK(program);
  CHECK_EQ(program->num_outputs(), 1);
  const Result<Buffer> a = host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
  const Result<Buffer> b =
      host_to_device(*client(), device(), kCounting.data(), DType::kF32, kDims);
  REQUIRE(a.ok() && b.ok());
  PJRT_Buffer* const args[] = {a->get(), b->get()};
  PJRT_Buffer* out = nullptr;
  REQUIRE_OK(program->execute(args, 2, &out));
  const Buffer result(api, out);
  CHECK(await_ready(api, out).ok());
  CHECK_EQ(*host_size(api, out), sizeof(kOnes));
  check_result(out, {1, 2, 3, 4, 5, 6});

  PJRT_Buffer* second = nullptr;
  const Result<Event> event = program->execute_with_event(args, 2, &second);
  REQUIRE_OK(event);
  CHECK(event->await().ok());
  check_result(second, {1, 2, 3, 4, 5, 6});
  destroy(api, second);
  destroy(api, nullptr);
}

TEST(a_wrong_number_of_arguments_is_an_error) {
  NEEDS_CLIENT();
  const Result<Executable> program = compile(*client(), kAdd, {});
  const Result<Buffer> a = host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
  REQUIRE(program.ok() && a.ok());
  PJRT_Buffer* const args[] = {a->get()};
  PJRT_Buffer* out = nullptr;
  CHECK_EQ(program->execute(args, 1, &out).code(), Code::kInvalidArgument);
  CHECK(out == nullptr);
}

TEST(results_have_their_own_types) {
  NEEDS_CLIENT();
  const Api& api = client()->api();
  const Result<Executable> program = compile(*client(), kTwoResults, {});
  REQUIRE_OK(program);
  CHECK_EQ(program->num_outputs(), 2);
  const Result<std::vector<OutputType>> types = program->info().output_types();
  REQUIRE_OK(types);
  CHECK_EQ((*types)[0].type, PJRT_Buffer_Type_PRED);
  CHECK_EQ((*types)[1].type, PJRT_Buffer_Type_S32);
  CHECK_EQ((*types)[1].dims, std::vector<int64_t>({4, 2}));
  const int64_t dims[] = {4};
  const Result<Buffer> a = host_to_device(*client(), device(), kOnes.data(), DType::kF32, dims);
  REQUIRE_OK(a);
  PJRT_Buffer* const args[] = {a->get()};
  PJRT_Buffer* outs[2] = {};
  REQUIRE_OK(program->execute(args, 1, outs));
  const Buffer first(api, outs[0]), second(api, outs[1]);
  CHECK_EQ(*element_type(api, outs[0]), PJRT_Buffer_Type_PRED);
  CHECK_EQ(*element_type(api, outs[1]), PJRT_Buffer_Type_S32);
  if (!executes()) return;
  check_content<unsigned char>(outs[0], {1, 1, 1, 1});
  check_content<int32_t>(outs[1], {0, 0, 1, 1, 2, 2, 3, 3});
}

TEST(donated_arguments_are_given_up_unless_kept) {
  NEEDS_CLIENT();
  const Api& api = client()->api();
  const Result<Executable> program = compile(*client(), kAddInPlace, {});
  REQUIRE_OK(program);
  const Result<Buffer> a = host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
  const Result<Buffer> b =
      host_to_device(*client(), device(), kCounting.data(), DType::kF32, kDims);
  REQUIRE(a.ok() && b.ok());
  PJRT_Buffer* const args[] = {a->get(), b->get()};
  PJRT_Buffer* out = nullptr;
  const int64_t kept[] = {0};
  REQUIRE_OK(program->execute(args, 2, &out, kept, 1));
  check_result(out, {1, 2, 3, 4, 5, 6});
  destroy(api, out);
  CHECK_EQ(*is_deleted(api, a->get()), false);

  REQUIRE_OK(program->execute(args, 2, &out));
  check_result(out, {1, 2, 3, 4, 5, 6});
  destroy(api, out);
  CHECK_EQ(*is_deleted(api, a->get()), true);
  CHECK_EQ(*is_deleted(api, b->get()), false);
  CHECK(!program->execute(args, 2, &out).ok());
  float values[6];
  CHECK(!device_to_host(api, a->get(), values, sizeof(values)).ok());
}

TEST(a_serialized_program_runs_again) {
  NEEDS_CLIENT();
  const Api& api = client()->api();
  std::string serialized;
  {
    const Result<Executable> program = compile(*client(), kAdd, {});
    REQUIRE_OK(program);
    Result<std::string> result = program->serialize();
    REQUIRE_OK(result);
    serialized = std::move(result).value();
  }
  CHECK(!serialized.empty());
  const Result<Executable> program = load(*client(), serialized);
  REQUIRE_OK(program);
  CHECK_EQ(program->num_outputs(), 1);
  const Result<Buffer> a = host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
  REQUIRE_OK(a);
  PJRT_Buffer* const args[] = {a->get(), a->get()};
  PJRT_Buffer* out = nullptr;
  REQUIRE_OK(program->execute(args, 2, &out));
  check_result(out, {2, 2, 2, 2, 2, 2});
  destroy(api, out);
  CHECK(!load(*client(), "not a program").ok());
}

TEST(a_program_knows_its_memory) {
  NEEDS_CLIENT();
  const Result<Executable> program = compile(*client(), kAddInPlace, {});
  REQUIRE_OK(program);
  const Result<ProgramMemory> memory = program->memory_stats();
  REQUIRE_OK(memory);
  CHECK(memory->argument >= static_cast<int64_t>(2 * sizeof(kOnes)));
  CHECK(memory->output >= static_cast<int64_t>(sizeof(kOnes)));
  CHECK(memory->temp >= 0);
  const Result<std::map<std::string, double>> cost = program->cost_analysis();
  REQUIRE_OK(cost);
  if (executes()) CHECK(cost->count("flops") == 1);
  const Result<std::string> fingerprint = program->fingerprint();
  if (fingerprint.ok()) CHECK(!fingerprint->empty());
}

TEST(a_bad_program_is_a_clean_error) {
  NEEDS_CLIENT();
  const Result<Executable> program = compile(*client(), "this is no program", {});
  CHECK(!program.ok());
  CHECK(!program.status().message().empty());
  CompileOptions options;
  options.num_replicas = 2;
  options.device_assignment = {0};
  CHECK_EQ(compile(*client(), kAdd, options).status().code(), Code::kInvalidArgument);
  options.num_replicas = 0;
  CHECK_EQ(compile(*client(), kAdd, options).status().code(), Code::kInvalidArgument);
}

TEST(threads_share_a_program) {
  NEEDS_CLIENT();
  constexpr int kThreads = 4;
  constexpr int kCalls = 200;
  const Api& api = client()->api();
  const Result<Executable> program = compile(*client(), kAdd, {});
  REQUIRE_OK(program);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Result<Buffer> sum =
          host_to_device(*client(), device(), kCounting.data(), DType::kF32, kDims);
      const Result<Buffer> one =
          host_to_device(*client(), device(), kOnes.data(), DType::kF32, kDims);
      for (int i = 0; i < kCalls && sum.ok() && one.ok(); ++i) {
        PJRT_Buffer* const args[] = {sum->get(), one->get()};
        PJRT_Buffer* out = nullptr;
        if (!program->execute(args, 2, &out).ok()) ++failures;
        *sum = Buffer(api, out);
      }
      std::array<float, 6> values = {};
      if (!sum.ok() || !device_to_host(api, sum->get(), values.data(), sizeof(values)).ok())
        ++failures;
      if (executes() && values[5] != kCounting[5] + kCalls) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failures.load(), 0);
}

TEST(a_portable_program_runs_on_any_device) {
  NEEDS_CLIENT();
  if (plugin()->is_libtpu()) SKIP("for plugins with virtual devices");
  ClientOptions client_options;
  client_options.cpu_device_count = 2;
  const Result<std::unique_ptr<Client>> two = Client::create(*plugin(), client_options);
  REQUIRE_OK(two);
  const Api& api = (*two)->api();
  const Device& second = (*two)->devices().at(1);
  CompileOptions options;
  options.compile_portable_executable = true;
  const Result<Executable> program = compile(**two, kAdd, options);
  REQUIRE_OK(program);
  const Result<Buffer> here =
      host_to_device(**two, (*two)->devices()[0], kCounting.data(), DType::kF32, kDims);
  REQUIRE_OK(here);
  const Result<Buffer> there = copy_to_device(api, here->get(), second);
  REQUIRE_OK(there);
  check_content<float>(there->get(), {0, 1, 2, 3, 4, 5});
  PJRT_Buffer* const args[] = {there->get(), there->get()};
  PJRT_Buffer* out = nullptr;
  REQUIRE_OK(program->execute(args, 2, &out, nullptr, 0, second.get()));
  check_result(out, {0, 2, 4, 6, 8, 10});
  PJRT_Buffer_Device_Args where = {};
  where.struct_size = PJRT_Buffer_Device_Args_STRUCT_SIZE;
  where.buffer = out;
  CHECK(to_status(api, api.PJRT_Buffer_Device(&where)).ok());
  CHECK(where.device == second.get());
  destroy(api, out);
}

// ---- Topologies ----

TEST(a_plugin_without_topologies_says_so) {
  if (has_topologies()) SKIP("the plugin has topologies");
  CHECK_EQ(Topology::create(*plugin(), "v5e:1x1").status().code(), Code::kUnimplemented);
}

TEST(a_topology_describes_its_devices) {
  NEEDS_TOPOLOGIES();
  const Result<Topology> topology = Topology::create(*plugin(), "v5e:2x2");
  REQUIRE_OK(topology);
  const Result<std::vector<DeviceDescription>> devices = topology->devices();
  REQUIRE_OK(devices);
  CHECK_EQ(devices->size(), 4);
  CHECK_EQ(devices->front().kind, std::string("TPU v5 lite"));
  CHECK(devices->front().coords.size() >= 2);
  CHECK(devices->front().coords != devices->back().coords);
  const Result<NamedValues> attributes = topology->attributes();
  REQUIRE_OK(attributes);
  CHECK(attributes->count("device_memory_bytes_limit") == 1);
  CHECK_EQ(*topology->platform_name(), std::string("tpu"));
  CHECK(!topology->platform_version()->empty());
  CHECK(!topology->serialize()->empty());
}

TEST(bad_topologies_are_clean_errors) {
  NEEDS_TOPOLOGIES();
  CHECK(!Topology::create(*plugin(), "v99:1x1").ok());
  CHECK(!Topology::create(*plugin(), "v5e:2x2", {{"bogus", int64_t{1}}}).ok());
  CHECK_EQ(Topology::create(*plugin(), "v5e:32x32").status().code(), Code::kInvalidArgument);
}

TEST(programs_compile_for_a_topology) {
  NEEDS_TOPOLOGIES();
  const Result<Topology> topology = Topology::create(*plugin(), "v5e:1x1");
  REQUIRE_OK(topology);
  const Result<UnloadedExecutable> program =
      compile_for_topology(*plugin(), *topology, kMatmul, {});
  REQUIRE_OK(program);
  CHECK_EQ(*program->num_outputs(), 1);
  const Result<std::vector<OutputType>> types = program->output_types();
  REQUIRE_OK(types);
  CHECK_EQ(types->front().dims, std::vector<int64_t>({256, 64}));
  const Result<ProgramMemory> memory = program->memory_stats();
  REQUIRE_OK(memory);
  CHECK(memory->argument >= (256 * 128 + 128 * 64) * 4);
  CHECK(memory->output >= 256 * 64 * 4);
  CHECK(memory->generated_code > 0);
  const Result<std::map<std::string, double>> cost = program->cost_analysis();
  REQUIRE_OK(cost);
  CHECK(cost->at("flops") >= 2.0 * 256 * 128 * 64);
  CHECK(!program->optimized_program()->empty());
  CHECK(!program->serialize()->empty());
  CHECK(!program->fingerprint()->empty());
}

TEST(bad_programs_for_a_topology_are_clean_errors) {
  NEEDS_TOPOLOGIES();
  const Result<Topology> topology = Topology::create(*plugin(), "v5e:1x1");
  REQUIRE_OK(topology);
  CHECK(!compile_for_topology(*plugin(), *topology, "this is no program", {}).ok());
  CompileOptions options;
  options.env_option_overrides["xla_no_such_option"] = true;
  CHECK_EQ(compile_for_topology(*plugin(), *topology, kAdd, options).status().code(),
           Code::kInvalidArgument);
  options.env_option_overrides.clear();
  options.env_option_overrides["xla_tpu_scoped_vmem_limit_kib"] = int64_t{65536};
  options.optimization_level = OptimizationLevel::kO2;
  REQUIRE_OK(compile_for_topology(*plugin(), *topology, kAdd, options));
}

// ---- libtpu, in a process of its own ----

TEST(the_suite_passes_on_libtpu) {
  const std::string libtpu = variable("TEST_LIBTPU");
  if (libtpu.empty() || libtpu == variable("TEST_PJRT_PLUGIN")) SKIP("TEST_LIBTPU is not set");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("TEST_PJRT_PLUGIN", libtpu.c_str(), 1);
    unsetenv("TEST_LIBTPU");
    execl("/proc/self/exe", "pjrt_test", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
