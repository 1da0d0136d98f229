# What `cmake --install` puts where:
#   bin/montrace-bpf, include/montrace.h, share/man/man1, share/doc/montrace-bpf (documents, examples),
#   share/montrace/profiles,
#   share/pkgconfig/montrace.pc and share/cmake/montrace: the header for programs that get probes.
# Paths in the last two are relative to themselves, so the prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET montrace-bpf)
  install(TARGETS montrace-bpf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES include/montrace.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES docs/montrace-bpf.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/montrace # where the tool looks: beside bin
  FILES_MATCHING PATTERN "*.profile")

# The header as a target: montrace::montrace here, and with find_package(montrace) elsewhere.
add_library(montrace INTERFACE)
add_library(montrace::montrace ALIAS montrace)
target_include_directories(montrace INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS montrace EXPORT montraceTargets)

set(mt_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/montrace)
install(EXPORT montraceTargets NAMESPACE montrace:: DESTINATION ${mt_package_dir})
file(CONFIGURE OUTPUT montraceConfig.cmake @ONLY CONTENT
"include(\"\${CMAKE_CURRENT_LIST_DIR}/montraceTargets.cmake\")
")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/montraceConfigVersion.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/montraceConfig.cmake ${PROJECT_BINARY_DIR}/montraceConfigVersion.cmake
  DESTINATION ${mt_package_dir})

set(mt_pc_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
cmake_path(ABSOLUTE_PATH mt_pc_dir BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE mt_pc_abs)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${mt_pc_abs} OUTPUT_VARIABLE mt_pc_up)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
  OUTPUT_VARIABLE mt_pc_include)
file(CONFIGURE OUTPUT montrace.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@mt_pc_up@
includedir=\${prefix}/@mt_pc_include@

Name: montrace
Description: probes for spans, events and counters (header only)
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
")
install(FILES ${PROJECT_BINARY_DIR}/montrace.pc DESTINATION ${mt_pc_dir})
