# Programs to be traced: examples/ and targets of tests. Output in build/examples/.
find_package(Threads REQUIRED)
add_custom_target(mt_examples)

function(mt_example name source)
  add_executable(mt_example_${name} ${PROJECT_SOURCE_DIR}/examples/${source})
  set_target_properties(mt_example_${name} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_compile_options(mt_example_${name} PRIVATE -Wall -Wextra -Wshadow ${ARGN})
  target_include_directories(mt_example_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(mt_example_${name} PRIVATE Threads::Threads m)
  add_dependencies(mt_examples mt_example_${name})
endfunction()

mt_example(hello hello.c)
mt_example(service service.c)
mt_example(service_cpp service.cpp)
mt_example(stress stress.c)
mt_example(many many.c -O0) # 5,000 callsites: optimising them takes long and gives nothing
