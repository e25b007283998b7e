// The test harness of every C++ test: TEST(name) { ... } registers a test, CHECK and CHECK_EQ
// record failures with their place, and check_main runs the tests whose name contains one of the
// arguments. Header-only, no torch.
#pragma once

#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch_tpu::check {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

// Failures and the skip reason of the test that is running.
struct State {
  int failures = 0;
  std::string skipped;
};

inline State& state() {
  static State current;
  return current;
}

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  ++state().failures;
  std::cerr << file << ":" << line << ": " << what << "\n";
}

template <typename T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    out << "[";
    const char* separator = "";
    for (const auto& item : value) {
      out << separator << show(item);
      separator = ", ";
    }
    out << "]";
  } else {
    out << "<" << sizeof(T) << "-byte value>";
  }
  return out.str();
}

template <typename A, typename B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <typename A, typename B>
void check_eq(const A& a, const B& b, const char* text, const char* file, int line) {
  if (equal(a, b)) return;
  fail(file, line, std::string(text) + ": " + show(a) + " is not " + show(b));
}

// Runs the registered tests; arguments are substrings of the names to run. Returns 1 when a test
// failed.
inline int check_main(int argc, char** argv) {
  int passed = 0, failed = 0, skipped = 0;
  for (const Test& test : tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) {
      wanted = wanted || std::string(test.name).find(argv[i]) != std::string::npos;
    }
    if (!wanted) continue;
    state() = State();
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name, 0, std::string("exception: ") + error.what());
    }
    if (state().failures > 0) {
      ++failed;
      std::cout << "FAILED " << test.name << "\n";
    } else if (!state().skipped.empty()) {
      ++skipped;
      std::cout << "skipped " << test.name << ": " << state().skipped << "\n";
    } else {
      ++passed;
    }
  }
  if (skipped > 0) std::cout << skipped << " skipped, ";
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed > 0 || passed + skipped == 0 ? 1 : 0;
}

}  // namespace torch_tpu::check

#define TEST(name)                                                                       \
  static void test_##name();                                                             \
  static const ::torch_tpu::check::Registration registration_##name(#name, test_##name); \
  static void test_##name()

// Records a failure and goes on with the test.
#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      ::torch_tpu::check::fail(__FILE__, __LINE__, "not so: " #condition); \
    }                                                                      \
  } while (false)

#define CHECK_EQ(a, b) ::torch_tpu::check::check_eq((a), (b), #a " == " #b, __FILE__, __LINE__)

// Records a failure and leaves the test: for conditions that what follows relies on.
#define REQUIRE(condition)                                                 \
  do {                                                                     \
    if (!(condition)) {                                                    \
      ::torch_tpu::check::fail(__FILE__, __LINE__, "not so: " #condition); \
      return;                                                              \
    }                                                                      \
  } while (false)

// Passes when the statement throws `exception` with `part` in its message.
#define CHECK_THROWS(statement, exception, part)                                                 \
  do {                                                                                           \
    bool thrown = false;                                                                         \
    try {                                                                                        \
      statement;                                                                                 \
    } catch (const exception& error) {                                                           \
      thrown = true;                                                                             \
      if (std::string(error.what()).find(part) == std::string::npos) {                           \
        ::torch_tpu::check::fail(__FILE__, __LINE__, std::string("message: ") + error.what());   \
      }                                                                                          \
    }                                                                                            \
    if (!thrown) {                                                                               \
      ::torch_tpu::check::fail(__FILE__, __LINE__, "did not throw " #exception ": " #statement); \
    }                                                                                            \
  } while (false)

// Leaves the test without a verdict; the reason is printed.
#define SKIP(reason)                                \
  do {                                              \
    ::torch_tpu::check::state().skipped = (reason); \
    return;                                         \
  } while (false)

#ifndef TORCH_TPU_CHECK_NO_MAIN
int main(int argc, char** argv) { return ::torch_tpu::check::check_main(argc, argv); }
#endif
