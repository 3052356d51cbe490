// What stands before everything else in a translated file.
#include "abi_text.h"
#include "emit.h"

namespace superstep_cc {

std::string start_of_file() {
  std::string result = "#pragma GCC diagnostic ignored \"-Wunused\"\n";
  result += abi_text;
  for (const char* name :
       {"is_initial_device", "get_num_devices", "get_initial_device", "get_default_device", "get_device_num",
        "get_team_num", "get_num_teams", "get_thread_num", "get_num_threads", "get_max_threads",
        "in_parallel", "get_thread_limit", "get_max_teams"})
    result += std::string("#define omp_") + name + " sst_omp_" + name + "\n";
  // The C library's headers, read by Clang, declare these themselves; GCC has words of its own for them.
  for (const char* name : {"_Float32", "_Float64", "_Float32x", "_Float64x", "_Float128"})
    result += std::string("#define ") + name + " sst" + name + "\n";
  return result +
         "#define SST_WORDS(type) ((sizeof(type) + sizeof(long) - 1) / sizeof(long) * sizeof(long))\n"
         "static inline long sst_trips(long first, long end, long step) {\n"
         "  if (step > 0) return end > first ? (end - first + step - 1) / step : 0;\n"
         "  return step < 0 && first > end ? (first - end - step - 1) / -step : 0;\n}\n";
}

}  // namespace superstep_cc
