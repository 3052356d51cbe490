#include "superstep/record/environment.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "superstep/record/host_load.h"
#include "superstep/record/revision.h"

namespace superstep::record {
namespace {

using nlohmann::json;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

// The value of the first line of /proc/cpuinfo with that name.
std::string processor_field(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name) && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return {};
}

json number_or_null(const std::string& text, double scale) {
  std::istringstream stream(text);
  double number = 0;
  return stream >> number ? json(number * scale) : json(nullptr);
}

// Hz. `observed` is that of the moment, of the first processor.
json clock_record() {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  const auto kilohertz = [&](const char* name) {
    return number_or_null(first_line((folder + name).c_str()), 1e3);
  };
  return {{"nominal", kilohertz("base_frequency")},
          {"maximum", kilohertz("cpuinfo_max_freq")},
          {"observed", number_or_null(processor_field("cpu MHz"), 1e6)},
          {"governor", text_or_null(first_line((folder + "scaling_governor").c_str()))},
          {"boost", text_or_null(first_line("/sys/devices/system/cpu/cpufreq/boost"))},
          {"no_turbo", text_or_null(first_line("/sys/devices/system/cpu/intel_pstate/no_turbo"))}};
}

// The processor time a container may use, "quota period" in us; "max" is no limit.
json container_limit() { return text_or_null(first_line("/sys/fs/cgroup/cpu.max")); }

class Topology {
 public:
  Topology() {
    hwloc_topology_init(&topology_);
    hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL);
    // Nothing is told of devices, and to ask each takes longer than all the rest.
    hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
    loaded_ = hwloc_topology_load(topology_) == 0;
  }
  ~Topology() { hwloc_topology_destroy(topology_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  json count(hwloc_obj_type_t type) const {
    const int number = loaded_ ? hwloc_get_nbobjs_by_type(topology_, type) : -1;
    return number > 0 ? json(number) : json(nullptr);
  }

  std::size_t cache_bytes(hwloc_obj_type_t type) const {
    if (!loaded_ || hwloc_get_nbobjs_by_type(topology_, type) < 1) return 0;
    return hwloc_get_obj_by_type(topology_, type, 0)->attr->cache.size;
  }

  json caches() const {
    json list = json::array();
    if (!loaded_) return list;
    for (hwloc_obj_type_t type :
         {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L1ICACHE}) {
      const int number = hwloc_get_nbobjs_by_type(topology_, type);
      if (number < 1) continue;
      const hwloc_obj_t cache = hwloc_get_obj_by_type(topology_, type, 0);
      list.push_back({{"type", type == HWLOC_OBJ_L1ICACHE ? "instruction" : "data or unified"},
                      {"level", cache->attr->cache.depth},
                      {"size", cache->attr->cache.size},
                      {"num_sharing", hwloc_bitmap_weight(cache->cpuset)},
                      {"count", number}});
    }
    return list;
  }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

json memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? json(static_cast<std::int64_t>(pages) * size) : json(nullptr);
}

json host_record() {
  const Topology topology;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return {{"hostname", text_or_null(name)},
          {"processor", text_or_null(processor_field("model name"))},
          {"virtual_machine", processor_field("flags").find(" hypervisor") != std::string::npos},
          {"clock", clock_record()},
          {"smt", text_or_null(first_line("/sys/devices/system/cpu/smt/active"))},
          {"processor_limit", container_limit()},
          {"sockets", topology.count(HWLOC_OBJ_PACKAGE)},
          {"cores", topology.count(HWLOC_OBJ_CORE)},
          {"hardware_threads", topology.count(HWLOC_OBJ_PU)},
          {"numa_nodes", topology.count(HWLOC_OBJ_NUMANODE)},
          {"caches", topology.caches()},
          {"memory_bytes", memory_bytes()},
          {"huge_pages", text_or_null(first_line("/sys/kernel/mm/transparent_hugepage/enabled"))},
          {"governor", text_or_null(first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))},
          {"aslr", text_or_null(first_line("/proc/sys/kernel/randomize_va_space"))},
          {"load_average", load_average()}};
}

// Variables that change what a run does or how fast it is; all others are private to the user.
json settings() {
  json found = json::object();
  for (const char* name : {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA",
                           "LIBXSMM_TARGET", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX"})
    if (const char* value = std::getenv(name)) found[name] = value;
  return found;
}

// What a batch system says of the job that this is part of; no names of hosts. Null: it is part of none.
json job() {
  json found = json::object();
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_PARTITION", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND_TYPE",
        "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "PBS_JOBID", "PBS_NP", "LSB_JOBID", "LSB_DJOB_NUMPROC"})
    if (const char* value = std::getenv(name)) found[name] = value;
  return found.empty() ? json(nullptr) : found;
}

json library_versions() {
  return {{"libc", gnu_get_libc_version()},
          {"fmt", FMT_VERSION},
          {"hwloc", hwloc_get_api_version()},
          {"sqlite", sqlite3_libversion()}};
}

// The processors this process may run on.
json affinity() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return nullptr;
  json list = json::array();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) list.push_back(cpu);
  return list;
}

json software_record() {
  utsname system{};
  uname(&system);
  return {{"system", system.sysname},        {"kernel", system.release},
          {"compiler", SUPERSTEP_COMPILER},  {"flags", SUPERSTEP_COMPILER_FLAGS},
          {"libraries", library_versions()}, {"settings", settings()}};
}

}  // namespace

nlohmann::json program_record() {
  return {{"name", "superstep"},
          {"version", SUPERSTEP_VERSION},
          {"git", text_or_null(SUPERSTEP_REVISION)},
          {"dirty", SUPERSTEP_REVISION_DIRTY != 0}};
}

std::string iso_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local);
  std::string result = text;
  if (result.size() > 2) result.insert(result.size() - 2, ":");  // +0000 becomes +00:00
  return result;
}

CacheSizes cache_sizes() {
  const Topology topology;
  return {topology.cache_bytes(HWLOC_OBJ_L1CACHE), topology.cache_bytes(HWLOC_OBJ_L2CACHE),
          topology.cache_bytes(HWLOC_OBJ_L3CACHE)};
}

nlohmann::json environment_record(int threads, const HostLoad* load) {
  json record{{"date", iso_time()},
              {"program", program_record()},
              {"host", host_record()},
              {"placement",
               {{"threads", threads}, {"affinity", affinity()}, {"numa_policy", nullptr}, {"job", job()}}},
              {"device", json::array()},
              {"software", software_record()},
              {"data", json::object()}};
  record["host"]["load"] = load ? load->record() : json(nullptr);
  return record;
}

}  // namespace superstep::record
