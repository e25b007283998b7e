#!/usr/bin/env bash
# Says in one sentence what the machine lacks for a build: a C++20 compiler, make, Python 3.11+ with headers and venv.
set -u
python=${1:-python3}

fail() {
  echo "TorchTPU needs $1" >&2
  exit 1
}

command -v make >/dev/null || fail "make (Debian: apt install make)."
compiler=${CXX:-$(command -v c++ || command -v g++ || command -v clang++)}
[ -n "$compiler" ] || fail "a C++ compiler (Debian: apt install g++)."
echo 'int main() { return []<typename T>(T value) { return value; }(0); }' |
  "$compiler" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null ||
  fail "a compiler that knows C++20 (g++ 11 or clang 14 and later); '$compiler' does not."
command -v "$python" >/dev/null || fail "Python 3.11 or later (Debian: apt install python3)."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "Python 3.11 or later; '$python' is $("$python" -V 2>&1)."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "Python's venv module (Debian: apt install python3-venv)."
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
  fail "Python's headers (Debian: apt install python3-dev)."
