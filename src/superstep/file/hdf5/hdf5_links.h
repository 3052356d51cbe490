// Inside of the HDF5 layer: names that a file gives to data sets through links, and how far links may lead.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/file/hdf5/hdf5_handle.h"

namespace superstep::data::hdf5 {

// A data set of which a part is where it may not be read, or is not there.
class OutOfReach : public Error {
 public:
  using Error::Error;
};

// Names of a file, links followed: hard ones under each of their names, soft ones, and external ones. What
// leads to another file (external links, parts of virtual data sets, raw data beside the file) is followed to
// files in the file's own folder or below, so that a file that came from elsewhere shows nothing else of this
// machine; anywhere where the environment says SUPERSTEP_HDF5_LINKS=anywhere.
class Links {
 public:
  // `file` is open as long as this is used.
  Links(const Handle& file, const std::filesystem::path& path);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Every data set, sorted; `broken` also has the links that lead nowhere.
  struct Names {
    std::vector<std::string> data_sets;
    std::vector<std::pair<std::string, std::string>> broken;  // name, why
  };
  Names names() const;

  // Invalid where there is none; throws Error (unsupported) where it lies, or parts of it lie, where links
  // may not lead, (bad_file) where a part of it is not there: the library would fill it with zeros.
  Handle data_set(std::string_view name) const;
  Handle object(std::string_view name) const;  // a data set or a group
  // Why a name leads nowhere; empty: there is no such link.
  std::string why_broken(std::string_view name) const;

 private:
  friend struct Walk;
  friend struct Parts;
  bool allows(const std::filesystem::path& file) const;
  void require_allowed(hid_t object, const std::string& where) const;
  [[noreturn]] void refuse_outside(const std::string& file, const std::string& where) const;
  static herr_t on_external_link(const char* parent, const char* parent_group, const char* child,
                                 const char* child_object, unsigned* flags, hid_t file_access, void* links);

  const Handle& file_;
  std::filesystem::path path_;
  std::vector<std::filesystem::path> homes_;  // folders; empty: anywhere
  mutable std::string refused_;               // the file that the last external link named, which it may not
  Handle link_access_, set_access_;
};

}  // namespace superstep::data::hdf5
