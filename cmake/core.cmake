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
  userspace/cmd_dump.c
  userspace/cmd_dump_json.c
  userspace/cmd_list.c
  userspace/cmd_list_foreign.c
  userspace/cmd_list_json.c
  userspace/cmd_merge.c
  userspace/cmd_summary.c
  userspace/cmd_summary_out.c
  userspace/decode.c
  userspace/flight.c
  userspace/flight_codec.c
  userspace/flight_counter.c
  userspace/flight_dump.c
  userspace/flight_keyed.c
  userspace/flight_log.c
  userspace/flight_replay.c
  userspace/flight_spec.c
  userspace/flight_table.c
  userspace/recordings.c
  userspace/recordings_table.c
  userspace/recordings_text.c
  userspace/recordings_view.c
  userspace/trigger.c
  userspace/trigger_parse.c
  userspace/trigger_watch.c
  userspace/control.c
  userspace/control_client.c
  userspace/control_conn.c
  userspace/control_dir.c
  userspace/control_req.c
  userspace/control_tail.c
  userspace/tee.c
  userspace/elfnotes.c
  userspace/elfnotes_elf.c
  userspace/elfnotes_foreign.c
  userspace/elfnotes_iter.c
  userspace/elfnotes_native.c
  userspace/elfsyms.c
  userspace/filter.c
  userspace/glob.c
  userspace/log.c
  userspace/merge_copy.c
  userspace/merge_files.c
  userspace/merge_head.c
  userspace/merge_out.c
  userspace/merge_packet.c
  userspace/merge_plan.c
  userspace/merge_scan.c
  userspace/model.c
  userspace/names.c
  userspace/out.c
  userspace/pftrace.c
  userspace/pftrace_ann.c
  userspace/pftrace_event.c
  userspace/pftrace_head.c
  userspace/pftrace_intern.c
  userspace/pftrace_lane.c
  userspace/pftrace_life.c
  userspace/pftrace_loss.c
  userspace/pftrace_track.c
  userspace/procinfo.c
  userspace/procinfo_list.c
  userspace/procinfo_maps.c
  userspace/ptread.c
  userspace/ptread_args.c
  userspace/ptread_clock.c
  userspace/ptread_event.c
  userspace/ptread_packet.c
  userspace/ptread_state.c
  userspace/ptread_track.c
  userspace/room.c
  userspace/spans.c
  userspace/spans_hit.c
  userspace/spans_keyed.c
  userspace/spans_life.c
  userspace/spans_part.c
  userspace/spans_span.c
  userspace/spans_stack.c
  userspace/spans_table.c
  userspace/strings.c
  userspace/timeline.c
  userspace/timeline_args.c
  userspace/timeline_text.c
  userspace/timeline_tree.c
  userspace/tracedir.c
  userspace/tracefiles.c
  userspace/tracefiles_file.c
  userspace/tracefiles_name.c
  userspace/tracedir_name.c
  userspace/tracedir_walk.c
  userspace/usdt_operand.c
  userspace/usdt_pair.c
  userspace/usdt_plan.c
  userspace/usdt_predicate.c
  userspace/usdt_profile.c
  userspace/usdt_regs.c
  userspace/usdt_site.c
  userspace/usdt_spec.c
  userspace/usdt_words.c
)
# Profiles of the source tree serve a program that is still where it was built.
set_source_files_properties(userspace/usdt_profile.c PROPERTIES COMPILE_DEFINITIONS
  "MT_SOURCE_PROFILES=\"${PROJECT_SOURCE_DIR}/profiles\";MT_BUILD_DIR=\"${PROJECT_BINARY_DIR}\"")
target_include_directories(montrace_core SYSTEM PUBLIC ${MT_GEN})
target_link_libraries(montrace_core PUBLIC mt_flags PkgConfig::PROTOBUF_C PkgConfig::ZLIB)
