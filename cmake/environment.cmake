# What the Python environment gives the build: PyTorch's headers and libraries, and the PJRT C API header.
# Sets PJRT_INCLUDE_DIR, TORCH_TPU_CPU_PLUGIN and, with torch, the targets torch_headers and torch_libs.
if(TORCH_TPU_WITH_TORCH)
  find_package(Python 3.11 COMPONENTS Interpreter Development.Module REQUIRED)
else()
  find_package(Python 3.11 COMPONENTS Interpreter REQUIRED)
endif()

execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/locate.py
  OUTPUT_VARIABLE locations
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
list(GET locations 0 TORCH_DIR)
list(GET locations 1 TORCH_CXX11_ABI)
list(GET locations 2 PJRT_INCLUDE_DIR)
list(GET locations 3 TORCH_TPU_CPU_PLUGIN)

add_library(pjrt_c_api INTERFACE)
target_include_directories(pjrt_c_api SYSTEM INTERFACE ${PJRT_INCLUDE_DIR})

if(TORCH_TPU_WITH_TORCH)
  # PyTorch's own CMake package looks for much that we do not use; four paths are all we need. pybind11 is the copy
  # inside PyTorch's headers, so that both modules share one set of type records.
  add_library(torch_headers INTERFACE)
  target_include_directories(torch_headers SYSTEM INTERFACE
    ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include ${Python_INCLUDE_DIRS})
  target_compile_definitions(torch_headers INTERFACE
    _GLIBCXX_USE_CXX11_ABI=${TORCH_CXX11_ABI} TORCH_API_INCLUDE_EXTENSION_H TORCH_EXTENSION_NAME=_C)
  add_library(torch_libs INTERFACE)
  foreach(name torch torch_cpu c10 torch_python)
    target_link_libraries(torch_libs INTERFACE ${TORCH_DIR}/lib/lib${name}.so)
  endforeach()
endif()
