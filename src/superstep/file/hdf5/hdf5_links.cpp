#include "superstep/file/hdf5/hdf5_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "superstep/base/system/regular_file.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data::hdf5 {
namespace {

// A file of links that lead in circles, or that double from group to group, ends here.
constexpr std::size_t most_links = 200'000;
constexpr std::size_t deepest_group = 64;  // files of instruments have ten; chosen
// Virtual data sets whose parts are virtual.
constexpr int deepest_part = 8;

bool anywhere() {
  const char* said = std::getenv("SUPERSTEP_HDF5_LINKS");
  return said && std::string_view(said) == "anywhere";
}

std::filesystem::path real_path(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path found = std::filesystem::weakly_canonical(path, ignored);
  return found.empty() ? path : found;
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

std::filesystem::path file_of(hid_t object) {
  std::string name(4096, '\0');
  const ssize_t size = H5Fget_name(object, name.data(), name.size());
  if (size < 0 || static_cast<std::size_t>(size) >= name.size()) return {};
  return name.substr(0, static_cast<std::size_t>(size));
}

}  // namespace

Links::Links(const Handle& file, const std::filesystem::path& path)
    : file_(file),
      path_(path),
      link_access_(H5Pcreate(H5P_LINK_ACCESS), H5Pclose),
      set_access_(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose) {
  // A file that is a link itself belongs to both folders.
  if (!anywhere())
    homes_ = {real_path(real_path(path).parent_path()), real_path(real_path(path.parent_path()))};
  if (!anywhere() && path.parent_path().empty()) homes_.back() = real_path(".");
  for (const Handle* access : {&link_access_, &set_access_})
    H5Pset_elink_cb(access->get(), on_external_link, this);
  H5Pset_efile_prefix(set_access_.get(), "${ORIGIN}");  // else names are of the folder of the call
}

bool Links::allows(const std::filesystem::path& file) const {
  if (homes_.empty()) return true;
  const std::filesystem::path real = real_path(file);
  return std::ranges::any_of(homes_, [&](const auto& home) { return is_below(real, home); });
}

void Links::refuse_outside(const std::string& file, const std::string& where) const {
  throw OutOfReach(
      ErrorCode::unsupported,
      fmt::format("it lies in another file, '{}', which is not below the folder of this one", file), where,
      "copy the file there, or set SUPERSTEP_HDF5_LINKS=anywhere where you trust the file");
}

herr_t Links::on_external_link(const char* parent, const char*, const char* child, const char*, unsigned*,
                               hid_t, void* links) {
  const auto& self = *static_cast<const Links*>(links);
  if (self.allows(std::filesystem::path(parent).parent_path() / child)) return 0;
  self.refused_ = child;
  return -1;
}

// What was opened may lie elsewhere than its link says: the library also looks in folders that the
// environment names.
void Links::require_allowed(hid_t object, const std::string& where) const {
  const std::filesystem::path file = file_of(object);
  if (!allows(file)) refuse_outside(file.string(), where);
}

// Every other file that a data set's elements come from.
struct Parts {
  const Links& links;
  const std::string& where;

  void require(hid_t set, int depth) const {
    const Handle creation(H5Dget_create_plist(set), H5Pclose);
    const std::filesystem::path folder = file_of(set).parent_path();
    if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) require_virtual(creation.get(), set, folder, depth);
    if (H5Pget_external_count(creation.get()) > 0) require_raw(creation.get(), set, folder);
  }

 private:
  [[noreturn]] void refuse_missing(const std::string& file, const char* what) const {
    throw OutOfReach(ErrorCode::bad_file, fmt::format("a part of it is in '{}', which {}", file, what), where,
                     "put the part beside the file");
  }

  std::filesystem::path allowed(const std::filesystem::path& folder, const std::string& name) const {
    const std::filesystem::path file = folder / name;  // the name alone where it is a whole one
    std::error_code none;
    if (!links.allows(file)) links.refuse_outside(name, where);
    if (!std::filesystem::is_regular_file(file, none)) refuse_missing(name, "is not there");
    return file;
  }

  static std::string text_of(hid_t list, std::size_t index,
                             ssize_t (*get)(hid_t, std::size_t, char*, std::size_t)) {
    const ssize_t size = get(list, index, nullptr, 0);
    std::string text(static_cast<std::size_t>(std::max<ssize_t>(size, 0)) + 1, '\0');
    get(list, index, text.data(), text.size());
    text.pop_back();
    return text;
  }

  void require_virtual(hid_t creation, hid_t set, const std::filesystem::path& folder, int depth) const {
    if (depth == deepest_part)
      throw OutOfReach(ErrorCode::unsupported, "its parts are virtual, and theirs, too", where);
    std::size_t count = 0;
    H5Pget_virtual_count(creation, &count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string file = text_of(creation, i, H5Pget_virtual_filename),
                        name = text_of(creation, i, H5Pget_virtual_dsetname);
      if (file.find('%') != std::string::npos || name.find('%') != std::string::npos)
        throw OutOfReach(ErrorCode::unsupported, fmt::format("its parts are named by a pattern, '{}'", file),
                         where);
      require_part(set, file == "." ? std::filesystem::path() : allowed(folder, file), file, name, depth);
    }
  }

  // `path` empty: in the same file.
  void require_part(hid_t set, const std::filesystem::path& path, const std::string& file,
                    const std::string& name, int depth) const {
    Handle other;
    if (!path.empty()) {
      require_regular_file(path);
      other = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
      if (!other.valid()) refuse_missing(file, "is no HDF5 file");
    }
    const Handle part(
        H5Dopen2(path.empty() ? set : other.get(), ("/" + name).c_str(), links.set_access_.get()), H5Dclose);
    if (!part.valid()) refuse_missing(file, fmt::format("has no data set '{}'", name).c_str());
    links.require_allowed(part.get(), where);
    require(part.get(), depth + 1);
  }

  // Bytes of other files as elements: all of them must be there.
  void require_raw(hid_t creation, hid_t set, const std::filesystem::path& folder) const {
    const Handle type(H5Dget_type(set), H5Tclose), space(H5Dget_space(set), H5Sclose);
    const auto elements =
        static_cast<std::uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space.get()), 0));
    std::uint64_t wanted = 0;
    if (__builtin_mul_overflow(elements, H5Tget_size(type.get()), &wanted)) wanted = UINT64_MAX;
    for (int i = 0; i < H5Pget_external_count(creation); ++i) {
      std::string name(4096, '\0');
      off_t offset = 0;
      hsize_t size = 0;
      H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size);
      name.resize(name.find('\0'));
      const std::uint64_t used = std::min<std::uint64_t>(size, wanted),
                          has = std::filesystem::file_size(allowed(folder, name));
      if (offset < 0 || static_cast<std::uint64_t>(offset) > has ||
          used > has - static_cast<std::uint64_t>(offset))
        refuse_missing(name, "is too short");
      wanted -= used;
    }
  }
};

Handle Links::data_set(std::string_view name) const {
  refused_.clear();
  Handle set(H5Dopen2(file_.get(), std::string(name).c_str(), set_access_.get()), H5Dclose);
  const std::string where = place(path_, name);
  if (!set.valid() && !refused_.empty()) refuse_outside(refused_, where);
  if (!set.valid()) return set;
  require_allowed(set.get(), where);
  Parts{*this, where}.require(set.get(), 0);
  return set;
}

Handle Links::object(std::string_view name) const {
  refused_.clear();
  Handle object(H5Oopen(file_.get(), std::string(name).c_str(), link_access_.get()), H5Oclose);
  if (!object.valid() && !refused_.empty()) refuse_outside(refused_, place(path_, name));
  if (object.valid()) require_allowed(object.get(), place(path_, name));
  return object;
}

// Goes through groups, but never into one that it is in.
struct Walk {
  const Links& links;
  Links::Names found;
  std::size_t count = 0;
  std::vector<std::pair<unsigned long, haddr_t>> above;  // groups on the way here, as file and address

  struct Link {
    std::string name;
    H5L_type_t type;
  };
  static herr_t keep(hid_t, const char* name, const H5L_info_t* info, void* out) {
    static_cast<std::vector<Link>*>(out)->push_back({name, info->type});
    return 0;
  }

  void group(hid_t id, const std::string& prefix) {
    std::vector<Link> inside;
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, keep, &inside) < 0)
      throw Error(ErrorCode::bad_file, fmt::format("cannot list the data sets: {}", last_error_text()),
                  links.path_.string());
    count += inside.size();
    if (count > most_links)
      throw Error(ErrorCode::unsupported, fmt::format("it has more than {} names", most_links),
                  links.path_.string());
    for (const Link& link : inside) follow(id, link, prefix + link.name);
  }

 private:
  void follow(hid_t from, const Link& link, const std::string& name) {
    links.refused_.clear();
    const Handle object(H5Oopen(from, link.name.c_str(), links.link_access_.get()), H5Oclose);
    if (!object.valid()) return broken(link, name);
    if (!links.allows(file_of(object.get()))) {
      found.broken.emplace_back(name, "link to a file that is not below this one's folder");
      return;
    }
    if (H5Iget_type(object.get()) == H5I_DATASET) found.data_sets.push_back(name);
    if (H5Iget_type(object.get()) != H5I_GROUP) return;
    H5O_info_t info;
    if (H5Oget_info2(object.get(), &info, H5O_INFO_BASIC) < 0) return;
    const std::pair<unsigned long, haddr_t> here{info.fileno, info.addr};
    if (std::ranges::find(above, here) != above.end()) return;
    if (above.size() > deepest_group)
      throw Error(ErrorCode::bad_file,
                  fmt::format("its groups are nested deeper than {} levels", deepest_group),
                  links.path_.string());
    above.push_back(here);
    group(object.get(), name + "/");
    above.pop_back();
  }

  void broken(const Link& link, const std::string& name) {
    if (link.type == H5L_TYPE_HARD)
      throw Error(ErrorCode::bad_file, fmt::format("cannot list the data sets: {}", last_error_text()),
                  place(links.path_, name));
    found.broken.emplace_back(name, !links.refused_.empty()
                                        ? "link to a file that is not below this one's folder"
                                        : "link to what is not there");
  }
};

Links::Names Links::names() const {
  Walk walk{*this, {}, 0, {}};
  const Handle root(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
  if (!root.valid())
    throw Error(ErrorCode::bad_file, fmt::format("cannot list the data sets: {}", last_error_text()),
                path_.string());
  H5O_info_t info;
  if (H5Oget_info2(root.get(), &info, H5O_INFO_BASIC) >= 0) walk.above.emplace_back(info.fileno, info.addr);
  walk.group(root.get(), "");
  std::ranges::sort(walk.found.data_sets);
  return std::move(walk.found);
}

std::string Links::why_broken(std::string_view name) const {
  for (const auto& [link, why] : names().broken)
    if (link == name) return why;
  return {};
}

}  // namespace superstep::data::hdf5
