// A PJRT plugin that wraps the one named by FAULT_PLUGIN_WRAPS and fails on request. Until a
// fault_* function at the end of this file asks for something, every call passes through.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "pjrt_c_api.h"

namespace {

// What a failing call or event reports. Handed out as a PJRT_Error or PJRT_Event of our own.
struct Failure {
  PJRT_Error_Code code;
  std::string message;
};

enum class How {
  kRefused,   // the call fails and nothing has happened
  kConsumed,  // the call fails after it took the donated arguments
  kLater,     // the call succeeds; its results' events fail, and those of all that uses them
};

// Which of the coming calls of one kind fail.
struct Order {
  bool armed = false;
  int64_t nth = 0;    // counting those that match; 0: all of them
  std::string match;  // part of the program's text; empty: any program
  PJRT_Error_Code code = PJRT_Error_Code_INTERNAL;
  How how = How::kRefused;

  // Whether this call is to fail; counts it.
  bool strikes(std::string_view text) {
    if (!armed || text.find(match) == std::string_view::npos) return false;
    if (nth == 0) return true;
    if (--nth > 0) return false;
    armed = false;
    return true;
  }
};

constexpr auto kFailingCompile = std::chrono::milliseconds(30);

enum Truncate { kSerialized = 1, kLoaded = 2 };

const PJRT_Api* g_wrapped = nullptr;

struct State {
  std::mutex mutex;
  Order compile, execute;
  int64_t limit_bytes = -1, live_bytes = 0;
  int truncate = 0;
  std::unordered_map<PJRT_Buffer*, int64_t> sizes;
  std::unordered_map<PJRT_Buffer*, Failure> failed;  // How::kLater
  std::unordered_map<PJRT_LoadedExecutable*, std::string> texts;
  std::unordered_set<const void*> own;  // errors and events that the wrapped plugin does not know
};

State& state() {
  static auto* state = new State;
  return *state;
}

std::atomic<int64_t> g_compiles{0}, g_executes{0};
std::atomic<int> g_compile_ms{0}, g_execute_ms{0};

// Waits as long as it is asked to now: fault_clear() ends it.
void sleep_ms(const std::atomic<int>& ms) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(ms))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

template <typename Handle>
Handle* make_own(Failure failure) {
  auto* own = new Failure(std::move(failure));
  const std::lock_guard lock(state().mutex);
  state().own.insert(own);
  return reinterpret_cast<Handle*>(own);
}

PJRT_Error* fail(PJRT_Error_Code code, std::string message) {
  return make_own<PJRT_Error>({code, std::move(message)});
}

// The failure behind a handle of our own, or null.
const Failure* own_failure(const void* handle) {
  const std::lock_guard lock(state().mutex);
  return state().own.contains(handle) ? static_cast<const Failure*>(handle) : nullptr;
}

bool destroy_own(const void* handle) {
  {
    const std::lock_guard lock(state().mutex);
    if (state().own.erase(handle) == 0) return false;
  }
  delete static_cast<const Failure*>(handle);
  return true;
}

// ---- Errors and events: ours, or the wrapped plugin's ----

void error_destroy(PJRT_Error_Destroy_Args* args) {
  if (!destroy_own(args->error)) g_wrapped->PJRT_Error_Destroy(args);
}

void error_message(PJRT_Error_Message_Args* args) {
  const Failure* failure = own_failure(args->error);
  if (failure == nullptr) return g_wrapped->PJRT_Error_Message(args);
  args->message = failure->message.data();
  args->message_size = failure->message.size();
}

PJRT_Error* error_code(PJRT_Error_GetCode_Args* args) {
  const Failure* failure = own_failure(args->error);
  if (failure == nullptr) return g_wrapped->PJRT_Error_GetCode(args);
  args->code = failure->code;
  return nullptr;
}

PJRT_Error* event_destroy(PJRT_Event_Destroy_Args* args) {
  return destroy_own(args->event) ? nullptr : g_wrapped->PJRT_Event_Destroy(args);
}

PJRT_Error* event_is_ready(PJRT_Event_IsReady_Args* args) {
  if (own_failure(args->event) == nullptr) return g_wrapped->PJRT_Event_IsReady(args);
  args->is_ready = true;
  return nullptr;
}

PJRT_Error* event_error(PJRT_Event_Error_Args* args) {
  const Failure* failure = own_failure(args->event);
  return failure == nullptr ? g_wrapped->PJRT_Event_Error(args) : make_own<PJRT_Error>(*failure);
}

PJRT_Error* event_await(PJRT_Event_Await_Args* args) {
  const Failure* failure = own_failure(args->event);
  return failure == nullptr ? g_wrapped->PJRT_Event_Await(args) : make_own<PJRT_Error>(*failure);
}

PJRT_Error* event_on_ready(PJRT_Event_OnReady_Args* args) {
  const Failure* failure = own_failure(args->event);
  if (failure == nullptr) return g_wrapped->PJRT_Event_OnReady(args);
  args->callback(make_own<PJRT_Error>(*failure), args->user_arg);
  return nullptr;
}

// ---- Buffers: their bytes are counted ----

int64_t size_of(PJRT_Buffer* buffer) {
  PJRT_Buffer_OnDeviceSizeInBytes_Args args = {};
  args.struct_size = PJRT_Buffer_OnDeviceSizeInBytes_Args_STRUCT_SIZE;
  args.buffer = buffer;
  return g_wrapped->PJRT_Buffer_OnDeviceSizeInBytes(&args) == nullptr
             ? static_cast<int64_t>(args.on_device_size_in_bytes)
             : 0;
}

bool is_deleted(PJRT_Buffer* buffer) {
  PJRT_Buffer_IsDeleted_Args args = {};
  args.struct_size = PJRT_Buffer_IsDeleted_Args_STRUCT_SIZE;
  args.buffer = buffer;
  return g_wrapped->PJRT_Buffer_IsDeleted(&args) == nullptr && args.is_deleted;
}

void add(PJRT_Buffer* buffer) {
  const int64_t bytes = size_of(buffer);
  const std::lock_guard lock(state().mutex);
  state().sizes[buffer] = bytes;
  state().live_bytes += bytes;
}

void forget(PJRT_Buffer* buffer) {
  const std::lock_guard lock(state().mutex);
  state().failed.erase(buffer);
  const auto found = state().sizes.find(buffer);
  if (found == state().sizes.end()) return;
  state().live_bytes -= found->second;
  state().sizes.erase(found);
}

// The error of an allocation that would exceed the limit, or null.
PJRT_Error* check_limit(int64_t bytes) {
  int64_t live, limit;
  {
    const std::lock_guard lock(state().mutex);
    live = state().live_bytes;
    limit = state().limit_bytes;
  }
  if (limit < 0 || bytes == 0 || live + bytes <= limit) return nullptr;
  return fail(PJRT_Error_Code_RESOURCE_EXHAUSTED,
              "injected: out of memory allocating " + std::to_string(bytes) + " bytes; " +
                  std::to_string(live) + " of " + std::to_string(limit) + " are in use");
}

PJRT_Error* buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args* args) {
  // The size is known once the buffer is there; nobody has seen it yet.
  if (PJRT_Error* error = g_wrapped->PJRT_Client_BufferFromHostBuffer(args)) return error;
  PJRT_Error* error = check_limit(size_of(args->buffer));
  if (error == nullptr) {
    add(args->buffer);
    return nullptr;
  }
  PJRT_Event_Await_Args await = {};
  await.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  await.event = args->done_with_host_buffer;
  (void)g_wrapped->PJRT_Event_Await(&await);
  PJRT_Event_Destroy_Args done = {};
  done.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
  done.event = args->done_with_host_buffer;
  (void)g_wrapped->PJRT_Event_Destroy(&done);
  PJRT_Buffer_Destroy_Args destroy = {};
  destroy.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE;
  destroy.buffer = args->buffer;
  (void)g_wrapped->PJRT_Buffer_Destroy(&destroy);
  return error;
}

PJRT_Error* buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args* args) {
  if (PJRT_Error* error = check_limit(size_of(args->buffer))) return error;
  PJRT_Error* error = g_wrapped->PJRT_Buffer_CopyToDevice(args);
  if (error == nullptr) add(args->dst_buffer);
  return error;
}

PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args* args) {
  forget(args->buffer);
  return g_wrapped->PJRT_Buffer_Destroy(args);
}

PJRT_Error* buffer_ready_event(PJRT_Buffer_ReadyEvent_Args* args) {
  std::unique_lock lock(state().mutex);
  const auto failed = state().failed.find(args->buffer);
  if (failed == state().failed.end()) {
    lock.unlock();
    return g_wrapped->PJRT_Buffer_ReadyEvent(args);
  }
  Failure failure = failed->second;
  lock.unlock();
  args->event = make_own<PJRT_Event>(std::move(failure));
  return nullptr;
}

PJRT_Error* buffer_to_host(PJRT_Buffer_ToHostBuffer_Args* args) {
  std::unique_lock lock(state().mutex);
  const auto failed = state().failed.find(args->src);
  if (failed == state().failed.end()) {
    lock.unlock();
    return g_wrapped->PJRT_Buffer_ToHostBuffer(args);
  }
  Failure failure = failed->second;
  lock.unlock();
  return make_own<PJRT_Error>(std::move(failure));
}

// ---- Programs ----

PJRT_Error* client_compile(PJRT_Client_Compile_Args* args) {
  ++g_compiles;
  sleep_ms(g_compile_ms);
  const std::string text(args->program->code, args->program->code_size);
  std::unique_lock lock(state().mutex);
  const bool strikes = state().compile.strikes(text);
  const PJRT_Error_Code code = state().compile.code;
  lock.unlock();
  if (strikes) {
    std::this_thread::sleep_for(
        kFailingCompile);  // as a real one would: the call that wanted the program is over
    return fail(code, "injected: this compilation fails");
  }
  PJRT_Error* error = g_wrapped->PJRT_Client_Compile(args);
  if (error != nullptr) return error;
  lock.lock();
  state().texts[args->executable] = text;
  return nullptr;
}

PJRT_Error* loaded_destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  {
    const std::lock_guard lock(state().mutex);
    state().texts.erase(args->executable);
  }
  return g_wrapped->PJRT_LoadedExecutable_Destroy(args);
}

// Bytes that a call of the program takes in addition to those of its arguments.
int64_t new_bytes(PJRT_LoadedExecutable* loaded, bool donates) {
  PJRT_LoadedExecutable_GetExecutable_Args get = {};
  get.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
  get.loaded_executable = loaded;
  if (g_wrapped->PJRT_LoadedExecutable_GetExecutable(&get) != nullptr) return 0;
  PJRT_Executable_GetCompiledMemoryStats_Args stats = {};
  stats.struct_size = PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE;
  stats.executable = get.executable;
  const bool known = g_wrapped->PJRT_Executable_GetCompiledMemoryStats(&stats) == nullptr;
  PJRT_Executable_Destroy_Args destroy = {};
  destroy.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
  destroy.executable = get.executable;
  (void)g_wrapped->PJRT_Executable_Destroy(&destroy);
  if (!known) return 0;
  return stats.output_size_in_bytes - (donates ? stats.alias_size_in_bytes : 0);
}

size_t count_outputs(PJRT_LoadedExecutable* loaded) {
  PJRT_LoadedExecutable_GetExecutable_Args get = {};
  get.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
  get.loaded_executable = loaded;
  if (g_wrapped->PJRT_LoadedExecutable_GetExecutable(&get) != nullptr) return 0;
  PJRT_Executable_NumOutputs_Args count = {};
  count.struct_size = PJRT_Executable_NumOutputs_Args_STRUCT_SIZE;
  count.executable = get.executable;
  (void)g_wrapped->PJRT_Executable_NumOutputs(&count);
  PJRT_Executable_Destroy_Args destroy = {};
  destroy.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
  destroy.executable = get.executable;
  (void)g_wrapped->PJRT_Executable_Destroy(&destroy);
  return count.num_outputs;
}

// Takes back what a call gave that is to fail after all.
void drop_results(PJRT_LoadedExecutable_Execute_Args* args, size_t outputs) {
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t i = 0; i < outputs; ++i) {
      PJRT_Buffer_Destroy_Args destroy = {};
      destroy.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE;
      destroy.buffer = args->output_lists[d][i];
      (void)g_wrapped->PJRT_Buffer_Destroy(&destroy);
    }
    if (args->device_complete_events == nullptr) continue;
    PJRT_Event_Destroy_Args event = {};
    event.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
    event.event = args->device_complete_events[d];
    (void)g_wrapped->PJRT_Event_Destroy(&event);
  }
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) {
  ++g_executes;
  sleep_ms(g_execute_ms);
  std::unique_lock lock(state().mutex);
  const auto text = state().texts.find(args->executable);
  const bool strikes = state().execute.strikes(text == state().texts.end() ? "" : text->second);
  const How how = state().execute.how;
  const Failure failure{state().execute.code, "injected: this execution fails"};
  const bool limited = state().limit_bytes >= 0;
  std::unique_ptr<Failure> inherited;
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t i = 0; i < args->num_args; ++i) {
      const auto found = state().failed.find(args->argument_lists[d][i]);
      if (found != state().failed.end()) inherited = std::make_unique<Failure>(found->second);
    }
  }
  lock.unlock();
  if (strikes && how == How::kRefused) return make_own<PJRT_Error>(failure);
  if (limited) {
    const bool donates = args->options->num_non_donatable_input_indices == 0;
    if (PJRT_Error* error = check_limit(new_bytes(args->executable, donates))) return error;
  }
  if (PJRT_Error* error = g_wrapped->PJRT_LoadedExecutable_Execute(args)) return error;
  const size_t outputs = count_outputs(args->executable);
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t i = 0; i < args->num_args; ++i) {
      PJRT_Buffer* argument = args->argument_lists[d][i];
      if (is_deleted(argument)) forget(argument);
    }
  }
  if (strikes && how == How::kConsumed) {
    drop_results(args, outputs);
    return make_own<PJRT_Error>(failure);
  }
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t i = 0; i < outputs; ++i) {
      add(args->output_lists[d][i]);
      if (!strikes && inherited == nullptr) continue;
      lock.lock();
      state().failed.emplace(args->output_lists[d][i], strikes ? failure : *inherited);
      lock.unlock();
    }
  }
  return nullptr;
}

PJRT_Error* serialize(PJRT_Executable_Serialize_Args* args) {
  PJRT_Error* error = g_wrapped->PJRT_Executable_Serialize(args);
  const std::lock_guard lock(state().mutex);
  if (error == nullptr && (state().truncate & kSerialized) != 0) args->serialized_bytes_size /= 2;
  return error;
}

PJRT_Error* load(PJRT_Executable_DeserializeAndLoad_Args* args) {
  {
    const std::lock_guard lock(state().mutex);
    if ((state().truncate & kLoaded) != 0) args->serialized_executable_size /= 2;
  }
  return g_wrapped->PJRT_Executable_DeserializeAndLoad(args);
}

// ---- The plugin ----

PJRT_Error* refuse_initialize(PJRT_Plugin_Initialize_Args*) {
  return fail(PJRT_Error_Code_INTERNAL, "injected: the plugin does not start");
}
PJRT_Error* refuse_client(PJRT_Client_Create_Args*) {
  return fail(PJRT_Error_Code_UNAVAILABLE, "injected: there is no client");
}

const PJRT_Api* wrapped_api() {
  const char* path = std::getenv("FAULT_PLUGIN_WRAPS");
  if (path == nullptr) {
    std::fprintf(stderr, "FAULT_PLUGIN_WRAPS must name the plugin to wrap\n");
    return nullptr;
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  const auto get_api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  return get_api == nullptr ? nullptr : get_api();
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// FAULT_PLUGIN_BREAKS makes a plugin that cannot be used: "table" (none), "version" (another major
// version), "size" (a table that ends early), "initialize" or "client" (those calls fail).
EXPORT const PJRT_Api* GetPjrtApi() {
  static PJRT_Api api = {};
  if (g_wrapped != nullptr) return &api;
  const char* variable = std::getenv("FAULT_PLUGIN_BREAKS");
  const std::string_view breaks = variable == nullptr ? "" : variable;
  if (breaks == "table") return nullptr;
  g_wrapped = wrapped_api();
  if (g_wrapped == nullptr) return nullptr;
  const size_t size = std::min(g_wrapped->struct_size, sizeof api);
  std::memcpy(&api, g_wrapped, size);
  api.struct_size = size;
  api.PJRT_Error_Destroy = &error_destroy;
  api.PJRT_Error_Message = &error_message;
  api.PJRT_Error_GetCode = &error_code;
  api.PJRT_Event_Destroy = &event_destroy;
  api.PJRT_Event_IsReady = &event_is_ready;
  api.PJRT_Event_Error = &event_error;
  api.PJRT_Event_Await = &event_await;
  api.PJRT_Event_OnReady = &event_on_ready;
  api.PJRT_Client_BufferFromHostBuffer = &buffer_from_host;
  api.PJRT_Buffer_CopyToDevice = &buffer_copy_to_device;
  api.PJRT_Buffer_Destroy = &buffer_destroy;
  api.PJRT_Buffer_ReadyEvent = &buffer_ready_event;
  api.PJRT_Buffer_ToHostBuffer = &buffer_to_host;
  api.PJRT_Client_Compile = &client_compile;
  api.PJRT_LoadedExecutable_Destroy = &loaded_destroy;
  api.PJRT_LoadedExecutable_Execute = &execute;
  api.PJRT_Executable_Serialize = &serialize;
  api.PJRT_Executable_DeserializeAndLoad = &load;
  if (breaks == "version") api.pjrt_api_version.major_version += 1;
  if (breaks == "size") api.struct_size = offsetof(PJRT_Api, PJRT_Client_Compile);
  if (breaks == "initialize") api.PJRT_Plugin_Initialize = &refuse_initialize;
  if (breaks == "client") api.PJRT_Client_Create = &refuse_client;
  return &api;
}

// ---- What tests ask for; tests/faults/plugin.py calls these ----

// The `nth` coming compilation (1: the next; 0: all) of a program whose text contains `match` fails.
EXPORT void fault_compile(int64_t nth, const char* match, int code) {
  const std::lock_guard lock(state().mutex);
  state().compile = {true, nth, match, static_cast<PJRT_Error_Code>(code), How::kRefused};
}

// The same for executions of programs compiled in this process; `how` is a How.
EXPORT void fault_execute(int64_t nth, const char* match, int code, int how) {
  const std::lock_guard lock(state().mutex);
  state().execute = {true, nth, match, static_cast<PJRT_Error_Code>(code), static_cast<How>(how)};
}

// Buffers may take this many bytes at once; negative: any number.
EXPORT void fault_limit(int64_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().limit_bytes = bytes;
}

EXPORT void fault_delay(int compile_ms, int execute_ms) {
  g_compile_ms = compile_ms;
  g_execute_ms = execute_ms;
}

// Half of the bytes go missing when a program is serialised (1), loaded (2) or both (3).
EXPORT void fault_truncate(int where) {
  const std::lock_guard lock(state().mutex);
  state().truncate = where;
}

// Every call passes through again.
EXPORT void fault_clear() {
  fault_delay(0, 0);
  const std::lock_guard lock(state().mutex);
  state().compile.armed = state().execute.armed = false;
  state().limit_bytes = -1;
  state().truncate = 0;
}

EXPORT int64_t fault_live_bytes() {
  const std::lock_guard lock(state().mutex);
  return state().live_bytes;
}
EXPORT int64_t fault_compiles() { return g_compiles; }
EXPORT int64_t fault_executes() { return g_executes; }
