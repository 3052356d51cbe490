// The scripts of bench/peers that run model files in other engines, as text.
#pragma once

#include <span>

namespace superstep::lab {

struct PeerScript {
  const char *name, *text;
};

std::span<const PeerScript> peer_scripts();  // made by embed_peers.cmake

}  // namespace superstep::lab
