// What the null plugin knows of a program: the types in the signature of its main function, and its
// donations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pjrt_c_api.h"

namespace null_plugin {

struct Shape {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;  // the bound where a dimension is bounded
  size_t size = 0;            // bytes
};

struct Program {
  // The output takes over the memory of the argument (tf.aliasing_output).
  struct Donation {
    size_t argument;
    size_t output;
  };

  std::string text;
  std::vector<Shape> arguments;
  std::vector<Shape> outputs;
  std::vector<Donation> donations;
  std::string fingerprint;
  // The outputs once more, as the C API hands them out.
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
};

// Bytes of one element; 0 for a type the null plugin does not know.
size_t element_size(PJRT_Buffer_Type type);

// Reads the signature of `func.func public @main` in StableHLO text. Returns null and sets
// `problem` where it cannot.
std::shared_ptr<const Program> parse_program(std::string text, std::string* problem);

}  // namespace null_plugin
