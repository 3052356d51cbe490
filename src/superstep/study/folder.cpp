#include "superstep/study/folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/record/member.h"

namespace superstep::study {

namespace fs = std::filesystem;

void claim_folder(const fs::path& folder, const std::string& name) {
  const fs::path file = folder / "study.json";
  if (fs::exists(file)) {
    const std::string other = record::text_member(parse_json(read_text_file(file)), "study", "?");
    if (other != name)
      throw Error(ErrorCode::invalid_argument, fmt::format("holds the study {}", other), folder.string(),
                  "give --out another folder");
    return;
  }
  if (!holds_nothing(folder))
    throw Error(ErrorCode::invalid_argument, "holds other things than a study", folder.string(),
                "give --out a folder of its own");
  write_file_atomically(
      file, nlohmann::json{{"schema", "superstep-study-folder/1"}, {"study", name}}.dump() + "\n");
}

}  // namespace superstep::study
