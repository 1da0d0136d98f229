# Unit tests (tests/unit/test_*.c, one program each), fuzz targets (tests/fuzz/fuzz_*.c) and benches
# (tests/bench/bench_*.c). They link montrace_core and need neither root nor libbpf.
#
#   ctest -L unit      unit tests
#   ctest -L docs      --help, man page and README agree (only with MT_BPF)
#   ctest -L fuzz      a few thousand runs of each fuzz target (only with MT_FUZZ)

# What tests share: the check sink, and modules that are plain C but belong to the tracer.
set(mt_shared tests/check_sink.c)
get_target_property(mt_core_sources montrace_core SOURCES)
if(NOT "userspace/options.c" IN_LIST mt_core_sources)
  list(APPEND mt_shared userspace/options.c userspace/options_help.c userspace/options_value.c)
endif()
add_library(mt_test_support STATIC ${mt_shared})
target_include_directories(mt_test_support PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(mt_test_support PUBLIC montrace_core)
target_compile_definitions(mt_test_support PUBLIC MT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

function(mt_add_test_program name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE mt_test_support m pthread)
endfunction()

find_package(Python3 COMPONENTS Interpreter)

if(MT_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MT_FUZZ needs clang: -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # All code is instrumented; only the fuzz targets get libFuzzer's main.
  target_compile_options(mt_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(mt_flags INTERFACE -fsanitize=address,undefined)
  file(GLOB mt_fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
  foreach(source IN LISTS mt_fuzz_sources)
    cmake_path(GET source STEM name)
    mt_add_test_program(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    add_test(NAME fuzz.${name} COMMAND ${name} -runs=5000 -seed=1 -timeout=10)
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  endforeach()
  return()
endif()

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(CMOCKA_FOUND)
  file(GLOB mt_unit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/test_*.c)
  foreach(source IN LISTS mt_unit_sources)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "^test_" "" module ${name})
    mt_add_test_program(${name} ${source})
    target_link_libraries(${name} PRIVATE PkgConfig::CMOCKA)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
    add_test(NAME unit.${module} COMMAND ${name})
    set_tests_properties(unit.${module} PROPERTIES LABELS unit TIMEOUT 300)
  endforeach()
else()
  message(STATUS "cmocka not found (libcmocka-dev): unit tests are not built")
endif()

if(Python3_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/tests/check_trace.py)
  add_test(NAME unit.check_trace COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/check_trace.py --self-test)
  set_tests_properties(unit.check_trace PROPERTIES LABELS unit TIMEOUT 300)
endif()
if(Python3_FOUND AND MT_BPF)
  add_test(NAME docs.options COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/docs/check.py
    $<TARGET_FILE:montrace-bpf>)
  set_tests_properties(docs.options PROPERTIES LABELS docs TIMEOUT 60)
endif()

# What is measured under a sanitizer says nothing.
if(NOT MT_SANITIZE)
  file(GLOB mt_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/bench/bench_*.c)
  foreach(source IN LISTS mt_bench_sources)
    cmake_path(GET source STEM name)
    mt_add_test_program(${name} ${source})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  endforeach()
endif()
