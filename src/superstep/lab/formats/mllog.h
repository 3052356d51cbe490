// Log lines of MLPerf's form: ":::MLLOG {"namespace", "time_ms", "event_type", "key", "value", "metadata"}",
// in that order of members. What is written with them is not a result verified by MLCommons.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace superstep::lab {

class MlLog {
 public:
  using Json = nlohmann::ordered_json;

  // Times are in ms since 1970.
  void start(std::int64_t time_ms, const std::string& key, Json value = nullptr,
             Json metadata = Json::object());
  void end(std::int64_t time_ms, const std::string& key, Json value = nullptr,
           Json metadata = Json::object());
  void point(std::int64_t time_ms, const std::string& key, Json value = nullptr,
             Json metadata = Json::object());

  const std::string& text() const { return text_; }

 private:
  void line(std::int64_t time_ms, const char* type, const std::string& key, Json value, Json metadata);
  std::string text_;
};

// ms since 1970 of an ISO 8601 time with its zone; 0 when it is not one.
std::int64_t milliseconds_of(const std::string& iso_time);

}  // namespace superstep::lab
