#include "superstep/lab/validate/published.h"

#include <fmt/format.h>

#include "superstep/lab/built_in.h"

namespace superstep::lab {
namespace {

PublishedTable table_of(std::string_view id) {
  for (const BuiltIn& file : published_files())
    if (file.id == id) return {file.text, fmt::format("data/published/{}.csv", id)};
  throw Error(ErrorCode::internal, "is not in the program", fmt::format("data/published/{}.csv", id));
}

}  // namespace

const PublishedTable& published_results() {
  static const PublishedTable table = table_of("results");
  return table;
}

const PublishedTable& further_published() {
  static const PublishedTable table = table_of("further");
  return table;
}

}  // namespace superstep::lab
