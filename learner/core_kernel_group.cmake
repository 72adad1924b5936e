# Loops between two matrix products: the compiler vectorises, but does not reorder sums.
set(DATACOM_LOOP_OPTIONS -O3 -fno-math-errno -fno-trapping-math)

# Adds the forms of kernel group X: FOLDER/X_cpu.cc, built with the options of loops, to DATACOM_CPU_SOURCES, and FOLDER/X_torch.cc to
# DATACOM_TORCH_SOURCES.
macro(datacom_add_kernel_group folder group)
  list(APPEND DATACOM_CPU_SOURCES ${folder}/${group}_cpu.cc)
  list(APPEND DATACOM_TORCH_SOURCES ${folder}/${group}_torch.cc)
  set_source_files_properties(${folder}/${group}_cpu.cc PROPERTIES COMPILE_OPTIONS "${DATACOM_LOOP_OPTIONS};-ffp-contract=fast" SKIP_PRECOMPILE_HEADERS ON)
endmacro()
