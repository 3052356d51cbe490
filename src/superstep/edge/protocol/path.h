// The path of a request, taken apart and percent-decoded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace superstep::edge {

// "/v2/models/a%20b/ready" is "v2", "models", "a b", "ready". What is no encoding (%zz) stays as it is.
std::vector<std::string> parts_of(std::string_view path);

// The name as one part of a path: all but letters, figures and -._~ as %XX (RFC 3986).
std::string percent_encoded(std::string_view name);

}  // namespace superstep::edge
