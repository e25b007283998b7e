#include "engine/program.h"

#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "engine/client.h"
#include "engine/compile_options.h"
#include "engine/disk_cache.h"

namespace torch_tpu::engine {
namespace {

constexpr unsigned kMaxPoolThreads = 16;

unsigned pool_size() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    return std::clamp<unsigned>(static_cast<unsigned>(CPU_COUNT(&mask)), 1, kMaxPoolThreads);
  }
  return 1;
}

// With $TORCH_TPU_DUMP_DIR set, every program's text goes to <directory>/<key>.mlir, its operators on the first line.
void dump(const Program& program) {
  const char* directory = std::getenv("TORCH_TPU_DUMP_DIR");
  if (directory == nullptr || *directory == 0) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::ofstream file(std::filesystem::path(directory) / (program.key.hex() + ".mlir"));
  file << "// " << program.name << "\n" << program.text;
  if (!file.flush()) {
    TORCH_WARN_ONCE("torch.tpu: programs cannot be written to TORCH_TPU_DUMP_DIR=", directory);
  }
}

// Parameters that the text names nowhere but in its signature.
std::vector<size_t> unread_parameters(std::string_view text) {
  constexpr std::string_view kParameter = "%arg";
  std::vector<int> seen;
  for (size_t at = text.find(kParameter); at != std::string_view::npos;
       at = text.find(kParameter, at)) {
    size_t number = 0;
    for (at += kParameter.size(); at < text.size() && std::isdigit(text[at]) != 0; ++at)
      number = number * 10 + static_cast<size_t>(text[at] - '0');
    if (number >= seen.size()) seen.resize(number + 1);
    ++seen[number];
  }
  std::vector<size_t> unread;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == 1) unread.push_back(i);
  }
  return unread;
}

}  // namespace

struct ProgramCache::Impl {
  DiskCache disk;
  std::string environment = client().cache_key();

  mutable std::mutex mutex;
  std::condition_variable work;
  std::unordered_map<ir::Key, std::unique_ptr<Program>> programs;
  std::deque<Program*> waiting;
  std::vector<std::thread> pool;
  bool stopping = false;
  std::function<void()> listener;
  CompileStats stats;

  ir::Key key_of(const std::string& text, const ProgramTraits& traits) const {
    const std::string options = compile_options(traits).serialize();
    ir::KeyHasher hasher;
    hasher.add_bytes(text.data(), text.size());
    hasher.add_bytes(options.data(), options.size());
    hasher.add_bytes(environment.data(), environment.size());
    return hasher.finish();
  }

  // Loads or compiles; runs without the mutex.
  void build(Program& program) {
    dump(program);
    if (auto bytes = disk.read(program.key)) {
      if (auto loaded = pjrt::load(client(), *bytes); loaded.ok()) {
        finish(program, std::move(loaded).value(), /*from_disk=*/true, 0);
        return;
      }
      disk.remove(program.key);
      std::lock_guard lock(mutex);
      ++stats.disk_errors;
    }
    const auto start = std::chrono::steady_clock::now();
    auto compiled = pjrt::compile(client(), program.text, compile_options(program.traits));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!compiled.ok()) {
      program.error = {"tpu: the compiler refused the program of " + program.name + ": " +
                           compiled.status().str(),
                       compiled.status().code() == pjrt::Code::kResourceExhausted};
      if (std::getenv("TORCH_TPU_SHOW_PROGRAMS") != nullptr)
        program.error.message += "\n" + program.text;
      publish(program, Program::State::kFailed);
      return;
    }
    finish(program, std::move(compiled).value(), /*from_disk=*/false, seconds);
    if (disk.enabled()) {
      if (auto bytes = program.executable.serialize(); bytes.ok()) {
        std::lock_guard lock(write_mutex);
        disk.write(program.key, *bytes);
      }
    }
  }

  void finish(Program& program, pjrt::Executable executable, bool from_disk, double seconds) {
    program.executable = std::move(executable);
    if (auto needs = program.executable.memory_stats(); needs.ok())
      program.temp_bytes = needs->temp;
    static const bool log = std::getenv("TORCH_TPU_LOG_COMPILES") != nullptr;
    if (log) {
      std::fprintf(stderr, "torch.tpu: %s %s (%.0f ms)\n", from_disk ? "loaded" : "compiled",
                   program.name.c_str(), seconds * 1e3);
    }
    {
      std::lock_guard lock(mutex);
      if (from_disk) {
        ++stats.disk_hits;
      } else {
        ++stats.compilations;
        stats.compile_seconds += seconds;
      }
    }
    publish(program, Program::State::kReady);
  }

  void publish(Program& program, Program::State state) {
    if (state == Program::State::kReady && std::getenv("TORCH_TPU_SHOW_PROGRAMS") == nullptr)
      program.text = {};
    bool heard = false;
    {
      std::lock_guard lock(mutex);
      heard = !stopping;
      program.state.store(state, std::memory_order_release);
    }
    // At the end programs are built by the caller, under the lock that the listener takes.
    if (heard && listener) listener();
  }

  // On the pool, or at once where there is none any more.
  void schedule(Program& program, std::unique_lock<std::mutex>& lock) {
    if (stopping) {
      lock.unlock();
      build(program);
    } else {
      waiting.push_back(&program);
      work.notify_one();
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return stopping || !waiting.empty(); });
      if (waiting.empty()) return;
      Program* program = waiting.front();
      waiting.pop_front();
      lock.unlock();
      build(*program);
      lock.lock();
    }
  }

  std::mutex write_mutex;
};

ProgramCache::ProgramCache() : impl_(std::make_unique<Impl>()) {
  for (unsigned i = 0; i < pool_size(); ++i)
    impl_->pool.emplace_back([impl = impl_.get()] { impl->run(); });
}

ProgramCache& ProgramCache::get() {
  static auto* cache = new ProgramCache;  // outlives every thread
  return *cache;
}

Program* ProgramCache::obtain(std::string text, std::string name, std::vector<int64_t> donated,
                              ProgramTraits traits, bool may_compile) {
  const ir::Key key = impl_->key_of(text, traits);
  std::unique_lock lock(impl_->mutex);
  if (const auto found = impl_->programs.find(key); found != impl_->programs.end()) {
    return found->second.get();
  }
  if (!may_compile && !impl_->disk.contains(key)) return nullptr;
  auto& entry = impl_->programs[key];
  entry = std::make_unique<Program>();
  Program* program = entry.get();
  program->key = key;
  program->unread = unread_parameters(text);
  program->text = std::move(text);
  program->name = std::move(name);
  program->donated = std::move(donated);
  program->traits = traits;
  impl_->schedule(*program, lock);
  return program;
}

void ProgramCache::retry(Program& program) {
  std::unique_lock lock(impl_->mutex);
  if (program.state != Program::State::kFailed) return;
  program.error_used = false;
  program.state = Program::State::kCompiling;
  impl_->schedule(program, lock);
}

void ProgramCache::set_listener(std::function<void()> listener) {
  impl_->listener = std::move(listener);
}

void ProgramCache::shutdown() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work.notify_all();
  for (std::thread& thread : impl_->pool) thread.join();
  impl_->pool.clear();
}

CompileStats ProgramCache::stats() const {
  std::lock_guard lock(impl_->mutex);
  CompileStats stats = impl_->stats;
  stats.cache_hits = hits_;
  stats.executions = executions_;
  stats.fallbacks = fallbacks_;
  return stats;
}

void ProgramCache::reset_stats() {
  std::lock_guard lock(impl_->mutex);
  impl_->stats = {};
  hits_ = executions_ = fallbacks_ = 0;
}

}  // namespace torch_tpu::engine
