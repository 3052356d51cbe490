// Base64 (RFC 4648), for pictures inside a page.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace superstep::page {

std::string base64(std::span<const std::byte> bytes);

}  // namespace superstep::page
