// Compiles programs for devices that are not there: aot_compile PLUGIN TOPOLOGY FILE... prints one
// line a file, "FILE<tab>OK<tab>SECONDS" or "FILE<tab>the compiler's error". "START<tab>FILE" goes
// before each, so that a caller can tell which program ended the process.
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "pjrt/executable.h"
#include "pjrt/topology.h"

namespace {

using namespace torch_tpu::pjrt;  // NOLINT: the subject of the tool

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return text;
}

void compile_file(const Plugin& plugin, const Topology& topology, const std::string& path) {
  std::cout << "START\t" << path << std::endl;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::cout << path << '\t';
  if (!file || text.empty()) {
    std::cout << "cannot be read" << std::endl;
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = compile_for_topology(plugin, topology, text, CompileOptions{});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (compiled.ok()) {
    std::cout << "OK\t" << seconds << std::endl;
  } else {
    std::cout << one_line(compiled.status().str()) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: aot_compile PLUGIN TOPOLOGY FILE...\n";
    return 2;
  }
  const auto plugin = Plugin::load(argv[1]);
  if (!plugin.ok()) {
    std::cerr << plugin.status().str() << "\n";
    return 1;
  }
  const auto topology = Topology::create(**plugin, argv[2]);
  if (!topology.ok()) {
    std::cerr << topology.status().str() << "\n";
    return 1;
  }
  for (int i = 3; i < argc; ++i) compile_file(**plugin, *topology, argv[i]);
  return 0;
}
