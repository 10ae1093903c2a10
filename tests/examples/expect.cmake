# cmake -DCOMMAND="program;argument;..." -DEXPECTED=regex -P expect.cmake: the program must succeed and print that.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT code EQUAL 0 OR NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "ended with ${code}; '${EXPECTED}' was expected of\n${output}${errors}")
endif()
