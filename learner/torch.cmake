# Target datacom_torch: bin/libdatacom_torch.so, the backend that needs LibTorch, which programs load when it is asked for. Tests and
# benchmarks link it and find it so. Target datacom_libtorch: LibTorch itself.
find_package(Torch REQUIRED)
add_library(datacom_libtorch INTERFACE)
target_link_libraries(datacom_libtorch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(datacom_libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})

add_library(datacom_torch SHARED ${DATACOM_TORCH_SOURCES})
set_target_properties(datacom_torch PROPERTIES CXX_STANDARD 20 LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin"
  LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/nn/torch/datacom_torch.map")
target_include_directories(datacom_torch PRIVATE "${CMAKE_CURRENT_LIST_DIR}/..")
target_compile_definitions(datacom_torch PRIVATE "DATACOM_TORCH_VERSION=\"${Torch_VERSION}\"" $<$<TARGET_EXISTS:torch_cuda>:DATACOM_CUDA_GRAPHS>)
target_link_libraries(datacom_torch PRIVATE datacom_libtorch)
target_link_options(datacom_torch PRIVATE LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/nn/torch/datacom_torch.map
  INTERFACE LINKER:--no-as-needed)
