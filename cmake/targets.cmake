# How our own targets are made: warnings as errors, sanitizers, ccache, and the precompiled PyTorch header.
include_directories(${CMAKE_SOURCE_DIR}/csrc)
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers)  # the rest have defaults
if(TORCH_TPU_SANITIZE)
  add_compile_options(
    -fsanitize=${TORCH_TPU_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TORCH_TPU_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The sloppiness is what ccache's manual asks for with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

# tt_library(<name> [links...]): a static library of every *.cc beside the calling CMakeLists.txt.
function(tt_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${ARGN})
endfunction()

# tt_torch_target(<target>): the target may include PyTorch; its headers are compiled once for all such targets.
function(tt_torch_target target)
  target_link_libraries(${target} PUBLIC torch_headers)
  # GCC 12 takes c10::SmallVector's inline storage for uninitialised.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess;-Wno-maybe-uninitialized>)
  target_precompile_headers(${target} REUSE_FROM tt_torch_pch)
endfunction()
