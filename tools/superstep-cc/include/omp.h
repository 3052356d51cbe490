/* The routines of OpenMP that translated programs may call; the translator reads this in place of a compiler's own. */
#ifndef SUPERSTEP_OMP_H
#define SUPERSTEP_OMP_H
#ifdef __cplusplus
extern "C" {
#endif
typedef enum { omp_sched_static = 1, omp_sched_dynamic = 2, omp_sched_guided = 3, omp_sched_auto = 4 } omp_sched_t;
typedef struct { void *sst_lock; } omp_lock_t;
int omp_is_initial_device(void);
int omp_get_num_devices(void);
int omp_get_initial_device(void);
int omp_get_default_device(void);
void omp_set_default_device(int);
int omp_get_device_num(void);
int omp_get_team_num(void);
int omp_get_num_teams(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_get_max_teams(void);
int omp_get_thread_limit(void);
int omp_get_num_procs(void);
int omp_in_parallel(void);
void omp_set_num_threads(int);
void omp_set_dynamic(int);
double omp_get_wtime(void);
double omp_get_wtick(void);
#ifdef __cplusplus
}
#endif
#endif
