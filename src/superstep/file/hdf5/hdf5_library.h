// The functions of the HDF5 library that are called, and the numbers of its types and classes. It is opened
// when the first of them is called: it brings twenty libraries of its own along.
#pragma once

#include <hdf5.h>

#include "superstep/base/system/late_library.h"

namespace superstep::data {

inline constinit const LateLibrary hdf5_library("HDF5", SUPERSTEP_LATE_HDF5);
// NOLINTBEGIN(readability-identifier-naming): the library's own
SUPERSTEP_LATE(hdf5_library, H5Aclose);
SUPERSTEP_LATE(hdf5_library, H5Acreate2);
SUPERSTEP_LATE(hdf5_library, H5Adelete);
SUPERSTEP_LATE(hdf5_library, H5Aexists);
SUPERSTEP_LATE(hdf5_library, H5Aget_space);
SUPERSTEP_LATE(hdf5_library, H5Aget_type);
SUPERSTEP_LATE(hdf5_library, H5Aiterate2);
SUPERSTEP_LATE(hdf5_library, H5Aopen);
SUPERSTEP_LATE(hdf5_library, H5Aread);
SUPERSTEP_LATE(hdf5_library, H5Awrite);
SUPERSTEP_LATE(hdf5_library, H5Dclose);
SUPERSTEP_LATE(hdf5_library, H5Dcreate2);
SUPERSTEP_LATE(hdf5_library, H5Dget_create_plist);
SUPERSTEP_LATE(hdf5_library, H5Dget_space);
SUPERSTEP_LATE(hdf5_library, H5Dget_type);
SUPERSTEP_LATE(hdf5_library, H5Dopen2);
SUPERSTEP_LATE(hdf5_library, H5Dread);
SUPERSTEP_LATE(hdf5_library, H5Dset_extent);
SUPERSTEP_LATE(hdf5_library, H5Dvlen_reclaim);
SUPERSTEP_LATE(hdf5_library, H5Dwrite);
SUPERSTEP_LATE(hdf5_library, H5Eset_auto2);
SUPERSTEP_LATE(hdf5_library, H5Ewalk2);
SUPERSTEP_LATE(hdf5_library, H5Fclose);
SUPERSTEP_LATE(hdf5_library, H5Fcreate);
SUPERSTEP_LATE(hdf5_library, H5Fflush);
SUPERSTEP_LATE(hdf5_library, H5Fget_filesize);
SUPERSTEP_LATE(hdf5_library, H5Fis_hdf5);
SUPERSTEP_LATE(hdf5_library, H5Fopen);
SUPERSTEP_LATE(hdf5_library, H5Gclose);
SUPERSTEP_LATE(hdf5_library, H5Gcreate2);
SUPERSTEP_LATE(hdf5_library, H5Gopen2);
SUPERSTEP_LATE(hdf5_library, H5Literate);
SUPERSTEP_LATE(hdf5_library, H5Oclose);
SUPERSTEP_LATE(hdf5_library, H5Oopen);
SUPERSTEP_LATE(hdf5_library, H5Ovisit2);
SUPERSTEP_LATE(hdf5_library, H5Pclose);
SUPERSTEP_LATE(hdf5_library, H5Pcreate);
SUPERSTEP_LATE(hdf5_library, H5Pget_chunk);
SUPERSTEP_LATE(hdf5_library, H5Pget_filter2);
SUPERSTEP_LATE(hdf5_library, H5Pget_layout);
SUPERSTEP_LATE(hdf5_library, H5Pget_nfilters);
SUPERSTEP_LATE(hdf5_library, H5Pset_chunk);
SUPERSTEP_LATE(hdf5_library, H5Pset_create_intermediate_group);
SUPERSTEP_LATE(hdf5_library, H5Pset_deflate);
SUPERSTEP_LATE(hdf5_library, H5Pset_fill_time);
SUPERSTEP_LATE(hdf5_library, H5Pset_obj_track_times);
SUPERSTEP_LATE(hdf5_library, H5Pset_shuffle);
SUPERSTEP_LATE(hdf5_library, H5Sclose);
SUPERSTEP_LATE(hdf5_library, H5Screate);
SUPERSTEP_LATE(hdf5_library, H5Screate_simple);
SUPERSTEP_LATE(hdf5_library, H5Sget_simple_extent_dims);
SUPERSTEP_LATE(hdf5_library, H5Sget_simple_extent_ndims);
SUPERSTEP_LATE(hdf5_library, H5Sget_simple_extent_npoints);
SUPERSTEP_LATE(hdf5_library, H5Sselect_hyperslab);
SUPERSTEP_LATE(hdf5_library, H5Tarray_create2);
SUPERSTEP_LATE(hdf5_library, H5Tclose);
SUPERSTEP_LATE(hdf5_library, H5Tcopy);
SUPERSTEP_LATE(hdf5_library, H5Tcreate);
SUPERSTEP_LATE(hdf5_library, H5Tenum_create);
SUPERSTEP_LATE(hdf5_library, H5Tenum_insert);
SUPERSTEP_LATE(hdf5_library, H5Tenum_valueof);
SUPERSTEP_LATE(hdf5_library, H5Tget_array_dims2);
SUPERSTEP_LATE(hdf5_library, H5Tget_class);
SUPERSTEP_LATE(hdf5_library, H5Tget_fields);
SUPERSTEP_LATE(hdf5_library, H5Tget_member_class);
SUPERSTEP_LATE(hdf5_library, H5Tget_member_index);
SUPERSTEP_LATE(hdf5_library, H5Tget_member_name);
SUPERSTEP_LATE(hdf5_library, H5Tget_member_type);
SUPERSTEP_LATE(hdf5_library, H5Tget_nmembers);
SUPERSTEP_LATE(hdf5_library, H5Tget_sign);
SUPERSTEP_LATE(hdf5_library, H5Tget_size);
SUPERSTEP_LATE(hdf5_library, H5Tget_super);
SUPERSTEP_LATE(hdf5_library, H5Tinsert);
SUPERSTEP_LATE(hdf5_library, H5Tis_variable_str);
SUPERSTEP_LATE(hdf5_library, H5Tset_cset);
SUPERSTEP_LATE(hdf5_library, H5Tset_ebias);
SUPERSTEP_LATE(hdf5_library, H5Tset_fields);
SUPERSTEP_LATE(hdf5_library, H5Tset_size);
SUPERSTEP_LATE(hdf5_library, H5Tset_strpad);
SUPERSTEP_LATE(hdf5_library, H5Zfilter_avail);
SUPERSTEP_LATE(hdf5_library, H5check_version);
SUPERSTEP_LATE(hdf5_library, H5dont_atexit);
SUPERSTEP_LATE(hdf5_library, H5free_memory);
SUPERSTEP_LATE(hdf5_library, H5open);

SUPERSTEP_LATE_VALUE(hdf5_library, H5P_CLS_DATASET_CREATE_ID_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5P_CLS_LINK_CREATE_ID_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_C_S1_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_IEEE_F32LE_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_DOUBLE_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_FLOAT_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_INT16_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_INT32_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_INT64_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_INT8_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_UINT16_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_UINT32_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_UINT64_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_NATIVE_UINT8_g);
SUPERSTEP_LATE_VALUE(hdf5_library, H5T_STD_I64LE_g);
// NOLINTEND(readability-identifier-naming)

}  // namespace superstep::data
