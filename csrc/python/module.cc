// torch_tpu._C: bindings only. Nothing here takes the engine's mutex while holding Python's lock.
#include <torch/csrc/Generator.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/extension.h>

#include "aten/fallback.h"
#include "aten/kernel.h"
#include "aten/register.h"
#include "aten/storage.h"
#include "aten/sync_debug.h"
#include "device/current.h"
#include "device/generator.h"
#include "device/hooks.h"
#include "engine/client.h"
#include "engine/compile_options.h"
#include "engine/diagnostics.h"
#include "engine/disk_cache.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/recorder.h"
#include "lowering/table.h"
#include "python/frames.h"
#include "python/memory.h"

namespace py = pybind11;

namespace torch_tpu {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;

int resolve(int device) { return device < 0 ? device::current_device() : device; }

// Runs Python's decomposition of `op` on the arguments on the stack.
bool decompose(const py::object& callable, const c10::OperatorHandle& op,
               torch::jit::Stack* stack) {
  const py::gil_scoped_acquire gil;
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  py::list args;
  py::dict kwargs;
  for (size_t i = 0; i < count; ++i) {
    const auto& argument = schema.arguments()[i];
    py::object value = torch::jit::toPyObject((*stack)[stack->size() - count + i]);
    if (argument.kwarg_only()) {
      kwargs[argument.name().c_str()] = value;
    } else {
      args.append(value);
    }
  }
  const std::string name =
      schema.name() +
      (schema.overload_name().empty() ? std::string() : "." + schema.overload_name());
  py::object result;
  try {
    result = callable(name, py::tuple(args), kwargs);
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_LookupError)) return false;
    throw;
  }
  torch::jit::drop(*stack, count);
  const auto& returns = schema.returns();
  if (returns.size() == 1) {
    stack->push_back(torch::jit::toIValue(result, returns[0].type()));
  } else {
    const auto values = result.cast<py::sequence>();
    for (size_t i = 0; i < returns.size(); ++i) {
      stack->push_back(torch::jit::toIValue(values[i], returns[i].type()));
    }
  }
  return true;
}

void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void warn(const std::string& message) {
  const py::gil_scoped_acquire gil;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) != 0) throw py::error_already_set();
}

py::dict compile_stats() {
  engine::CompileStats stats;
  if (engine::client_started()) {
    const py::gil_scoped_release release;
    stats = engine::ProgramCache::get().stats();
  }
  py::dict out;
  out["compilations"] = stats.compilations;
  out["cache_hits"] = stats.cache_hits;
  out["disk_hits"] = stats.disk_hits;
  out["disk_errors"] = stats.disk_errors;
  out["compile_seconds"] = stats.compile_seconds;
  out["executions"] = stats.executions;
  out["fallbacks"] = stats.fallbacks;
  return out;
}

py::dict device_properties(int device) {
  const auto& chosen = engine::client().devices().at(static_cast<size_t>(resolve(device)));
  py::dict out;
  out["name"] = chosen.kind();
  out["id"] = chosen.id();
  out["process_index"] = chosen.process_index();
  out["total_memory"] = engine::device_memory_bytes(resolve(device));
  return out;
}

py::list operator_table() {
  constexpr const char* kInfer[] = {"composite", "pointwise", "compare", "like_first", "lowering"};
  constexpr const char* kTolerance[] = {"exact",     "elementwise", "transcendental",
                                        "reduction", "contraction", "random"};
  py::list rows;
  for (const lowering::OpRow& row : lowering::operator_table()) {
    py::dict out;
    out["name"] = std::string(row.name);
    out["statics"] = std::string(row.statics);
    out["infer"] = kInfer[static_cast<int>(row.infer)];
    out["tolerance"] = kTolerance[static_cast<int>(row.tolerance)];
    out["writes"] = std::string(row.writes);
    out["random"] = row.random;
    rows.append(out);
  }
  return rows;
}

py::dict fusion_stats() {
  engine::FusionStats stats;
  {
    const py::gil_scoped_release release;
    std::lock_guard lock(engine::engine_mutex());
    stats = engine::fusion_stats();
  }
  constexpr const char* kReasons[] = {"host_read", "synchronize", "other_mode", "length",
                                      "bytes",     "memory",      "user",       "idle"};
  py::dict out, flushes;
  for (size_t i = 0; i < stats.flushes.size(); ++i) flushes[kReasons[i]] = stats.flushes[i];
  out["flushes"] = flushes;
  out["operators"] = stats.calls;
  out["groups"] = stats.groups;
  out["fused_groups"] = stats.fused;
  out["different_groups"] = stats.compiled_groups;
  out["values_kept_out"] = stats.values_kept_out;
  out["bytes_kept_out"] = stats.bytes_kept_out;
  return out;
}

PYBIND11_MODULE(_C, m) {
  device::register_hooks(&aten::resize_storage);
  aten::register_operators();
  engine::set_interrupt_check(&check_signals);
  aten::set_warner(&warn);
  engine::set_location_source({&python::user_line, &python::backward_origin});

  m.def("initialize", [](const std::map<std::string, std::string>& candidates) {
    const auto get = [&](const char* key) {
      const auto found = candidates.find(key);
      return found == candidates.end() ? std::string() : found->second;
    };
    engine::set_plugin_candidates({get("libtpu_path"), get("cpu_path")});
  });
  m.def("set_startup_error", &engine::set_startup_error);
  m.def("start", [] { engine::client(); }, NoGil());
  m.def("is_initialized", &engine::client_started);
  m.def("is_in_bad_fork", &engine::in_bad_fork);
  m.def("platform", [] { return engine::client().platform_name(); }, NoGil());
  m.def("platform_version", [] { return engine::client().platform_version(); }, NoGil());
  m.def("device_count", &engine::device_count, NoGil());
  m.def("current_device", &device::current_device);
  m.def("set_device", [](int index) { device::set_current_device(index); });
  m.def("exchange_device", [](int index) {
    return index < 0 ? device::current_device() : device::set_current_device(index);
  });
  m.def(
      "synchronize", [](int index) { engine::synchronize(resolve(index)); }, py::arg("device") = -1,
      NoGil());
  m.def("shutdown", &engine::shutdown, NoGil());
  m.def("device_properties", &device_properties);

  m.def("get_eager_mode", [] { return static_cast<int>(engine::eager_mode()); });
  m.def("set_process_eager_mode",
        [](int mode) { engine::set_process_eager_mode(static_cast<engine::EagerMode>(mode)); });
  m.def("set_thread_eager_mode", &engine::set_thread_eager_mode);
  m.def("compile_stats", &compile_stats);
  m.def(
      "reset_compile_stats",
      [] {
        if (engine::client_started()) engine::ProgramCache::get().reset_stats();
      },
      NoGil());
  m.def("set_thread_anomalies", &engine::set_thread_anomalies);
  m.def("set_no_compile_expected", &engine::set_no_compile_expected);
  m.def("tracebacks", &engine::tracebacks);
  m.def("set_tracebacks", &engine::set_tracebacks);
  m.def("fusion_stats", &fusion_stats);
  m.def(
      "reset_fusion_stats",
      [] {
        std::lock_guard lock(engine::engine_mutex());
        engine::reset_fusion_stats();
      },
      NoGil());
  m.def(
      "flush",
      [] {
        std::lock_guard lock(engine::engine_mutex());
        engine::flush(engine::FlushReason::kUser);
      },
      NoGil());
  m.def(
      "pending",
      [] {
        std::lock_guard lock(engine::engine_mutex());
        return engine::recorded();
      },
      NoGil());
  m.def(
      "is_materialized",
      [](const at::Tensor& tensor) {
        std::lock_guard lock(engine::engine_mutex());
        const engine::Slot* slot = engine::slot_of(tensor.storage().data_ptr());
        return slot == nullptr || !slot->value ||
               slot->value->state != engine::ArrayState::kRecorded;
      },
      NoGil());
  m.def("disk_cache_settings", [] {
    const engine::DiskCacheSettings settings = engine::disk_cache_settings();
    return std::pair(settings.directory, settings.limit_bytes);
  });
  m.def("intern_user_options", &engine::intern_user_options, NoGil());
  m.def("user_options", &engine::user_options);
  m.def("set_process_user_options", &engine::set_process_user_options);
  m.def("set_thread_user_options", &engine::set_thread_user_options);
  m.def("set_sync_debug_mode",
        [](int mode) { aten::set_sync_debug_mode(static_cast<aten::SyncDebugMode>(mode)); });
  m.def("sync_debug_mode", [] { return static_cast<int>(aten::sync_debug_mode()); });
  m.def("cpu_fallback_enabled", &aten::cpu_fallback_enabled);
  m.def("set_cpu_fallback", &aten::set_cpu_fallback);

  bind_memory(m);
  m.def("empty_cache", [] {});
  m.def("default_generator", [](int index) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_Wrap(device::default_generator(resolve(index))));
  });
  m.def("set_decomposer", [](py::object callable) {
    // Kept for the life of the process: it may be called while the interpreter is ending.
    auto* kept = new py::object(std::move(callable));
    aten::set_decomposer([kept](const c10::OperatorHandle& op, torch::jit::Stack* stack) {
      return decompose(*kept, op, stack);
    });
  });
  m.def("operator_table", &operator_table);
}

}  // namespace
}  // namespace torch_tpu
