# Headers, library, CMake package, pkg-config file, and the binary with what belongs to it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# One archive of all modules, so that users link one thing. The command line is not part of it.
set(library_objects)
get_property(modules GLOBAL PROPERTY HOLDFAST_MODULES)
foreach(module IN LISTS modules)
  if(NOT module STREQUAL "holdfast_cli")
    list(APPEND library_objects $<TARGET_OBJECTS:${module}>)
  endif()
endforeach()
if(NOT library_objects)
  return()
endif()

add_library(holdfast_library STATIC ${library_objects})
add_library(holdfast::holdfast ALIAS holdfast_library)
set_target_properties(holdfast_library PROPERTIES
  OUTPUT_NAME holdfast
  EXPORT_NAME holdfast
  LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
target_compile_features(holdfast_library PUBLIC cxx_std_20)
target_include_directories(holdfast_library PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(holdfast_library
  PUBLIC nlohmann_json::nlohmann_json Threads::Threads
  PRIVATE fmt::fmt OpenSSL::Crypto SQLite::SQLite3 CURL::libcurl PkgConfig::LIBPQ)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(TARGETS holdfast_library EXPORT holdfast_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/holdfast
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp")
install(EXPORT holdfast_targets NAMESPACE holdfast:: FILE holdfast-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/holdfast-config.cmake.in
  ${PROJECT_BINARY_DIR}/holdfast-config.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/holdfast-config.cmake
  ${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
  DESTINATION ${package_dir})

# Relative to the file itself: what is installed may be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/holdfast.pc.in ${PROJECT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET holdfast)
  # From the same texts as --help: the binary writes them itself.
  set(manual ${PROJECT_BINARY_DIR}/holdfast.1)
  set(bash_completion ${PROJECT_BINARY_DIR}/completions/holdfast)
  set(zsh_completion ${PROJECT_BINARY_DIR}/completions/_holdfast)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completions)
  add_custom_command(
    OUTPUT ${manual} ${bash_completion} ${zsh_completion}
    COMMAND holdfast man > ${manual}
    COMMAND holdfast completion bash > ${bash_completion}
    COMMAND holdfast completion zsh > ${zsh_completion}
    DEPENDS holdfast VERBATIM)
  add_custom_target(holdfast_texts ALL DEPENDS ${manual} ${bash_completion} ${zsh_completion})
  install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${bash_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${zsh_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
