# cmake --install, and packages (cpack -G DEB): the program with its manual pages and shell completion, and the
# library with its headers, for find_package(superstep) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The public headers and what they include; nothing else of the sources is installed.
include(cmake/PublicHeaders.cmake)
headers_behind(public_headers ${CMAKE_SOURCE_DIR} superstep/superstep.h superstep/bsp.h superstep/c_api.h superstep/operator.h)
foreach(header IN LISTS public_headers)
  file_of_header(file ${CMAKE_SOURCE_DIR} ${header})
  get_filename_component(header_folder ${header} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${header_folder})
endforeach()

install(TARGETS superstep superstep-serve superstep-extra RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS superstep_library EXPORT superstep-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT superstep-targets NAMESPACE superstep:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/superstep)
configure_package_config_file(cmake/superstep-config.cmake.in ${CMAKE_BINARY_DIR}/superstep-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/superstep)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/superstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/superstep-config.cmake ${CMAKE_BINARY_DIR}/superstep-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/superstep)
# The translator of target constructs, the library of what it translates and its header, where they are built.
add_custom_target(what_is_installed DEPENDS superstep superstep_wings superstep_library)
if(TARGET superstep-cc)
  add_dependencies(what_is_installed superstep-cc superstep_omp)
  install(TARGETS superstep-cc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
  install(TARGETS superstep_omp LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
  install(FILES tools/superstep-cc/include/omp.h DESTINATION ${CMAKE_INSTALL_LIBDIR}/superstep/openmp)
  # Clang's own headers, and the compiler of translated programs.
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc, clang-19, libclang-common-19-dev")
endif()
# The prefix as seen from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH pkgconfig_to_prefix /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
set(pkgconfig_to_prefix "\${pcfiledir}/${pkgconfig_to_prefix}")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/superstep.pc.in ${CMAKE_BINARY_DIR}/superstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/superstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# What Poplar programs are compiled with and linked to, for find_package(poplar) and pkg-config:
# `cmake --install BUILD --component poplar` installs it alone. The names of its targets are those that such programs use.
add_dependencies(what_is_installed poplar poputil pva pvti)
install(TARGETS poplar EXPORT poplar-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT poplar)
install(TARGETS poputil pva pvti LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT poplar)
if(TARGET popc)
  add_dependencies(what_is_installed popc)
  install(TARGETS popc EXPORT poplar-targets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT poplar)
endif()
install(DIRECTORY include/poplar include/poputil include/pva include/pvti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT poplar)
install(FILES include/ipudef.h include/print.h include/ipu_memory_intrinsics include/ipu_vector_math include/ipuvectormath DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT poplar)
set(poplar_package ${CMAKE_INSTALL_LIBDIR}/cmake/poplar)
install(EXPORT poplar-targets DESTINATION ${poplar_package} COMPONENT poplar)
configure_package_config_file(cmake/poplar-config.cmake.in ${CMAKE_BINARY_DIR}/poplar-config.cmake
  INSTALL_DESTINATION ${poplar_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/poplar-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/poplar-config.cmake ${CMAKE_BINARY_DIR}/poplar-config-version.cmake
  DESTINATION ${poplar_package} COMPONENT poplar)
configure_file(cmake/poplar.pc.in ${CMAKE_BINARY_DIR}/poplar.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/poplar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT poplar)
# The studies and the published rows, to begin studies of one's own with; the program has them built in.
install(DIRECTORY studies data/published DESTINATION ${CMAKE_INSTALL_DATADIR}/superstep)
install(FILES LICENSE CHANGELOG.md SECURITY.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages and completion are written by the program when it is installed.
set(made ${CMAKE_BINARY_DIR}/made)
install(CODE "
  execute_process(COMMAND \"${CMAKE_BINARY_DIR}/superstep\" man --out \"${made}/man\" COMMAND_ERROR_IS_FATAL ANY)
  file(MAKE_DIRECTORY \"${made}/bash\" \"${made}/zsh\" \"${made}/fish\")
  execute_process(COMMAND \"${CMAKE_BINARY_DIR}/superstep\" completion bash OUTPUT_FILE \"${made}/bash/superstep\"
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"${CMAKE_BINARY_DIR}/superstep\" completion zsh OUTPUT_FILE \"${made}/zsh/_superstep\"
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"${CMAKE_BINARY_DIR}/superstep\" completion fish OUTPUT_FILE \"${made}/fish/superstep.fish\"
                  COMMAND_ERROR_IS_FATAL ANY)")
install(CODE "
  execute_process(COMMAND python3 -B \"${CMAKE_SOURCE_DIR}/tools/sbom\" --program \"${CMAKE_BINARY_DIR}/superstep\" --out
                  \"${made}/superstep.spdx.json\" COMMAND_ERROR_IS_FATAL ANY)")
install(FILES ${made}/superstep.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${made}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${made}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(DIRECTORY ${made}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Superstep's authors <superstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles, trains and serves scientific machine-learning models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# What is opened late is not among what the files are linked to.
superstep_late_packages(CPACK_DEBIAN_PACKAGE_DEPENDS)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
include(CPack)
