#include "superstep/file/hdf5/hdf5_place.h"

#include <algorithm>

namespace superstep::data::hdf5 {
namespace {

// The library finds each chunk by going through all of them (1.10): a second for so many.
constexpr std::int64_t most_chunks = 20000;

std::string file_of(hid_t set) {
  const ssize_t length = H5Fget_name(set, nullptr, 0);
  std::string name(static_cast<std::size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
  if (length > 0) H5Fget_name(set, name.data(), name.size());
  name.pop_back();
  return name;
}

std::vector<hsize_t> extents_of(hid_t space) {
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  if (!extents.empty()) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

bool is_native(hid_t type, ElementType element, bool complex) {
  if (complex) {
    const Handle part(H5Tget_member_type(type, 0), H5Tclose), other(H5Tget_member_type(type, 1), H5Tclose);
    const std::size_t width = size_in_bytes(element);
    return H5Tget_size(type) == 2 * width && H5Tget_member_offset(type, 0) == 0 &&
           H5Tget_member_offset(type, 1) == width && is_native(part.get(), element, false) &&
           is_native(other.get(), element, false);
  }
  const Handle native = type_of(element);
  return H5Tequal(type, native.get()) > 0;
}

// What undoes the filters is known here: deflate, after shuffle.
bool take_filters(hid_t creation, DataSetPlace& place) {
  const int filters = H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (id == H5Z_FILTER_SHUFFLE && i == 0)
      place.shuffled = true;
    else if (id == H5Z_FILTER_DEFLATE && !place.deflated)
      place.deflated = true;
    else
      return false;
  }
  return true;
}

bool take_chunks(hid_t set, const std::vector<hsize_t>& extents, DataSetPlace& place) {
  std::int64_t count = 1;
  std::vector<hsize_t> grid;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    grid.push_back((extents[axis] + static_cast<hsize_t>(place.chunk[axis]) - 1) /
                   static_cast<hsize_t>(place.chunk[axis]));
    if (grid.back() > most_chunks) return false;
    count *= static_cast<std::int64_t>(grid.back());
    if (count > most_chunks) return false;
  }
  std::vector<hsize_t> at(extents.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    // One that was never written is what the data set is filled with; one that a filter was left out of says
    // so in the mask.
    if (H5Dget_chunk_info_by_coord(set, at.data(), &mask, &address, &size) < 0 || address == HADDR_UNDEF ||
        mask != 0)
      return false;
    place.at.push_back(address);
    place.stored.push_back(size);
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      at[axis] += static_cast<hsize_t>(place.chunk[axis]);
      if (at[axis] < grid[axis] * static_cast<hsize_t>(place.chunk[axis])) break;
      at[axis] = 0;
    }
  }
  return true;
}

// Addresses of chunks are counted from behind a user's block by some versions of the library.
bool has_user_block(hid_t set) {
  const Handle file(H5Iget_file_id(set), H5Fclose);
  const Handle creation(H5Fget_create_plist(file.get()), H5Pclose);
  hsize_t bytes = 1;
  H5Pget_userblock(creation.get(), &bytes);
  return bytes != 0;
}

}  // namespace

std::optional<DataSetPlace> place_of(hid_t set, hid_t type, hid_t space, ElementType element, bool complex) {
  const std::vector<hsize_t> extents = extents_of(space);
  const Handle creation(H5Dget_create_plist(set), H5Pclose);
  if (extents.empty() || std::ranges::find(extents, hsize_t{0}) != extents.end() || has_user_block(set) ||
      !is_native(type, element, complex) || H5Pget_external_count(creation.get()) > 0)
    return {};
  DataSetPlace place{.file = file_of(set), .element_bytes = H5Tget_size(type), .chunk = {}};
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t address = H5Dget_offset(set);
    place.begin = address;
    return address == HADDR_UNDEF ? std::nullopt : std::optional(place);
  }
  std::vector<hsize_t> chunk(extents.size());
  const auto rank = static_cast<int>(extents.size());
  if (layout != H5D_CHUNKED || H5Pget_chunk(creation.get(), rank, chunk.data()) != rank) return {};
  place.chunk.assign(chunk.begin(), chunk.end());
  if (std::ranges::find(chunk, hsize_t{0}) != chunk.end() || !take_filters(creation.get(), place) ||
      !take_chunks(set, extents, place))
    return {};
  return place;
}

}  // namespace superstep::data::hdf5
