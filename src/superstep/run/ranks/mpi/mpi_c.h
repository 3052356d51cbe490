// The C interface of MPI alone: it has no C++ one since version 3. Runs of one rank do without the library,
// which is opened when the first of its functions is called.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "superstep/base/system/late_library.h"

namespace superstep::run {

// Open MPI's plug-ins ask for what is in it.
inline constinit const LateLibrary mpi_library("MPI", SUPERSTEP_LATE_MPI, LateLibrary::Scope::all);
// NOLINTBEGIN(readability-identifier-naming): the library's own
SUPERSTEP_LATE(mpi_library, MPI_Abort);
SUPERSTEP_LATE(mpi_library, MPI_Allgather);
SUPERSTEP_LATE(mpi_library, MPI_Allgatherv);
SUPERSTEP_LATE(mpi_library, MPI_Allreduce);
SUPERSTEP_LATE(mpi_library, MPI_Alltoallv);
SUPERSTEP_LATE(mpi_library, MPI_Barrier);
SUPERSTEP_LATE(mpi_library, MPI_Comm_dup);
SUPERSTEP_LATE(mpi_library, MPI_Comm_free);
SUPERSTEP_LATE(mpi_library, MPI_Comm_rank);
SUPERSTEP_LATE(mpi_library, MPI_Comm_size);
SUPERSTEP_LATE(mpi_library, MPI_Comm_split);
SUPERSTEP_LATE(mpi_library, MPI_Comm_split_type);
SUPERSTEP_LATE(mpi_library, MPI_Finalize);
SUPERSTEP_LATE(mpi_library, MPI_Finalized);
SUPERSTEP_LATE(mpi_library, MPI_Get_library_version);
SUPERSTEP_LATE(mpi_library, MPI_Iallgatherv);
SUPERSTEP_LATE(mpi_library, MPI_Iallreduce);
SUPERSTEP_LATE(mpi_library, MPI_Ialltoallv);
SUPERSTEP_LATE(mpi_library, MPI_Init_thread);
SUPERSTEP_LATE(mpi_library, MPI_Test);
// NOLINTEND(readability-identifier-naming)

}  // namespace superstep::run

// Open MPI's communicators, types and operations are addresses of its variables; others' are numbers.
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) \
  (static_cast<type>(superstep::run::mpi_library.find_variable(#global)))
#endif
