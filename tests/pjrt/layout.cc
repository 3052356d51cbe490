// What client/pjrt_abi.h says beside pjrt_c_api.h, the interface's own header. Compiled by tests/pjrt/layout, which
// knows where that is.
#include <cstdio>

#include "pjrt_c_api.h"
#include "superstep/target/pjrt/client/pjrt_abi.h"

namespace abi = superstep::target::pjrt::abi;

namespace {

int wrong = 0;

void same(const char* what, std::size_t ours, std::size_t theirs) {
  if (ours == theirs) return;
  std::printf("%s: %zu here, %zu in the header\n", what, ours, theirs);
  ++wrong;
}

}  // namespace

#define AT(our, our_member, their, their_member) \
  same(#their "." #their_member, offsetof(abi::our, our_member), offsetof(their, their_member))
#define PLACE(function, name)                                                                    \
  same("PJRT_Api." #name,                                                                        \
       offsetof(abi::Api, functions) + static_cast<std::size_t>(abi::Function::function) * sizeof(void*), \
       offsetof(PJRT_Api, name))

void places() {
  PLACE(error_destroy, PJRT_Error_Destroy);
  PLACE(error_message, PJRT_Error_Message);
  PLACE(error_code, PJRT_Error_GetCode);
  PLACE(plugin_initialize, PJRT_Plugin_Initialize);
  PLACE(plugin_attributes, PJRT_Plugin_Attributes);
  PLACE(event_destroy, PJRT_Event_Destroy);
  PLACE(event_await, PJRT_Event_Await);
  PLACE(client_create, PJRT_Client_Create);
  PLACE(client_platform_name, PJRT_Client_PlatformName);
  PLACE(client_platform_version, PJRT_Client_PlatformVersion);
  PLACE(client_addressable_devices, PJRT_Client_AddressableDevices);
  PLACE(client_compile, PJRT_Client_Compile);
  PLACE(buffer_from_host, PJRT_Client_BufferFromHostBuffer);
  PLACE(description_kind, PJRT_DeviceDescription_Kind);
  PLACE(description_text, PJRT_DeviceDescription_ToString);
  PLACE(device_description, PJRT_Device_GetDescription);
  PLACE(device_memory_stats, PJRT_Device_MemoryStats);
  PLACE(executable_destroy, PJRT_Executable_Destroy);
  PLACE(executable_output_count, PJRT_Executable_NumOutputs);
  PLACE(executable_code_size, PJRT_Executable_SizeOfGeneratedCodeInBytes);
  PLACE(executable_cost_analysis, PJRT_Executable_GetCostAnalysis);
  PLACE(executable_optimized_program, PJRT_Executable_OptimizedProgram);
  PLACE(loaded_destroy, PJRT_LoadedExecutable_Destroy);
  PLACE(loaded_executable, PJRT_LoadedExecutable_GetExecutable);
  PLACE(loaded_execute, PJRT_LoadedExecutable_Execute);
  PLACE(buffer_destroy, PJRT_Buffer_Destroy);
  PLACE(buffer_to_host, PJRT_Buffer_ToHostBuffer);
  PLACE(topology_create, PJRT_TopologyDescription_Create);
  PLACE(topology_destroy, PJRT_TopologyDescription_Destroy);
  PLACE(topology_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions);
  PLACE(compile, PJRT_Compile);
  PLACE(executable_memory_stats, PJRT_Executable_GetCompiledMemoryStats);
}

void errors_and_clients() {
  AT(Api, version, PJRT_Api, pjrt_api_version);
  AT(Version, minor, PJRT_Api_Version, minor_version);
  AT(ErrorArgs, error, PJRT_Error_Destroy_Args, error);
  AT(ErrorMessageArgs, message_size, PJRT_Error_Message_Args, message_size);
  AT(ErrorCodeArgs, code, PJRT_Error_GetCode_Args, code);
  AT(NamedValue, kind, PJRT_NamedValue, type);
  AT(NamedValue, text, PJRT_NamedValue, string_value);
  AT(NamedValue, value_size, PJRT_NamedValue, value_size);
  same("PJRT_NamedValue", sizeof(abi::NamedValue), sizeof(PJRT_NamedValue));
  AT(PluginAttributesArgs, count, PJRT_Plugin_Attributes_Args, num_attributes);
  AT(EventArgs, event, PJRT_Event_Await_Args, event);
  AT(ClientCreateArgs, option_count, PJRT_Client_Create_Args, num_options);
  AT(ClientCreateArgs, client, PJRT_Client_Create_Args, client);
  same("PJRT_Client_Create_Args", sizeof(abi::ClientCreateArgs), sizeof(PJRT_Client_Create_Args));
  AT(ClientTextArgs, text_size, PJRT_Client_PlatformName_Args, platform_name_size);
  AT(ClientDevicesArgs, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
  AT(DeviceDescriptionArgs, description, PJRT_Device_GetDescription_Args, device_description);
  AT(DescriptionTextArgs, text_size, PJRT_DeviceDescription_Kind_Args, device_kind_size);
  AT(DeviceMemoryStatsArgs, peak_bytes_in_use, PJRT_Device_MemoryStats_Args, peak_bytes_in_use);
  AT(DeviceMemoryStatsArgs, bytes_limit, PJRT_Device_MemoryStats_Args, bytes_limit);
  AT(DeviceMemoryStatsArgs, bytes_limit.is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
  same("PJRT_Device_MemoryStats_Args", sizeof(abi::DeviceMemoryStatsArgs), sizeof(PJRT_Device_MemoryStats_Args));
}

void programs() {
  AT(Program, format_size, PJRT_Program, format_size);
  AT(ClientCompileArgs, executable, PJRT_Client_Compile_Args, executable);
  AT(LoadedExecutableArgs, executable, PJRT_LoadedExecutable_GetExecutable_Args, executable);
  AT(OutputCountArgs, count, PJRT_Executable_NumOutputs_Args, num_outputs);
  AT(CodeSizeArgs, bytes, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes);
  AT(CostAnalysisArgs, properties, PJRT_Executable_GetCostAnalysis_Args, properties);
  AT(ExtensionBase, next, PJRT_Extension_Base, next);
  AT(OptimizedProgramArgs, program, PJRT_Executable_OptimizedProgram_Args, program);
  AT(ExecutableMemoryStatsArgs, temporary_bytes, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
  AT(ExecutableMemoryStatsArgs, peak_bytes, PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
  AT(ExecuteOptions, kept_inputs, PJRT_ExecuteOptions, non_donatable_input_indices);
  AT(ExecuteOptions, incarnations, PJRT_ExecuteOptions, incarnation_ids);
  same("PJRT_ExecuteOptions", sizeof(abi::ExecuteOptions), sizeof(PJRT_ExecuteOptions));
  AT(ExecuteArgs, arguments, PJRT_LoadedExecutable_Execute_Args, argument_lists);
  AT(ExecuteArgs, results, PJRT_LoadedExecutable_Execute_Args, output_lists);
  AT(ExecuteArgs, device, PJRT_LoadedExecutable_Execute_Args, execute_device);
  AT(TopologyCreateArgs, topology, PJRT_TopologyDescription_Create_Args, topology);
  AT(TopologyDescriptionsArgs, count, PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions);
  AT(CompileArgs, executable, PJRT_Compile_Args, executable);
}

void buffers() {
  AT(TiledLayout, tile_count, PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
  AT(MemoryLayout, tiled, PJRT_Buffer_MemoryLayout, tiled);
  AT(MemoryLayout, kind, PJRT_Buffer_MemoryLayout, type);
  AT(BufferFromHostArgs, type, PJRT_Client_BufferFromHostBuffer_Args, type);
  AT(BufferFromHostArgs, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
  AT(BufferFromHostArgs, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
  AT(BufferToHostArgs, event, PJRT_Buffer_ToHostBuffer_Args, event);
  same("f64", static_cast<std::size_t>(abi::BufferType::f64), PJRT_Buffer_Type_F64);
  same("bf16", static_cast<std::size_t>(abi::BufferType::bf16), PJRT_Buffer_Type_BF16);
  same("u64", static_cast<std::size_t>(abi::BufferType::u64), PJRT_Buffer_Type_U64);
  same("truth", static_cast<std::size_t>(abi::BufferType::truth), PJRT_Buffer_Type_PRED);
}

int main() {
  places();
  errors_and_clients();
  programs();
  buffers();
  std::printf("%d differences\n", wrong);
  return wrong ? 1 : 0;
}
