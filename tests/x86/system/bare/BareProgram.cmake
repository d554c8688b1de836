# bare_program(NAME BITS 32|64 SOURCES ...): a multiboot kernel ${CMAKE_CURRENT_BINARY_DIR}/NAME.elf on top of bare/.
# bare_test(NAME PROGRAM P [CPUS n] [STOP how] [EXPECT file]): runs it in slalom and, if QEMU is installed, also in QEMU.
set(BARE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(BARE_COMPILER ${CMAKE_CXX_COMPILER})
else()
  find_program(BARE_COMPILER g++ REQUIRED)
endif()
find_program(BARE_LINKER ld REQUIRED)
find_program(BARE_OBJCOPY objcopy REQUIRED)
find_program(QEMU_SYSTEM qemu-system-x86_64)
set(BARE_FLAGS -std=c++20 -O1 -ffreestanding -fno-exceptions -fno-rtti -fno-pic -fno-pie -fno-stack-protector
    -fno-asynchronous-unwind-tables -fno-threadsafe-statics -fcf-protection=none -mgeneral-regs-only -mno-red-zone
    -Wall -Wextra -Werror -Wno-volatile -I${BARE_DIRECTORY})

# Does not use the flags of the build, which may enable sanitizers.
function(bare_object bits source object)
  get_filename_component(folder ${object} DIRECTORY)
  file(GLOB headers CONFIGURE_DEPENDS ${BARE_DIRECTORY}/*.h)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${BARE_COMPILER} -m${bits} ${BARE_FLAGS} -c ${source} -o ${object}
    DEPENDS ${source} ${headers} VERBATIM)
endfunction()

# The objects that all programs of a width share.
set(BARE_SHARED_32 start32.S bare.cc)
set(BARE_SHARED_64 start64.S bare.cc smp.S smp.cc)
foreach(bits 32 64)
  set(BARE_OBJECTS_${bits})
  foreach(source ${BARE_SHARED_${bits}})
    list(APPEND BARE_OBJECTS_${bits} ${CMAKE_BINARY_DIR}/tests/bare${bits}/${source}.o)
  endforeach()
  if(NOT TARGET bare_objects_${bits})
    foreach(source ${BARE_SHARED_${bits}})
      bare_object(${bits} ${BARE_DIRECTORY}/${source} ${CMAKE_BINARY_DIR}/tests/bare${bits}/${source}.o)
    endforeach()
    add_custom_target(bare_objects_${bits} DEPENDS ${BARE_OBJECTS_${bits}})
  endif()
endforeach()

function(bare_program name)
  cmake_parse_arguments(BARE "" "BITS" "SOURCES" ${ARGN})
  set(objects)
  foreach(source ${BARE_SOURCES})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.dir/${source}.o)
    bare_object(${BARE_BITS} ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${object})
    list(APPEND objects ${object})
  endforeach()
  list(APPEND objects ${BARE_OBJECTS_${BARE_BITS}})
  set(format $<IF:$<EQUAL:${BARE_BITS},64>,elf_x86_64,elf_i386>)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name}.elf)
  # Multiboot loaders require 32-bit ELF files, whatever code they contain.
  add_custom_command(OUTPUT ${program}
    COMMAND ${BARE_LINKER} -m ${format} -z max-page-size=0x1000 -T ${BARE_DIRECTORY}/multiboot.ld ${objects} -o ${program}
    COMMAND ${BARE_OBJCOPY} -O elf32-i386 ${program}
    DEPENDS ${objects} ${BARE_DIRECTORY}/multiboot.ld VERBATIM)
  add_custom_target(bare_${name} ALL DEPENDS ${program})
  add_dependencies(bare_${name} bare_objects_${BARE_BITS})
endfunction()

function(bare_test name)
  cmake_parse_arguments(BARE "" "PROGRAM;CPUS;STOP;EXPECT" "" ${ARGN})
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${BARE_PROGRAM}.elf)
  set(options)
  if(BARE_CPUS)
    list(APPEND options --cpus ${BARE_CPUS})
  endif()
  if(BARE_STOP)
    list(APPEND options --stop ${BARE_STOP})
  endif()
  if(BARE_EXPECT)
    list(APPEND options --expect ${BARE_EXPECT})
  endif()
  add_test(NAME x86.${name} COMMAND run_bare ${program} ${options})
  set_tests_properties(x86.${name} PROPERTIES LABELS x86 TIMEOUT 300)
  if(QEMU_SYSTEM)
    add_test(NAME x86.qemu.${name}
      COMMAND Python3::Interpreter -B ${BARE_DIRECTORY}/run_in_qemu.py ${QEMU_SYSTEM} ${program} ${options})
    set_tests_properties(x86.qemu.${name} PROPERTIES LABELS "x86;qemu" TIMEOUT 120)
  endif()
endfunction()
