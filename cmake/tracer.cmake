# montrace-bpf: the BPF program, its skeleton, and everything that needs libbpf.
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf>=1.3)
find_program(BPFTOOL bpftool HINTS /usr/sbin /sbin REQUIRED)
find_program(BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(MT_BPF_ARCH arm64)
else()
  set(MT_BPF_ARCH x86)
endif()

set(MT_BPF_OBJ ${MT_GEN}/montrace.bpf.o)
add_custom_command(
  OUTPUT ${MT_BPF_OBJ}
  COMMAND ${BPF_CLANG} -target bpf -O2 -g -Wall -Werror -D__TARGET_ARCH_${MT_BPF_ARCH}
    -I${PROJECT_SOURCE_DIR}/vmlinux -I${PROJECT_SOURCE_DIR}/bpf
    -c ${PROJECT_SOURCE_DIR}/bpf/montrace.bpf.c -o ${MT_BPF_OBJ}
  DEPENDS bpf/montrace.bpf.c bpf/foreign.h bpf/foreign_read.h bpf/foreign_test.h bpf/wire.h bpf/shared.h vmlinux/vmlinux.h
  VERBATIM)
add_custom_command(
  OUTPUT ${MT_GEN}/montrace.skel.h
  COMMAND ${BPFTOOL} gen skeleton ${MT_BPF_OBJ} name montrace_bpf > ${MT_GEN}/montrace.skel.h.tmp
  COMMAND ${CMAKE_COMMAND} -E rename ${MT_GEN}/montrace.skel.h.tmp ${MT_GEN}/montrace.skel.h
  DEPENDS ${MT_BPF_OBJ})

add_executable(montrace-bpf
  userspace/main.c userspace/options.c userspace/options_help.c userspace/options_value.c
  userspace/cmd_record.c userspace/record_tell.c userspace/cmd_files.c
  userspace/session.c userspace/session_open.c userspace/session_feed.c userspace/session_targets.c userspace/watch.c
  userspace/attach.c userspace/attach_arm.c userspace/attach_foreign.c userspace/features.c
  userspace/record_usdt.c userspace/session_foreign.c
  userspace/record_flight.c userspace/record_snapshot.c userspace/record_crash.c userspace/record_answer.c userspace/record_stacks.c
  userspace/cmd_control.c userspace/cmd_stacks.c
  ${MT_GEN}/montrace.skel.h)
target_link_libraries(montrace-bpf PRIVATE montrace_core PkgConfig::LIBBPF PkgConfig::ELF pthread)
