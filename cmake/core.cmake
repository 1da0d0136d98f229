# montrace_core links protobuf-c, zlib and libc only: the linker keeps libbpf and root out of it.
find_program(PROTOC_C NAMES protoc-c protoc REQUIRED)
set(MT_GEN ${PROJECT_BINARY_DIR}/gen)
file(MAKE_DIRECTORY ${MT_GEN})
add_custom_command(
  OUTPUT ${MT_GEN}/perfetto.pb-c.c ${MT_GEN}/perfetto.pb-c.h
  COMMAND ${PROTOC_C} --c_out=${MT_GEN} -I ${PROJECT_SOURCE_DIR}/proto perfetto.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/proto/perfetto.proto
  VERBATIM)

add_library(montrace_core STATIC
  ${MT_GEN}/perfetto.pb-c.c
  userspace/strings.c
  userspace/elfnotes.c
  userspace/filter.c
  userspace/decode.c
  userspace/spans.c
  userspace/out.c
  userspace/pftrace.c
)
target_include_directories(montrace_core SYSTEM PUBLIC ${MT_GEN})
target_link_libraries(montrace_core PUBLIC mt_flags PkgConfig::PROTOBUF_C PkgConfig::ZLIB)
