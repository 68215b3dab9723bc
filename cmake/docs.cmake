# The manual page and the shell completions, made from the program's own table of commands.
if(TARGET holdfast)
  set(completions ${PROJECT_BINARY_DIR}/completions)
  file(MAKE_DIRECTORY ${completions})
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/holdfast.1 ${completions}/holdfast ${completions}/_holdfast
    COMMAND holdfast man > ${PROJECT_BINARY_DIR}/holdfast.1
    COMMAND holdfast completion bash > ${completions}/holdfast
    COMMAND holdfast completion zsh > ${completions}/_holdfast
    DEPENDS holdfast
    COMMENT "Making the manual page and the shell completions"
    VERBATIM)
  add_custom_target(
    holdfast_docs ALL DEPENDS ${PROJECT_BINARY_DIR}/holdfast.1 ${completions}/holdfast
                              ${completions}/_holdfast)
  include(GNUInstallDirs)
  install(FILES ${PROJECT_BINARY_DIR}/holdfast.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${completions}/holdfast DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/_holdfast DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
