# hf_add_library(NAME SOURCES file… DEPS target…): one layer of the house.
# hf_add_test(NAME FILES file… [DEPS target…] [RANKS 1 2 4] [LABEL unit|mpi|e2e] [TIMEOUT seconds] [ARGS …]):
#   one executable and one ctest entry, or one entry per rank count (NAME_npK) where RANKS is given.
# hf_add_benchmark(NAME FILES file… DEPS target…): a Google Benchmark program.

add_library(hf_flags INTERFACE)
target_include_directories(hf_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_options(hf_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-restrict
  -Wno-missing-field-initializers)  # -Wrestrict: false positives in GCC 12
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND HF_ARCH)
  target_compile_options(hf_flags INTERFACE -march=${HF_ARCH})
endif()
if(HF_WERROR)
  target_compile_options(hf_flags INTERFACE -Werror)
endif()
if(HF_SANITIZE)
  target_compile_options(hf_flags INTERFACE -fsanitize=${HF_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(hf_flags INTERFACE -fsanitize=${HF_SANITIZE})
  if(HF_SANITIZE STREQUAL "thread")
    target_compile_options(hf_flags INTERFACE -Wno-tsan)  # fences are not modelled; what they order is published by atomics
  endif()
  if(HF_SANITIZE STREQUAL "address")
    target_compile_options(hf_flags INTERFACE -fsanitize=undefined -fno-sanitize-recover=undefined)
    target_link_options(hf_flags INTERFACE -fsanitize=undefined)
  endif()
endif()

function(hf_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC hf_flags ${arg_DEPS})
endfunction()

# All ranks on one machine: no TCP between them; one thread a rank.
function(hf_mpi_test_properties test ranks label timeout)
  set_tests_properties(${test} PROPERTIES
    LABELS ${label} TIMEOUT ${timeout} PROCESSORS ${ranks} SKIP_RETURN_CODE 77
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_btl=self,sm;OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1")
endfunction()

function(hf_add_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "FILES;DEPS;RANKS;ARGS" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_FILES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE hf_flags ${arg_DEPS})
  if(NOT arg_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
    return()
  endif()
  # An MPI test has its own main (tests/mpi_main.cpp): MPI_Init, a listener that prints on rank 0, agreement on failure.
  target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/mpi_main.cpp)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock hf_comm)
  foreach(ranks ${arg_RANKS})
    add_test(NAME ${name}_np${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} -np ${ranks} --map-by :OVERSUBSCRIBE --bind-to none
                     $<TARGET_FILE:${name}> ${arg_ARGS}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    hf_mpi_test_properties(${name}_np${ranks} ${ranks} ${arg_LABEL} ${arg_TIMEOUT})
  endforeach()
endfunction()

function(hf_add_benchmark name)
  cmake_parse_arguments(arg "" "" "FILES;DEPS" ${ARGN})
  if(HF_BENCHMARKS)
    add_executable(${name} ${arg_FILES})
    target_link_libraries(${name} PRIVATE hf_flags ${arg_DEPS} benchmark::benchmark)
  endif()
endfunction()
