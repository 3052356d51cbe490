# superstep_embed_facts(ROOM FUNCTION FOLDER [TABLES] id...): puts FOLDER/ID.toml of every ID into the program, as what
# FUNCTION of that room gives (ROOM/built_in.h); of a table, ID.csv.
function(superstep_embed_facts room function folder)
  cmake_parse_arguments(PARSE_ARGV 3 facts "TABLES" "" "")
  set(ending toml)
  if(facts_TABLES)
    set(ending csv)
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(ids ${facts_UNPARSED_ARGUMENTS})
  set(files ${ids})
  list(TRANSFORM files PREPEND ${folder}/)
  list(TRANSFORM files APPEND .${ending})
  set(writer ${CMAKE_SOURCE_DIR}/cmake/embed_facts.cmake)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DROOM=${room} -DFOLDER=${folder} "-DFILES=${ids}" -DENDING=${ending} -DFUNCTION=${function}
            -DOUTPUT=${source} -P ${writer}
    DEPENDS ${files} ${writer} VERBATIM)
  target_sources(superstep_${room} PRIVATE ${source})
endfunction()
