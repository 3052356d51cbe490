#include "superstep/md/study/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"

namespace superstep::md {
namespace {

constexpr const char* schema = "superstep-md/1";
constexpr const char* ensembles[] = {"nve", "nvt", "npt"};
constexpr const char* baths[] = {"rescaling", "langevin"};

class Members {
 public:
  Members(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) refuse("is no object");
    if (text("schema") != schema) refuse(fmt::format("has another schema than {}", schema));
  }
  std::string text(const char* name) const {
    const nlohmann::json& member = at(name);
    if (!member.is_string()) refuse(fmt::format("{} must be a text", name));
    return member.get<std::string>();
  }
  double number(const char* name, double low, double high) const {
    const nlohmann::json& member = at(name);
    if (!member.is_number()) refuse(fmt::format("{} must be a number", name));
    const auto value = member.get<double>();
    if (!(value >= low && value <= high)) refuse(fmt::format("{} is out of range: {}", name, value));
    return value;
  }
  std::int64_t whole(const char* name, std::int64_t low) const {
    const nlohmann::json& member = at(name);
    if (!member.is_number_integer()) refuse(fmt::format("{} must be a whole number", name));
    if (member.get<std::int64_t>() < low) refuse(fmt::format("{} is out of range", name));
    return member.get<std::int64_t>();
  }
  template <std::size_t n>
  int one_of(const char* name, const char* const (&names)[n]) const {
    const std::string given = text(name);
    for (std::size_t i = 0; i < n; ++i)
      if (given == names[i]) return static_cast<int>(i);
    refuse(fmt::format("{} is '{}'", name, given));
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> all;
    const nlohmann::json& list = at(name);
    if (!list.is_array()) refuse(fmt::format("{} must be a list", name));
    for (const nlohmann::json& each : list) {
      if (!each.is_string()) refuse(fmt::format("{} must be a list of texts", name));
      all.push_back(each.get<std::string>());
    }
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw Error(ErrorCode::bad_file, why, where_); }
  const nlohmann::json& at(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) refuse(fmt::format("has no {}", name));
    return *found;
  }
  const nlohmann::json& json_;
  std::string where_;
};

}  // namespace

nlohmann::json to_json(const Settings& settings) {
  const Protocol& p = settings.protocol;
  return {{"schema", schema},
          {"potential", settings.potential},
          {"potential_settings", settings.potential_settings},
          {"start", settings.start},
          {"ensemble", ensembles[static_cast<int>(p.ensemble)]},
          {"bath", baths[static_cast<int>(p.bath)]},
          {"timestep_fs", p.timestep},
          {"temperature_K", p.kelvin},
          {"bath_time_fs", p.bath_time},
          {"pressure_eV_per_A3", p.pressure},
          {"pressure_time_fs", p.pressure_time},
          {"compressibility_A3_per_eV", p.compressibility},
          {"seed", p.seed},
          {"velocity_K", settings.velocity_kelvin},
          {"relaxed_to_eV_per_A", settings.relaxed_to},
          {"skin_A", settings.skin},
          {"steps", settings.steps},
          {"thermo_every", settings.thermo_every},
          {"frame_every", settings.frame_every},
          {"equilibration", settings.equilibration}};
}

Settings settings_from_json(const nlohmann::json& json, const std::string& where) {
  const Members members(json, where);
  constexpr double most = 1e12;
  Settings s;
  s.potential = members.text("potential");
  s.potential_settings = members.texts("potential_settings");
  s.start = members.text("start");
  s.protocol = {.ensemble = static_cast<Ensemble>(members.one_of("ensemble", ensembles)),
                .bath = static_cast<Bath>(members.one_of("bath", baths)),
                .timestep = members.number("timestep_fs", 1e-9, 1e6),
                .kelvin = members.number("temperature_K", 0, 1e9),
                .bath_time = members.number("bath_time_fs", 1e-9, most),
                .pressure = members.number("pressure_eV_per_A3", -most, most),
                .pressure_time = members.number("pressure_time_fs", 1e-9, most),
                .compressibility = members.number("compressibility_A3_per_eV", 0, most),
                .seed = static_cast<std::uint64_t>(members.whole("seed", 0))};
  s.velocity_kelvin = members.number("velocity_K", -1, 1e9);
  s.relaxed_to = members.number("relaxed_to_eV_per_A", 0, most);
  s.skin = members.number("skin_A", 1e-3, 100);
  s.steps = members.whole("steps", 0);
  s.thermo_every = members.whole("thermo_every", 1);
  s.frame_every = members.whole("frame_every", 1);
  s.equilibration = members.whole("equilibration", 0);
  return s;
}

}  // namespace superstep::md
