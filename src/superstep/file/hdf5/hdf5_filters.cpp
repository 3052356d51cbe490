#include "superstep/file/hdf5/hdf5_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::data::hdf5 {
namespace {

constexpr H5Z_filter_t bitshuffle = 32008;  // as the HDF Group has registered it
// What bitshuffle packs with, the fifth parameter that is kept in files (bshuf_h5filter.h of its authors).
constexpr std::size_t place_of_code = 4;
constexpr unsigned by_nothing = 0, by_lz4 = 2, by_zstd = 3;

struct Filter {
  H5Z_filter_t id = 0;
  std::vector<unsigned> parameters;
};

std::vector<Filter> filters_of(hid_t set) {
  const Handle creation(H5Dget_create_plist(set), H5Pclose);
  std::vector<Filter> filters;
  for (int i = 0; creation.valid() && i < H5Pget_nfilters(creation.get()); ++i) {
    Filter filter;
    filter.parameters.resize(32);
    unsigned flags = 0, config = 0;
    std::size_t count = filter.parameters.size();
    filter.id = H5Pget_filter2(creation.get(), static_cast<unsigned>(i), &flags, &count,
                               filter.parameters.data(), 0, nullptr, &config);
    filter.parameters.resize(std::min(count, filter.parameters.size()));
    filters.push_back(std::move(filter));
  }
  return filters;
}

constexpr std::size_t tried_elements = 64;

// Elements of four bytes with all bits set, of which the transposed bits are the same, as bitshuffle with
// zstd packs them: the number of bytes, the size of a block, the length of a frame (these three the other
// byte order), and a frame of zstd (RFC 8878) that holds one byte and how often it is repeated.
std::vector<std::uint8_t> known_chunk() {
  static_assert(tried_elements * 4 == 256);
  return {0, 0, 0, 0, 0, 0, 1, 0,  // 256 bytes
          0, 0, 1, 0,              // in one block of 256
          0, 0, 0, 11,             // of a frame of 11 bytes
          0x28, 0xb5, 0x2f, 0xfd,  // zstd
          0x60, 0, 0,              // one segment, its size less 256 in two bytes
          // last block, one byte repeated 256 times: 256 << 3 | 1 << 1 | 1
          0x03, 0x08, 0x00, 0xff};
}

// What the plug-in makes of a chunk whose elements are known.
bool unpacks_zstd() {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.get(), 4096, 0);
  const Handle file(H5Fcreate("tried in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  const hsize_t extent = tried_elements;
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose),
      creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(creation.get(), 1, &extent);
  const unsigned parameters[] = {0, by_zstd};
  if (H5Pset_filter(creation.get(), bitshuffle, H5Z_FLAG_MANDATORY, 2, parameters) < 0) return false;
  const Handle set(
      H5Dcreate2(file.get(), "x", H5T_NATIVE_UINT32, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      H5Dclose);
  if (!set.valid()) return false;
  const std::vector<std::uint8_t> chunk = known_chunk();
  const hsize_t first = 0;
  if (H5Dwrite_chunk(set.get(), H5P_DEFAULT, 0, &first, chunk.size(), chunk.data()) < 0) return false;
  std::vector<std::uint32_t> elements(tried_elements);
  return H5Dread(set.get(), H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements.data()) >= 0 &&
         std::ranges::all_of(elements, [](std::uint32_t each) { return each == UINT32_MAX; });
}

void require_bitshuffle(const Filter& filter, const std::string& where) {
  const unsigned code =
      filter.parameters.size() > place_of_code ? filter.parameters[place_of_code] : by_nothing;
  if (code == by_nothing || code == by_lz4) return;
  if (code != by_zstd)
    throw Error(ErrorCode::unsupported,
                fmt::format("it is compressed with filter {} (bitshuffle) in a way that is not known, {}",
                            bitshuffle, code),
                where);
  static const bool known = unpacks_zstd();
  if (!known)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("it is compressed with filter {} (bitshuffle) by zstd, which the plug-in that is "
                    "installed cannot unpack",
                    bitshuffle),
        where,
        "install a plug-in that can (that of Python's hdf5plugin, say) and set HDF5_PLUGIN_PATH to its "
        "folder");
}

}  // namespace

void require_filters(hid_t set, const std::string& where) {
  for (const Filter& filter : filters_of(set))
    if (filter.id == bitshuffle && H5Zfilter_avail(bitshuffle) > 0) require_bitshuffle(filter, where);
}

}  // namespace superstep::data::hdf5
