# Metrics of predictions against plain loops.
kiln_test(metrics ${CMAKE_CURRENT_LIST_DIR}/test_metrics.c ${CMAKE_CURRENT_LIST_DIR}/../faults/brutal.c)
kiln_test(metrics_devices ${CMAKE_CURRENT_LIST_DIR}/test_metrics_devices.c)
