// The functions of omp.h as translated programs call them: on a tile those of its part, on the host those of
// the host's own OpenMP library where the program is linked with one.
#include "superstep/openmp/program/abi.h"

extern "C" {
__attribute__((weak)) int omp_get_thread_num(void);
__attribute__((weak)) int omp_get_num_threads(void);
__attribute__((weak)) int omp_get_max_threads(void);
__attribute__((weak)) int omp_in_parallel(void);
}

namespace superstep::openmp {
bool offload_is_disabled();
namespace {
thread_local const sst_part* part = nullptr;
}  // namespace
}  // namespace superstep::openmp

using namespace superstep::openmp;

#pragma GCC visibility push(default)
extern "C" {

const sst_part* sst_set_part(const sst_part* now) {
  const sst_part* before = part;
  part = now;
  return before;
}

int sst_omp_is_initial_device() { return part == nullptr; }
int sst_omp_get_num_devices() { return offload_is_disabled() ? 0 : 1; }
int sst_omp_get_initial_device() { return 1; }
int sst_omp_get_default_device() { return 0; }
int sst_omp_get_device_num() { return part ? 0 : 1; }
int sst_omp_get_team_num() { return part ? part->team : 0; }
int sst_omp_get_num_teams() { return part ? part->teams : 1; }
int sst_omp_get_thread_num() { return part ? part->thread : omp_get_thread_num ? omp_get_thread_num() : 0; }
int sst_omp_get_num_threads() {
  return part ? part->threads : omp_get_num_threads ? omp_get_num_threads() : 1;
}
int sst_omp_get_max_threads() {
  return part ? part->threads : omp_get_max_threads ? omp_get_max_threads() : 1;
}
int sst_omp_in_parallel() { return part ? part->threads > 1 : omp_in_parallel ? omp_in_parallel() : 0; }
int sst_omp_get_thread_limit() { return part ? part->threads : 1; }
int sst_omp_get_max_teams() { return part ? part->teams : 0; }

}  // extern "C"
#pragma GCC visibility pop
