// What a server answers over HTTP, as an OpenAPI document: for clients that are generated, and for readers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace superstep::edge {

nlohmann::json openapi(const std::string& server_version);  // 3.0.3

}  // namespace superstep::edge
