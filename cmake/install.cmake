# What `cmake --install build --prefix P` puts where, and the package that find_package(slalom) finds there.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS slalom EXPORT slalom RUNTIME DESTINATION bin)
install(TARGETS slalom_preload_object LIBRARY DESTINATION lib/slalom)  # where the command looks for it
if(TARGET slalom_check)
  set_target_properties(slalom_check PROPERTIES EXPORT_NAME check)
  install(TARGETS slalom_check EXPORT slalom LIBRARY DESTINATION lib)
  install(DIRECTORY include/slalom DESTINATION include)
endif()
install(EXPORT slalom NAMESPACE slalom:: FILE slalomTargets.cmake DESTINATION lib/cmake/slalom)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/slalomConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES cmake/slalomConfig.cmake ${CMAKE_BINARY_DIR}/slalomConfigVersion.cmake DESTINATION lib/cmake/slalom)
