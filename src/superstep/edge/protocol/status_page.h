// The page that a browser sees: which models answer, how they are asked, how long answers took, and what
// became of what was asked.
#pragma once

#include <string>

#include "superstep/edge/service/repository.h"

namespace superstep::edge {

// Where who looks at the page reaches the server, and whether a model answers with a token alone.
struct PageReader {
  std::string host;  // "HOST:PORT" of the request
  bool secure = false, needs_token = false;
};

std::string status_page(const Repository& repository, const PageReader& reader);

// A line of shell that asks a model for one row of zeros: its JSON, and the bytes of its inputs after it.
std::string curl_line(const std::string& model, const ServedPorts& ports, const PageReader& reader);

}  // namespace superstep::edge
